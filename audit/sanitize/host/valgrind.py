"""Parses the XML of valgrind's memcheck into reports.

The XML is complete if it is well formed to its end, records the end of the program, and counts exactly the errors that
it lists. A truncated XML keeps the errors before the cut.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from audit import foreign
from audit.foreign import ForeignError
from audit.sanitize.collapse import NOBODY, Frame, Names, RawReport, memory_of
from audit.sanitize.host.log import LogSummary

START = "<?xml"
_EXPECTED = frozenset(
    (
        *("protocolversion", "protocoltool", "preamble", "pid", "ppid", "tool", "args"),
        *("status", "error", "errorcounts", "suppcounts"),
    )
)
_LOAD = re.compile(r"__tsan_(?:unaligned_)?read(?P<plain>\d+)|__tsan_atomic(?P<atomic>\d+)_\w+")
_SIZED = re.compile(r".*\b(read|write) of size (\d+)")
_UNSET = frozenset(("UninitCondition", "UninitValue", "SyscallParam"))


def parse_valgrind(text: str, names: Names) -> LogSummary:
    """Parse the XML; an empty text is a missing report."""
    if not text.strip():
        return LogSummary((), ("valgrind wrote no report",))
    elements, troubles = _elements(text)
    for element in elements:
        if element.tag not in _EXPECTED:
            troubles.append(f"valgrind wrote <{element.tag}>: {' '.join(''.join(element.itertext()).split())[:200]}")
    tool = [element.text for element in elements if element.tag == "protocoltool"]
    states = [element.findtext("state") for element in elements if element.tag == "status"]
    counts = [element for element in elements if element.tag == "errorcounts"]
    if tool != ["memcheck"] or states != ["RUNNING", "FINISHED"] or len(counts) != 1:
        troubles.append(
            "valgrind's report is incomplete: expected memcheck, its start, its end and its counts, once each"
        )
    times = {pair.findtext("unique"): _number(pair.findtext("count")) for each in counts for pair in each}
    errors = [element for element in elements if element.tag == "error"]
    if sorted(map(str, times)) != sorted(str(error.findtext("unique")) for error in errors):
        troubles.append(f"valgrind counts {len(times)} kinds of errors, but lists {len(errors)}")
    records = tuple(_record(error, max(times.get(error.findtext("unique"), 1), 1), names) for error in errors)
    return LogSummary(records, tuple(troubles), sum(times.values()) if len(counts) == 1 else None)


def _elements(text: str) -> tuple[list[Element], list[str]]:
    """The complete elements directly below the root, and the problems of the text."""
    elements: list[Element] = []
    try:
        for event, element, depth in foreign.xml_events(text):
            if depth == 0 and element.tag != "valgrindoutput":
                return [], [f"expected valgrind's report to be <valgrindoutput>, but got <{element.tag}>"]
            if event == "end" and depth == 1:
                elements.append(element)
    except ForeignError as error:
        return elements, [f"valgrind's report is malformed: {error}"]
    return elements, []


def _record(error: Element, times: int, names: Names) -> RawReport:
    """An error with its stack, and the stack of the allocation if memcheck knows it."""
    stacks = [[_frame(frame) for frame in stack] for stack in error.iter("stack")]
    at = stacks[0] if stacks else []
    allocated = stacks[1] if len(stacks) > 1 else []
    kind, text = error.findtext("kind") or "", error.findtext("what") or error.findtext("xwhat/text") or ""
    sides = [names.side(_what(kind, text, at), at), *filter(None, [names.allocation(allocated)])]
    return RawReport(
        kind=_kind(kind, text, error.findtext("auxwhat") or ""),
        kernel=names.kernel(at),
        message=text + memory_of(allocated),
        sides=tuple(sides),
        taking=(NOBODY,) * len(sides),
        raw=_raw(error),
        times=times,
    )


def _kind(kind: str, text: str, where: str) -> str:
    if kind in _UNSET or (kind == "ClientCheck" and text.startswith("Uninitialised")):
        return "uninitialised"
    beside = re.search(r" is [\d,]+ bytes (?:before|after) ", where)
    return "out-of-bounds" if beside or kind == "ClientCheck" else "invalid-access"


def _what(kind: str, text: str, stack: list[Frame]) -> str:
    """The access in words. The runtime's check stands for a load by the kernel; its name has the size."""
    for frame in stack:
        if load := _LOAD.fullmatch(frame.function.partition("(")[0]):
            size = _number(load["plain"]) or _number(load["atomic"]) // 8
            return f"{'atomic ' if load['atomic'] else ''}read of size {size} bytes"
    if sized := _SIZED.fullmatch(text):
        return f"{sized[1]} of size {sized[2]} bytes"
    return {"UninitCondition": "condition", "ClientCheck": "read"}.get(kind, "use")


def _frame(frame: Element) -> Frame:
    folder, file = frame.findtext("dir"), frame.findtext("file") or ""
    path = f"{folder}/{file}" if folder and file else file
    return Frame(frame.findtext("fn") or "", path, _number(frame.findtext("line")))


def _raw(error: Element) -> str:
    """The error's XML, without paths and addresses of this machine."""
    for frame in error.iter("frame"):
        for name in ("obj", "ip"):
            for element in frame.findall(name):
                frame.remove(element)
    return ElementTree.tostring(error, encoding="unicode").strip()


def _number(text: str | None) -> int:
    return int(text) if text and len(text) < 19 and text.isascii() and text.isdigit() else 0
