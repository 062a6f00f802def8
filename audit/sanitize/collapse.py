"""Collapses equal reports of a sanitizer into one finding, and names kernels and files in their frames."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from audit.records.sanitize import Severity, Side, Tool, ToolFinding
from audit.sanitize.ranges import Point, ranges

RAW_LIMIT = 4000  # a finding keeps this many characters of its report

_RUNTIME = "audit/simt/"  # part of the path of every file of the host runtime
_KERNEL_OF = re.compile(r"simt::KernelOf<&\((.+)\)>::call")
_SHARED, _BUFFERS = "exact_shared_memory.cc", "exact_buffers.cc"

Taking: TypeAlias = tuple[Collection[Point], Collection[Point]]  # the threads and blocks on one side of a finding
NOBODY: Taking = ((), ())


class Frame(NamedTuple):
    """A frame of a stack: a demangled function with its parameters, and the file and line as the tool wrote them."""

    function: str
    file: str = ""
    line: int = 0


class RawReport(NamedTuple):
    """One report before equal ones collapse. `taking` has the threads and blocks of each side, `times` the number of
    equal reports that the tool counted."""

    kind: str
    kernel: str
    message: str
    sides: tuple[Side, ...]
    taking: tuple[Taking, ...]
    raw: str
    times: int = 1
    severity: Severity = "error"


class Names(NamedTuple):
    """The names that findings use: the project's files and its planned kernels."""

    sources: Sequence[str]
    entries: Sequence[str]

    def file(self, path: str) -> str:
        """The project's name of a file; empty for any other file, including the runtime's."""
        if _RUNTIME in path:
            return ""
        matching = [source for source in self.sources if path == source or path.endswith(f"/{source}")]
        return max(matching, key=len, default="")

    def entry(self, function: str) -> str:
        """A kernel as the launch spells it, or by its demangled name if several entries match."""
        name = plain_function(function)
        alike = [entry for entry in self.entries if _base(entry) == _base(name)]
        return alike[0] if name not in self.entries and len(alike) == 1 else name

    def kernel(self, stack: Sequence[Frame]) -> str:
        """The kernel of a stack: the function that the runtime called, or the project's outermost function."""
        for frame in stack:
            if called := _KERNEL_OF.search(frame.function):
                return self.entry(called[1])
        inside = [frame for frame in stack if self.file(frame.file)]
        return self.entry(inside[-1].function) if inside else ""

    def side(self, what: str, stack: Sequence[Frame]) -> Side:
        """A side at the project's innermost frame; without one, at the innermost frame, by its file's base name."""
        for frame in stack:
            if file := self.file(frame.file):
                return Side(what, plain_function(frame.function), file, frame.line)
        for frame in stack:
            return Side(what, plain_function(frame.function), frame.file.rsplit("/", 1)[-1], frame.line)
        return Side(what)

    def allocation(self, stack: Sequence[Frame]) -> Side | None:
        """The project's declaration of a shared object; None for an object that it did not declare."""
        return self.side("allocation", stack) if any(self.file(frame.file) for frame in stack) else None


def memory_of(allocated: Sequence[Frame]) -> str:
    """The kind of memory that an allocation of the runtime serves."""
    for frame in allocated:
        if frame.file.endswith(_SHARED):
            return " in shared memory"
        if frame.file.endswith(_BUFFERS):
            return " in a buffer"
    return ""


def plain_function(function: str) -> str:
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


def collapsed(tool: Tool, reports: Sequence[RawReport]) -> tuple[ToolFinding, ...]:
    """Reports of the same kind, kernel and source lines become one finding. A race's sides may be in either order."""
    groups: dict[tuple[object, ...], list[RawReport]] = {}
    for report in reports:
        sides = frozenset(Counter(report.sides).items())
        text = () if report.kind == "race" else (report.severity, report.message)
        groups.setdefault((report.kind, report.kernel, sides, *text), []).append(report)
    return tuple(_finding(tool, group) for group in groups.values())


def _finding(tool: Tool, group: Sequence[RawReport]) -> ToolFinding:
    first = group[0]
    taking = [_aligned(report, first.sides) for report in group]
    sides = tuple(
        msgspec.structs.replace(
            side,
            threads=ranges({thread for sides in taking for thread in sides[at][0]}),
            blocks=ranges({block for sides in taking for block in sides[at][1]}),
        )
        for at, side in enumerate(first.sides)
    )
    count = sum(report.times for report in group)
    severity: Severity = "error" if any(report.severity == "error" for report in group) else "warning"
    return ToolFinding(tool, first.kind, severity, first.kernel, first.message, sides, count, first.raw[:RAW_LIMIT])


def _aligned(report: RawReport, sides: tuple[Side, ...]) -> tuple[Taking, ...]:
    """The threads and blocks in the order of `sides`: a report of the same race may list its sides in reverse."""
    if report.sides == sides:
        return report.taking
    return tuple(report.taking[report.sides.index(side)] for side in sides)


def _base(name: str) -> str:
    return name.partition("<")[0].rpartition("::")[2].strip()


def _opening(name: str) -> int:
    """The position of the parenthesis that the last character closes."""
    depth = 0
    for at in range(len(name) - 1, -1, -1):
        depth += (name[at] == ")") - (name[at] == "(")
        if depth == 0:
            return at
    return len(name)
