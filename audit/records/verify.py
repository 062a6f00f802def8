"""Is evidence still what it was, does it agree with itself, and is it about the sources that stand here now?

Four things can be wrong with a folder of evidence. *Altered*: a byte is not the recorded one, or a file is nobody's.
*Contradictory*: its parts do not agree (plan and results, results and summary). *Not whole*: something planned, or a
file, is missing, or the record cannot be read. *Stale*: a source or capture in the project is another one by now.
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
from audit.records.currency import Stale, stale
from audit.records.kinds import FILES, KINDS, Record, home_of
from audit.records.statement import STATEMENT

Flaw = Literal["altered", "contradictory", "not whole", "stale"]
_FAILS: tuple[Flaw, ...] = ("altered", "contradictory")


class Fault(msgspec.Struct, frozen=True):
    """One thing that is wrong with a folder, in a sentence."""

    kind: Flaw
    what: str


@dataclass(frozen=True)
class Verified:
    """A folder of evidence after it was looked at; `record` is None where it could not be read unaltered."""

    path: Path
    record: Record | None
    faults: tuple[Fault, ...]
    stale: Stale = field(default_factory=Stale)

    @property
    def verdict(self) -> Verdict:
        """Fail: altered or contradictory; inconclusive: stale or not whole."""
        if any(fault.kind in _FAILS for fault in self.faults):
            return "fail"
        return "inconclusive" if self.faults else "pass"

    @property
    def sound(self) -> bool:
        """Whether its record may be believed, be it of sources that have changed since."""
        return self.record is not None and all(fault.kind == "stale" for fault in self.faults)

    def told(self) -> str:
        """All that is wrong, by kind; or what is right."""
        if not self.faults:
            return "whole, and of the sources that stand here"
        return "; ".join(f"{fault.kind}: {fault.what}" for fault in self.faults)


def verify(path: Path, project: Project) -> Verified:
    """Look at one folder of evidence (or at the record in it); nothing is raised for what is wrong with it."""
    home = home_of(path)
    try:
        files = _files(home)
    except EvidenceError as error:
        listing = (home / folder.SUMS).is_file() and not _unfinished(home)
        return Verified(home, None, (Fault("altered" if listing else "not whole", str(error)),))
    if faults := [*_bytes(home, files)]:
        return Verified(home, None, tuple(faults))
    there = {packing.plain(name) for name in files}
    kind = next((kind for kind in KINDS if kind.file in there), None)
    if kind is None:
        return Verified(home, None, (Fault("not whole", f"{home}: expected one of {', '.join(FILES)} to be listed"),))
    if missing := [needed for needed in kind.beside if needed not in there]:
        return Verified(home, None, (Fault("not whole", f"{home}: lacks {', '.join(missing)}"),))
    try:
        files = {packing.plain(name): packing.unpacked(name, content, home) for name, content in files.items()}
        record: Record = kind.decode(files[kind.file], home / kind.file)
    except EvidenceError as error:
        return Verified(home, None, (Fault("not whole", str(error)),))
    contradictions = [Fault("contradictory", what) for what in kind.disagrees(record, files)]
    if STATEMENT in files and not statement.agrees(files, kind.name, kind.file, kind.files):
        contradictions.append(Fault("contradictory", f"{STATEMENT} is not the statement about this record"))
    lacking = [Fault("not whole", what) for what in kind.lacks(record)]
    changed = stale(record, project)
    return Verified(
        home, record, (*contradictions, *lacking, *(Fault("stale", what) for what in changed.told())), changed
    )


def find(path: Path) -> tuple[Path, ...]:
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
    return {name: file.read_bytes() for name in folder.listed(home) if (file := home / name) and _plain(home, name)}


def _unfinished(home: Path) -> bool:
    return home.name.endswith(".partial")


def _plain(home: Path, name: str) -> bool:
    file = home / name
    inside = Path(name).name == name and not file.is_symlink() and file.is_file()
    return inside and file.stat().st_size <= packing.SIZE_LIMIT


def _bytes(home: Path, files: dict[str, bytes]) -> Iterator[Fault]:
    listed = folder.listed(home)
    for name, digest in listed.items():
        if name not in files:
            yield Fault(
                "not whole",
                f"{home / name}: listed in {folder.SUMS}, but missing, too large, or no plain file of this folder",
            )
        elif hashlib.sha256(files[name]).hexdigest() != digest:
            yield Fault("altered", f"{home / name}: expected sha256 {digest[:16]}..., but the file differs")
    for file in sorted(home.iterdir()):
        # Signatures are made later, and lie beside what they sign.
        if file.name not in listed and file.name != folder.SUMS and not file.name.startswith(f"{STATEMENT}."):
            yield Fault("altered", f"{file}: {folder.SUMS} does not list it")
    if files.keys() == listed.keys() and (home / folder.SUMS).read_bytes() != folder.sums(files):
        yield Fault("altered", f"{home / folder.SUMS}: not as it was written")
