"""The description of a kind of record: its files, schema, consistency checks, headline and page.

`audit.records.kinds` lists all kinds. A new kind needs a module with its schema and a `Kind`, one line in that list,
and a page.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from audit.checks.result import Verdict
from audit.compile.identity import BuildIdentity
from audit.errors import EvidenceError
from audit.printable import one_line
from audit.project import Project
from audit.records import folder, packing, statement
from audit.records.machine import MachineRecord
from audit.records.resolution import ResolvedCase
from audit.records.statement import STATEMENT

PLAN = "plan.json"
_CONTRADICTIONS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_NOTHING: Mapping[str, bytes] = {}


class AnyRecord(Protocol):
    """The fields of every record. `builds` maps a name or key to the identity of a build."""

    @property
    def schema(self) -> int: ...
    @property
    def tool(self) -> str: ...
    @property
    def started(self) -> str: ...
    @property
    def command(self) -> str: ...
    @property
    def commit(self) -> str | None: ...
    @property
    def machine(self) -> MachineRecord: ...
    @property
    def builds(self) -> dict[str, BuildIdentity]: ...


class Headline(msgspec.Struct, frozen=True):
    """A record in one line: its subject, verdict, counts, and first problem."""

    operator: str
    shape: str
    backend: str
    verdict: Verdict
    counts: str
    problem: str


_Record = TypeVar("_Record", bound=AnyRecord)


@dataclass(frozen=True)
class Kind(Generic[_Record]):
    """One kind of record.

    name        in statements and lists
    title       in a sentence: `an audit`
    file        the record's file in its folder
    record      its schema
    schemas     the versions of the schema that are read, the current one first
    beside      other files that the folder must hold
    resolved_cases  the cases with their variants, for which its declaration was resolved
    optional    other files that it may hold; all further files are rendered from these
    lacks       a sentence for each planned part without a result
    disagrees   (record, unpacked files) -> a sentence for each contradiction between its parts
    headline    the record's line in a list
    captures    capture -> sha256 of its manifest, for every capture that it used
    changed     what has changed since, with how, where the record has no closure of its own
    page        the module that renders it, with `pages(record, files, context)` and `points(record)`
    """

    name: str
    title: str
    file: str
    record: type[_Record]
    schemas: tuple[int, ...]
    beside: tuple[str, ...]
    lacks: Callable[[_Record], Iterator[str]]
    disagrees: Callable[[_Record, Mapping[str, bytes]], Iterator[str]]
    headline: Callable[[_Record], Headline]
    page: str
    resolved_cases: Callable[[_Record], Sequence[ResolvedCase]]
    optional: tuple[str, ...] = ()
    captures: Callable[[_Record], Mapping[str, str | None]] = lambda _record: {}
    changed: Callable[[_Record, Project], Iterator[tuple[str, str]]] | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """The files of the record itself; all others in its folder are rendered from them."""
        return (self.file, *self.beside, *self.optional)

    def load(self, path: Path) -> _Record:
        """Read a record from its folder or its file. Raises EvidenceError if it is altered, incomplete or malformed."""
        return self.read(path)[0]

    def read(self, path: Path) -> tuple[_Record, dict[str, bytes]]:
        """A record and the unpacked files of its folder. Raises EvidenceError like `load`."""
        home = path.parent if path.name != folder.SUMS and packing.unpacked_name(path.name) == self.file else path
        files = folder.verified(home)
        folder.require(files, (self.file, *self.beside), home)
        return self.decode(files[self.file], home / self.file), files

    def digest(self, record: msgspec.Struct, files: Mapping[str, bytes]) -> str:
        """The sha256 of a record's file: of the one among the files of its folder, else of the one to be written."""
        return hashlib.sha256(files[self.file] if self.file in files else folder.encode(record)).hexdigest()

    def contradictions(self, record: _Record, files: Mapping[str, bytes]) -> Iterator[str]:
        """Where the parts of a record and its statement contradict one another, a sentence each."""
        yield from as_far_as_possible(self.disagrees(record, files))
        if STATEMENT in files and not statement.agrees(files, self.name, self.file, self.files):
            yield f"{STATEMENT} does not describe this record"

    def gaps(self, record: _Record) -> Iterator[str]:
        """What was planned and has no result, a sentence each."""
        yield from as_far_as_possible(self.lacks(record))

    def decode(self, raw: bytes, where: Path) -> _Record:
        """A record from its JSON, after a check of its schema version."""
        return folder.decode(raw, where, self.record, *self.schemas)


def as_far_as_possible(sentences: Iterator[str]) -> Iterator[str]:
    """The sentences; what a record says may be such that nothing can be derived from it, which is one more."""
    try:
        yield from sentences
    except _CONTRADICTIONS as error:
        yield f"nothing can be derived from what it says: {type(error).__name__}: {one_line(error)}"


@contextmanager
def taken_as_written(*homes: Path) -> Iterator[None]:
    """Around what is made of records that were not checked against themselves: EvidenceError where they do not allow
    it, such as a result of a case that they do not have."""
    try:
        yield
    except _CONTRADICTIONS as error:
        folders = " and ".join(map(str, homes))
        raise EvidenceError(
            f"{folders}: contradicts itself, so that nothing can be made of it ({type(error).__name__}: "
            f"{one_line(error)}); `audit verify` says where"
        ) from error


class Draft(folder.Partial):
    """The unfinished folder of a record. It holds `first` (the plan) before anything runs."""

    def __init__(self, runs: Path, kind: Kind[Any], label: str, first: Mapping[str, msgspec.Struct]) -> None:
        super().__init__(runs, label, {name: folder.encode(each) for name, each in first.items()})
        self._kind = kind

    def finish(self, record: msgspec.Struct, beside: Mapping[str, bytes] = _NOTHING) -> Path:
        """Write the record, the files beside it and a statement about them. Returns the complete folder, to which
        `folder.add_pages` adds the page."""
        files = {self._kind.file: folder.encode(record), **beside}
        about = statement.statement_of({**self.first, **files}, self._kind.name, self._kind.file)
        return self.seal({**files, STATEMENT: about})
