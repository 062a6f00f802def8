"""Single reports of a sanitizer: the frames that they name, and how equal ones become one finding."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from audit.records.sanitize import Finding, Severity, Side, Tool
from audit.sanitize.ranges import Point, ranges

RAW_LIMIT = 4000  # characters of a report that are kept

_RUNTIME = "audit/simt/"  # in the path of every file of the host runtime, whatever the compiler wrote before it
_KERNEL_OF = re.compile(r"simt::KernelOf<&\((.+)\)>::call")
_SHARED, _BUFFERS = "exact_shared_memory.cc", "exact_buffers.cc"

Taking: TypeAlias = tuple[Collection[Point], Collection[Point]]  # the threads and the blocks of a side
NOBODY: Taking = ((), ())


class Frame(NamedTuple):
    """A frame of a stack: a demangled function with its parameters, and a place as the tool wrote it."""

    function: str
    file: str = ""
    line: int = 0


class Record(NamedTuple):
    """One report before equal ones are collapsed. `taking` tells of each side who took part; `times` how often the
    tool saw the same."""

    kind: str
    kernel: str
    message: str
    sides: tuple[Side, ...]
    taking: tuple[Taking, ...]
    raw: str
    times: int = 1
    severity: Severity = "error"


class Names(NamedTuple):
    """What is known of the project: its files, and the kernels that were to be launched, as a finding names them."""

    sources: Sequence[str]
    entries: Sequence[str]

    def file(self, path: str) -> str:
        """A file of the project by its name there; empty for any other, the runtime's included."""
        if _RUNTIME in path:
            return ""
        matching = [source for source in self.sources if path == source or path.endswith(f"/{source}")]
        return max(matching, key=len, default="")

    def entry(self, function: str) -> str:
        """A kernel as the launch spells it, where that is clear; else by its demangled name."""
        name = plain(function)
        alike = [entry for entry in self.entries if _base(entry) == _base(name)]
        return alike[0] if name not in self.entries and len(alike) == 1 else name

    def kernel(self, stack: Sequence[Frame]) -> str:
        """The kernel that a stack lies in: what the runtime called, or the outermost function of the project."""
        for frame in stack:
            if called := _KERNEL_OF.search(frame.function):
                return self.entry(called[1])
        inside = [frame for frame in stack if self.file(frame.file)]
        return self.entry(inside[-1].function) if inside else ""

    def side(self, what: str, stack: Sequence[Frame]) -> Side:
        """A side at the innermost frame of the project, or at the innermost of all by the last part of its path."""
        for frame in stack:
            if file := self.file(frame.file):
                return Side(what, plain(frame.function), file, frame.line)
        for frame in stack:
            return Side(what, plain(frame.function), frame.file.rsplit("/", 1)[-1], frame.line)
        return Side(what)

    def allocation(self, stack: Sequence[Frame]) -> Side | None:
        """Where the project declared a shared object; None for what it did not declare."""
        return self.side("allocation", stack) if any(self.file(frame.file) for frame in stack) else None


def memory_of(allocated: Sequence[Frame]) -> str:
    """What kind of memory an allocation of the runtime serves."""
    for frame in allocated:
        if frame.file.endswith(_SHARED):
            return " in shared memory"
        if frame.file.endswith(_BUFFERS):
            return " in a buffer"
    return ""


def plain(function: str) -> str:
    """A demangled name without return type, parameters and casts: `splits<6, 64>`, `Pages::operator()`."""
    name = re.sub(r"( const| volatile| &&?| \[clone [^]]*\])+$", "", function)
    if name.endswith(")"):
        name = name[: _opening(name)]
    name = re.sub(r"\([\w ]+\)(?=-?\d)", "", name)  # (int)6 as a template's argument
    if "operator " in name:
        return name
    depth = 0
    for at in range(len(name) - 1, -1, -1):
        depth += (name[at] in ")>}") - (name[at] in "(<{")
        if depth == 0 and name[at] == " ":
            return name[at + 1 :]
    return name


def collapsed(tool: Tool, records: Sequence[Record]) -> tuple[Finding, ...]:
    """Records of the same kind, kernel and places become one finding, the sides of a race in either order."""
    groups: dict[tuple[object, ...], list[Record]] = {}
    for record in records:
        sides = frozenset(Counter(record.sides).items())
        said = () if record.kind == "race" else (record.severity, record.message)
        groups.setdefault((record.kind, record.kernel, sides, *said), []).append(record)
    return tuple(_finding(tool, group) for group in groups.values())


def _finding(tool: Tool, group: Sequence[Record]) -> Finding:
    first = group[0]
    taking = [_aligned(record, first.sides) for record in group]
    sides = tuple(
        msgspec.structs.replace(
            side,
            threads=ranges({thread for one in taking for thread in one[at][0]}),
            blocks=ranges({block for one in taking for block in one[at][1]}),
        )
        for at, side in enumerate(first.sides)
    )
    count = sum(record.times for record in group)
    severity: Severity = "error" if any(record.severity == "error" for record in group) else "warning"
    return Finding(tool, first.kind, severity, first.kernel, first.message, sides, count, first.raw[:RAW_LIMIT])


def _aligned(record: Record, sides: tuple[Side, ...]) -> tuple[Taking, ...]:
    """Who took part, in the order of `sides`: a pair of places may have met the other way round."""
    if record.sides == sides:
        return record.taking
    return tuple(record.taking[record.sides.index(side)] for side in sides)


def _base(name: str) -> str:
    return name.partition("<")[0].rpartition("::")[2].strip()


def _opening(name: str) -> int:
    """Where the parenthesis opens that the last character closes."""
    depth = 0
    for at in range(len(name) - 1, -1, -1):
        depth += (name[at] == ")") - (name[at] == "(")
        if depth == 0:
            return at
    return len(name)
