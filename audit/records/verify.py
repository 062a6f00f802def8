"""Is evidence still what it was, does it agree with itself, and is it about the sources that stand here now?

Four things can be wrong with a folder of evidence. *Altered*: a byte is not the recorded one, or a file is nobody's.
*Contradictory*: its parts do not agree (plan and results, results and summary). *Not whole*: something planned, or a
file, is missing, or the record cannot be read. *Stale*: a source or capture in the project is another one by now.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from audit.checks.result import Verdict
from audit.errors import EvidenceError
from audit.project import Project
from audit.records import folder, packing
from audit.records.currency import Staleness, stale
from audit.records.kinds import FILES, KINDS, Record, home_of
from audit.records.statement import STATEMENT

FlawKind = Literal["altered", "contradictory", "not whole", "stale"]
_FAILS: tuple[FlawKind, ...] = ("altered", "contradictory")


class Flaw(msgspec.Struct, frozen=True):
    """One thing that is wrong with a folder, in a sentence."""

    kind: FlawKind
    what: str


@dataclass(frozen=True)
class Verification:
    """A folder of evidence after it was looked at; `record` is None where it could not be read unaltered."""

    path: Path
    record: Record | None
    flaws: tuple[Flaw, ...]
    stale: Staleness = field(default_factory=Staleness)

    @property
    def verdict(self) -> Verdict:
        """Fail: altered or contradictory; inconclusive: stale or not whole."""
        if any(flaw.kind in _FAILS for flaw in self.flaws):
            return "fail"
        return "inconclusive" if self.flaws else "pass"

    @property
    def sound(self) -> bool:
        """Whether its record may be believed, be it of sources that have changed since."""
        return self.record is not None and all(flaw.kind == "stale" for flaw in self.flaws)

    def told(self) -> str:
        """All that is wrong, by kind; or what is right."""
        if not self.flaws:
            return "whole, and of the sources that stand here"
        return "; ".join(f"{flaw.kind}: {flaw.what}" for flaw in self.flaws)


def verify(path: Path, project: Project) -> Verification:
    """Look at one folder of evidence (or at the record in it); nothing is raised for what is wrong with it."""
    home = home_of(path)
    try:
        files = _files(home)
    except EvidenceError as error:
        listing = os.path.lexists(home / folder.SUMS) and not _unfinished(home)
        return Verification(home, None, (Flaw("altered" if listing else "not whole", str(error)),))
    if flaws := [*_bytes(home, files)]:
        return Verification(home, None, tuple(flaws))
    there = {packing.plain(name) for name in files}
    kind = next((kind for kind in KINDS if kind.file in there), None)
    if kind is None:
        return Verification(
            home, None, (Flaw("not whole", f"{home}: expected one of {', '.join(FILES)} to be listed"),)
        )
    if missing := [needed for needed in kind.beside if needed not in there]:
        return Verification(home, None, (Flaw("not whole", f"{home}: lacks {', '.join(missing)}"),))
    try:
        files = {packing.plain(name): packing.unpacked(name, content, home) for name, content in files.items()}
        record: Record = kind.decode(files[kind.file], home / kind.file)
    except EvidenceError as error:
        return Verification(home, None, (Flaw("not whole", str(error)),))
    contradictions = [Flaw("contradictory", what) for what in kind.contradictions(record, files)]
    lacking = [Flaw("not whole", what) for what in kind.gaps(record)]
    changed = stale(record, project)
    return Verification(
        home, record, (*contradictions, *lacking, *(Flaw("stale", what) for what in changed.told())), changed
    )


def find_records(path: Path) -> tuple[Path, ...]:
    """The folders of evidence at or below a path; a path that is none and holds none is its own answer.

    Folders of runs that did not finish are left out, unless one is named.
    """
    home = home_of(path)
    if (home / folder.SUMS).is_file() or any(packing.lies(home, name) for name in FILES):
        return (home,)
    marks = (folder.SUMS, *FILES)
    found = {file.parent for mark in marks for file in home.rglob(mark)}
    inside = sorted(each for each in found if not any(part.startswith(".") for part in each.relative_to(home).parts))
    return tuple(inside) or (home,)


def _files(home: Path) -> dict[str, bytes]:
    """Every listed file that is there, by name; one that may not be read has no content."""
    if _unfinished(home):
        raise EvidenceError(f"{home}: this run did not finish; it is no evidence")
    found = {name: folder.plain_content(home, name) for name in folder.listed(home)}
    return {name: content for name, content in found.items() if content is not None}


def _unfinished(home: Path) -> bool:
    return home.name.endswith(".partial")


def _bytes(home: Path, files: dict[str, bytes]) -> Iterator[Flaw]:
    listed = folder.listed(home)
    for name, digest in listed.items():
        if name not in files:
            yield Flaw(
                "not whole",
                f"{home / name}: listed in {folder.SUMS}, but missing, too large, or no plain file of this folder",
            )
        elif hashlib.sha256(files[name]).hexdigest() != digest:
            yield Flaw("altered", f"{home / name}: expected sha256 {digest[:16]}..., but the file differs")
    for file in sorted(home.iterdir()):
        # Signatures are made later, and lie beside what they sign.
        if file.name not in listed and file.name != folder.SUMS and not file.name.startswith(f"{STATEMENT}."):
            yield Flaw("altered", f"{file}: {folder.SUMS} does not list it")
    if files.keys() == listed.keys() and (home / folder.SUMS).read_bytes() != folder.sums(files):
        yield Flaw("altered", f"{home / folder.SUMS}: not as it was written")
