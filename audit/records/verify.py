"""Verifies a record: are its bytes unaltered, do its parts agree, and are its sources those of the project?

A record can have four kinds of flaws. *Altered*: a byte differs from the recorded one, or a file is not listed.
*Contradictory*: its parts disagree (plan and results, results and summary). *Not whole*: a planned result or a file is
missing, or the record cannot be read. *Stale*: a source or capture of the project has changed since.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from audit.checks.result import Verdict
from audit.errors import EvidenceError
from audit.project import Project
from audit.records import folder, packing, statement
from audit.records.currency import Staleness, stale
from audit.records.kinds import FILES, KINDS, Record, home_of
from audit.records.statement import STATEMENT

FlawKind = Literal["altered", "contradictory", "not whole", "stale"]
_FAILS: tuple[FlawKind, ...] = ("altered", "contradictory")


class Flaw(msgspec.Struct, frozen=True):
    """One flaw of a folder, in a sentence."""

    kind: FlawKind
    what: str


@dataclass(frozen=True)
class Verification:
    """The result for one folder; `record` is None if it is altered or cannot be read."""

    path: Path
    record: Record | None
    flaws: tuple[Flaw, ...]
    stale: Staleness = field(default_factory=Staleness)

    @property
    def verdict(self) -> Verdict:
        """Fail if altered or contradictory, inconclusive if stale or not whole."""
        if any(flaw.kind in _FAILS for flaw in self.flaws):
            return "fail"
        return "inconclusive" if self.flaws else "pass"

    @property
    def sound(self) -> bool:
        """Whether its record can be trusted, possibly for sources that have changed since."""
        return self.record is not None and all(flaw.kind == "stale" for flaw in self.flaws)

    def told(self) -> str:
        """All flaws with their kinds, or that there are none."""
        if not self.flaws:
            return "complete, unaltered, and of the project's current sources"
        return "; ".join(f"{flaw.kind}: {flaw.what}" for flaw in self.flaws)


def verify(path: Path, project: Project) -> Verification:
    """Verify the folder of one record, or the record in it. Flaws do not raise errors."""
    home = home_of(path)
    try:
        files = _files(home)
    except EvidenceError as error:
        listing = (home / folder.SUMS).is_file() and not _unfinished(home)
        return Verification(home, None, (Flaw("altered" if listing else "not whole", str(error)),))
    if flaws := [*_bytes(home, files)]:
        return Verification(home, None, tuple(flaws))
    names = {packing.plain(name) for name in files}
    kind = next((kind for kind in KINDS if kind.file in names), None)
    if kind is None:
        return Verification(
            home, None, (Flaw("not whole", f"{home}: expected one of {', '.join(FILES)} in {folder.SUMS}"),)
        )
    if missing := [needed for needed in kind.beside if needed not in names]:
        return Verification(home, None, (Flaw("not whole", f"{home}: lacks {', '.join(missing)}"),))
    try:
        files = {packing.plain(name): packing.unpacked(name, content, home) for name, content in files.items()}
        record: Record = kind.decode(files[kind.file], home / kind.file)
    except EvidenceError as error:
        return Verification(home, None, (Flaw("not whole", str(error)),))
    contradictions = [Flaw("contradictory", what) for what in kind.disagrees(record, files)]
    if STATEMENT in files and not statement.agrees(files, kind.name, kind.file, kind.files):
        contradictions.append(Flaw("contradictory", f"{STATEMENT} does not describe this record"))
    lacking = [Flaw("not whole", what) for what in kind.lacks(record)]
    changed = stale(record, project)
    return Verification(
        home, record, (*contradictions, *lacking, *(Flaw("stale", what) for what in changed.told())), changed
    )


def find_records(path: Path) -> tuple[Path, ...]:
    """The folders of records at or below a path, or the path itself if there are none.

    Unfinished folders are omitted, unless one is named.
    """
    home = home_of(path)
    if (home / folder.SUMS).is_file() or any(packing.lies(home, name) for name in FILES):
        return (home,)
    marks = (folder.SUMS, *FILES)
    folders = {file.parent for mark in marks for file in home.rglob(mark)}
    finished = sorted(
        each for each in folders if not any(part.startswith(".") for part in each.relative_to(home).parts)
    )
    return tuple(finished) or (home,)


def _files(home: Path) -> dict[str, bytes]:
    """The content of every listed file that exists and is a plain file of acceptable size, by name."""
    if _unfinished(home):
        raise EvidenceError(f"{home}: this run did not finish, so its folder is incomplete; run it again")
    return {name: file.read_bytes() for name in folder.listed(home) if (file := home / name) and _plain(home, name)}


def _unfinished(home: Path) -> bool:
    return home.name.endswith(".partial")


def _plain(home: Path, name: str) -> bool:
    file = home / name
    inside = Path(name).name == name and not file.is_symlink() and file.is_file()
    return inside and file.stat().st_size <= packing.SIZE_LIMIT


def _bytes(home: Path, files: dict[str, bytes]) -> Iterator[Flaw]:
    listed = folder.listed(home)
    for name, digest in listed.items():
        if name not in files:
            yield Flaw(
                "not whole",
                f"{home / name}: listed in {folder.SUMS}, but missing, too large, or not a plain file of this folder",
            )
        elif hashlib.sha256(files[name]).hexdigest() != digest:
            yield Flaw("altered", f"{home / name}: expected sha256 {digest[:16]}..., but the file differs")
    for file in sorted(home.iterdir()):
        # Signatures are made later and are beside the signed file.
        if file.name not in listed and file.name != folder.SUMS and not file.name.startswith(f"{STATEMENT}."):
            yield Flaw("altered", f"{file}: not listed in {folder.SUMS}")
    if files.keys() == listed.keys() and (home / folder.SUMS).read_bytes() != folder.sums(files):
        yield Flaw("altered", f"{home / folder.SUMS}: expected exactly the lines of the listed files")
