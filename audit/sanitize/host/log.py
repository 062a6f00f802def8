"""Parses the logs of ThreadSanitizer, AddressSanitizer and UBSan into reports.

A run without a finding leaves an empty log. So every line must be one of `known`, or part of a report whose every line
is known. Any other line is a trouble, and so is a report that lacks a part.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from audit.records.sanitize import Tool
from audit.sanitize.collapse import NOBODY, Frame, Names, RawReport, Taking, memory_of
from audit.sanitize.ranges import point

_LONGEST = 2**16  # characters of a line
_NUMBER = re.compile(r"\d{19}")
_SHOWN = 200  # characters of an unknown line

_FRAME = re.compile(r"    #\d+ (?:0x[0-9a-f]+ in |0x[0-9a-f]+ +(?=\())?(.+)")
_MODULE = re.compile(r" ?\([^ ()]*(?:\+0x[0-9a-f]+|<unknown module>)\)(?: \(BuildId: \w+\))?$")
_LOCATED = re.compile(r"(?P<function>.+) (?P<file>\S+?)(?::(?P<line>\d+))?(?::\d+)?")

_RACE_RULE, _ADDRESS_RULE = "=" * 18, "=" * 65
_WARNING = re.compile(r"WARNING: ThreadSanitizer: (?P<title>.+?) \(pid=\d+\)")
_ACCESS = re.compile(
    r"  (?P<access>(?:Previous |previous )?(?:[Aa]tomic )?(?:[Rr]ead|[Ww]rite)) of size (?P<size>\d+) at 0x[0-9a-f]+ "
    r"by (?P<who>main thread|thread T\d+):"
)
_LOCATION = re.compile(r"  Location is (?P<what>\w+(?: \w+)*).*")
_THREAD = re.compile(r"  Thread (?P<who>T\d+) (?:'(?P<name>.*)' )?\(tid=\d+, \w+\) created by .+ at:")
_NAMED = re.compile(r"block \((\d+),(\d+),(\d+)\) thread \((\d+),(\d+),(\d+)\)")
_SUMMARY = re.compile(r"SUMMARY: (?:Thread|Address)Sanitizer: .+")
_REPORTED = re.compile(r"ThreadSanitizer: reported (\d+) warnings")
_RACE_BODY = (
    re.compile(r"|    #\d+ .+|    \[failed to restore the stack\]"),
    *(_ACCESS, _LOCATION, _THREAD, _SUMMARY),
)
_SEVERAL = "simt::Block::turn_main("  # threads run in turn on one fiber, so its name belongs to none of them

_ERROR = re.compile(r"==\d+==ERROR: AddressSanitizer: (?P<title>[\w-]+) on (?:unknown )?address 0x[0-9a-f]+ .+")
_SIZED = re.compile(r"(?P<access>READ|WRITE) of size (?P<size>\d+) at 0x[0-9a-f]+ thread T\d+")
_SIGNAL = re.compile(r"==\d+==The signal is caused by an? (?P<access>READ|WRITE|UNKNOWN) memory access\.")
_REGION = re.compile(
    r"0x[0-9a-f]+ is located \d+ bytes (?P<where>to the (?:right|left) of|after|before|inside of) (?P<size>\d+)-byte .+"
)
_ALLOCATED = re.compile(r"(?:previously )?allocated by thread T\d+ here:")
_ADDRESS_BODY = (
    *(_SIZED, _SIGNAL, _REGION, _ALLOCATED, _SUMMARY),
    re.compile(r"|    #\d+ .+|freed by thread T\d+ here:"),
    re.compile(r"0x[0-9a-f]+ is located .+|Address 0x[0-9a-f]+ is .+|  This frame has \d+ object\(s\):"),
    re.compile(r"    \[\d+, \d+\) .+|HINT: .+|      \(longjmp .+|AddressSanitizer can not provide additional info\."),
    re.compile(r"Shadow bytes around the buggy address:|(?:  |=>)0x[0-9a-f]+:[ \[\]0-9a-f]+"),
    re.compile(r"Shadow byte legend .+|  [A-Z][\w ]+:(?: +[0-9a-f]{2})+ *"),
    re.compile(r"==\d+==(?:Hint: .+|ABORTING)"),
)
_OUTSIDE = re.compile(r".*-(?:over|under)flow|use-after-poison|unknown-crash")
_DEADLY = "AddressSanitizer:DEADLYSIGNAL"

_UNDEFINED = re.compile(r"(?:(?P<file>[^:]+):(?P<line>\d+):\d+|<unknown>): runtime error: (?P<text>.+)")
_UNDEFINED_BODY = re.compile(
    r"    #\d+ .+|0x[0-9a-f]+: note: pointer points here|<memory cannot be printed>|[ 0-9a-f]+|\s*\^\s*"
)
_UNDEFINED_KINDS = (
    (re.compile(r".*misaligned address.*"), "misaligned"),
    (re.compile(r"index .+ out of bounds .+"), "out-of-bounds"),
    (re.compile(r".*null pointer.*"), "invalid-access"),
    (re.compile(r".*"), "undefined"),
)
_UNDEFINED_ACCESS = {"load": "read", "store": "write", "index": "index", "member": "access", "reference": "reference"}


class LogSummary(NamedTuple):
    """The content of a log. `counted` is the tool's own count of its reports, or None."""

    records: tuple[RawReport, ...]
    troubles: tuple[str, ...]
    counted: int | None = None


class _Log:
    """The lines of a log, read from its start. Each run of unknown lines becomes one trouble."""

    def __init__(self, text: str, known: Collection[str]) -> None:
        self.lines, self.at, self._known = [*map(readable, text.split("\n"))], 0, known
        self.troubles: list[str] = []
        self._odd: list[str] = []

    def __iter__(self) -> Iterator[str]:
        while self.at < len(self.lines):
            line = self.lines[self.at]
            self.at += 1
            if line in self._known:
                continue
            if line.strip():
                yield line
        self.flush()

    def odd(self, line: str) -> None:
        """Note an unknown line."""
        self._odd.append(line)

    def flush(self) -> None:
        """End the current run of unknown lines."""
        if self._odd:
            more = f" (and {len(self._odd) - 1} more lines)" if len(self._odd) > 1 else ""
            self.troubles.append(f"unknown line: {self._odd[0].strip()[:_SHOWN]}{more}")
        self._odd = []

    def next(self) -> str:
        """The next line."""
        return self.lines[self.at] if self.at < len(self.lines) else ""

    def block(self, ends: Callable[[str], bool]) -> list[str]:
        """The lines before the one that ends the block, or before the log's end, without known lines."""
        self.flush()
        start = self.at
        while self.at < len(self.lines) and not ends(self.lines[self.at]):
            self.at += 1
        return [line for line in self.lines[start : self.at] if line not in self._known]


def readable(line: str) -> str:
    """The line, unless it is longer, or holds a longer number, than any that a sanitizer writes."""
    return line if len(line) <= _LONGEST and not _NUMBER.search(line) else f"unreadable: {line[:_SHOWN]}"


def parse_log(tool: Tool, text: str, names: Names, known: Collection[str]) -> LogSummary:
    """Parse a log of racecheck, memcheck or synccheck; `known` are other lines that it may contain."""
    log = _Log(text, known)
    if tool == "racecheck":
        return _races(log, names)
    if tool == "memcheck":
        return _addresses(log, names)
    for line in log:
        log.odd(line)
    return LogSummary((), tuple(log.troubles))


def _races(log: _Log, names: Names) -> LogSummary:
    records: list[RawReport] = []
    counts: list[int] = []
    for line in log:
        if count := _REPORTED.fullmatch(line):
            counts.append(int(count[1]))
        elif line == _RACE_RULE and (head := _WARNING.fullmatch(log.next())):
            body = log.block(lambda line: line == _RACE_RULE)
            if log.next() != _RACE_RULE:
                log.troubles.append(f"incomplete report: {body[0]}")
            log.at += 1
            records.append(_race(head["title"], body, names))
            log.troubles.extend(_flaws(body, _RACE_BODY))
            if len(records[-1].sides) != 2:
                log.troubles.append(f"expected 2 accesses in a report, but got {len(records[-1].sides)}: {body[0]}")
        else:
            log.odd(line)
    if records and len(counts) != 1:
        log.troubles.append(f"expected one count of ThreadSanitizer's warnings, but got {len(counts)}")
    counted = counts[0] if len(counts) == 1 else None
    if counted is not None and counted != len(records):
        log.troubles.append(f"ThreadSanitizer reported {counted} warnings, but the log has {len(records)}")
    return LogSummary(tuple(records), tuple(log.troubles), counted)


def _race(title: str, body: Sequence[str], names: Names) -> RawReport:
    accesses, allocated = [], list[Frame]()
    by_thread: dict[str, Taking] = {}
    for head, stack in _sections(body):
        if access := _ACCESS.fullmatch(head):
            accesses.append((access, stack))
        elif _LOCATION.fullmatch(head):
            allocated = stack
        elif (thread := _THREAD.fullmatch(head)) and (named := _NAMED.fullmatch(thread["name"] or "")):
            by_thread[thread["who"]] = ([point(named.groups()[3:])], [point(named.groups()[:3])])
    sides, taking = [], []
    for access, stack in accesses:
        what = access["access"].lower().removeprefix("previous ")
        sides.append(names.side(f"{what} of size {access['size']} bytes", stack))
        several = any(_SEVERAL in frame.function for frame in stack)
        taking.append(NOBODY if several else by_thread.get(access["who"].removeprefix("thread "), NOBODY))
    kernel = next(filter(None, (names.kernel(stack) for _, stack in accesses)), "")
    kind = "race" if title == "data race" else "invalid-access"
    return RawReport(kind, kernel, title + memory_of(allocated), tuple(sides), tuple(taking), "\n".join(body))


def _addresses(log: _Log, names: Names) -> LogSummary:
    records: list[RawReport] = []
    for line in log:
        if line == _DEADLY and log.next() == _ADDRESS_RULE:
            continue
        if line == _ADDRESS_RULE and (head := _ERROR.fullmatch(log.next())):
            body = log.block(lambda line: line in (_ADDRESS_RULE, _DEADLY) or bool(_UNDEFINED.fullmatch(line)))
            records.append(_address(head["title"], body, names))
            log.troubles.extend(_flaws(body, _ADDRESS_BODY))
            heads = sum(bool(_SIZED.fullmatch(line) or _SIGNAL.fullmatch(line)) for line in body)
            if heads != 1:
                log.troubles.append(f"expected one access in a report, but got {heads}: {body[0]}")
        elif undefined := _UNDEFINED.fullmatch(line):
            body = [line, *log.block(lambda line: not _UNDEFINED_BODY.fullmatch(line))]
            records.append(_undefined(undefined, body, names))
        else:
            log.odd(line)
    return LogSummary(tuple(records), tuple(log.troubles))


def _address(title: str, body: Sequence[str], names: Names) -> RawReport:
    what, message, stacks, allocated = "access", title, list[list[Frame]](), list[Frame]()
    for head, stack in _sections(body):
        if access := _SIZED.fullmatch(head):
            what = f"{access['access'].lower()} of size {access['size']} bytes"
        elif signal := _SIGNAL.fullmatch(head):
            what = {"READ": "read", "WRITE": "write"}.get(signal["access"], "access")
        elif region := _REGION.fullmatch(head):
            message += f" {region['where']} a {region['size']}-byte region"
        elif _ALLOCATED.fullmatch(head):
            allocated = stack
        if stack:
            stacks.append(stack)
    at = stacks[0] if stacks else []
    sides = [names.side(what, at), *filter(None, [names.allocation(allocated)])]
    kind = "out-of-bounds" if _OUTSIDE.fullmatch(title) else "crash" if title == "FPE" else "invalid-access"
    kernel = names.kernel(at)
    return RawReport(
        kind, kernel, message + memory_of(allocated), tuple(sides), (NOBODY,) * len(sides), "\n".join(body)
    )


def _undefined(head: re.Match[str], body: Sequence[str], names: Names) -> RawReport:
    """The side is the line that the report's head names, unless that is in a runtime header that the kernel called."""
    stack = [frame for _, frames in _sections(body) for frame in frames]
    message = re.sub(r"\b(address) 0x[0-9a-f]+", r"\1", head["text"])
    kind = next(kind for pattern, kind in _UNDEFINED_KINDS if pattern.fullmatch(message))
    what = _UNDEFINED_ACCESS.get(message.partition(" ")[0], "operation")
    side = names.side(what, stack)
    if head["file"] and (file := names.file(head["file"])):
        function = next((frame.function for frame in stack if names.file(frame.file) == file), "")
        side = names.side(what, [Frame(function, file, int(head["line"]))])
    return RawReport(kind, names.kernel(stack), message, (side,), (NOBODY,), "\n".join(body))


def _flaws(body: Sequence[str], patterns: Sequence[re.Pattern[str]]) -> Iterator[str]:
    """Every reason to take a report as incomplete. A stack after its summary belongs to a report that was lost."""
    summaries = 0
    for line in body[1:]:
        summaries += bool(_SUMMARY.fullmatch(line))
        stray = summaries > 0 and _FRAME.fullmatch(line)
        if stray or not any(pattern.fullmatch(line) for pattern in patterns):
            yield f"unknown line: {line.strip()[:_SHOWN]}"
    if summaries != 1:
        yield f"expected one summary in a report, but got {summaries}: {body[0]}"


def _sections(body: Sequence[str]) -> Iterator[tuple[str, list[Frame]]]:
    """Every line that is not a frame, with the frames below it."""
    head, stack = "", list[Frame]()
    for line in body:
        if frame := _FRAME.fullmatch(line):
            stack.append(_frame(frame[1]))
        else:
            yield head, stack
            head, stack = line, []
    yield head, stack


def _frame(text: str) -> Frame:
    located = _LOCATED.fullmatch(_MODULE.sub("", text))
    if located is None or located["file"] == "<null>":
        return Frame(_MODULE.sub("", text).removesuffix(" <null>"))
    return Frame(located["function"], located["file"], int(located["line"] or 0))
