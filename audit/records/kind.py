"""What the tool must know of a kind of record: how its folder looks, what can be derived from it, what it says.

`audit.records.kinds` lists all kinds. A new one is a module with its schema and a `Kind`, one line in that list, and a
page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from audit.checks.result import Verdict
from audit.compile.identity import BuildIdentity
from audit.errors import EvidenceError
from audit.printable import one_line
from audit.records import folder, packing, statement
from audit.records.machine import Machine
from audit.records.statement import STATEMENT

PLAN = "plan.json"
_CONTRADICTIONS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


class AnyRecord(Protocol):
    """What every record has. `builds` maps a name or key to what was built from which sources."""

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
    def machine(self) -> Machine: ...
    @property
    def builds(self) -> dict[str, BuildIdentity]: ...


class Headline(msgspec.Struct, frozen=True):
    """A record in a line: what it is about, its verdict, its counts, and the first thing that is wrong."""

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
    optional    other files that it may hold; whatever else lies there was rendered from these
    lacks       what was planned and has no result, a sentence each
    disagrees   (record, unpacked files): where its parts contradict one another, a sentence each
    headline    what a list says of it
    captures    capture -> sha256 of its manifest, of the captures that it used
    page        the module that renders it: `pages(record, files, context)` and `points(record)`
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
    optional: tuple[str, ...] = ()
    captures: Callable[[_Record], Mapping[str, str | None]] = lambda _record: {}

    @property
    def files(self) -> tuple[str, ...]:
        """The files that are evidence: all others of a folder are rendered from them."""
        return (self.file, *self.beside, *self.optional)

    def load(self, path: Path) -> _Record:
        """Read a record from its folder, or from its file there. EvidenceError says what is wrong with it."""
        return self.read(path)[0]

    def read(self, path: Path) -> tuple[_Record, dict[str, bytes]]:
        """A record and the unpacked files of its folder. EvidenceError says what is wrong with it."""
        home = path.parent if path.name != folder.SUMS and packing.plain(path.name) == self.file else path
        found = folder.verified(home)
        folder.require(found, (self.file, *self.beside), home)
        return self.decode(found[self.file], home / self.file), found

    def contradictions(self, record: _Record, files: Mapping[str, bytes]) -> Iterator[str]:
        """Where the parts of a record and its statement contradict one another, a sentence each."""
        yield from _as_far_as_possible(self.disagrees(record, files))
        if STATEMENT in files and not statement.agrees(files, self.name, self.file, self.files):
            yield f"{STATEMENT} is not the statement about this record"

    def gaps(self, record: _Record) -> Iterator[str]:
        """What was planned and has no result, a sentence each."""
        yield from _as_far_as_possible(self.lacks(record))

    def decode(self, raw: bytes, where: Path) -> _Record:
        """A record from its JSON, the schema version checked first."""
        return folder.decode(raw, where, self.record, *self.schemas)


def _as_far_as_possible(sentences: Iterator[str]) -> Iterator[str]:
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
        places = " and ".join(map(str, homes))
        raise EvidenceError(
            f"{places}: contradicts itself, so that nothing can be made of it ({type(error).__name__}: "
            f"{one_line(error)}); `audit verify` says where"
        ) from error


class Draft(folder.Partial):
    """A record's folder while it is made: `first` (the plan) stands in it before anything runs."""

    def __init__(self, runs: Path, kind: Kind[Any], label: str, first: Mapping[str, msgspec.Struct]) -> None:
        super().__init__(runs, label, {name: folder.encode(each) for name, each in first.items()})
        self._kind = kind

    def finish(self, record: msgspec.Struct, beside: Mapping[str, bytes]) -> Path:
        """Write the record, the files beside it and a statement about them; the folder, never written again."""
        files = {self._kind.file: folder.encode(record), **beside}
        about = statement.statement_of({**self.first, **files}, self._kind.name, self._kind.file)
        return self.seal({**files, STATEMENT: about})
