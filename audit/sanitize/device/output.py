"""Parses compute-sanitizer's text and XML into findings, troubles and a count.

The tool writes its text as things happen and ends it with a summary. It writes the XML last, and only if it ends by
itself. A report is complete if its text begins with the tool's name, ends with one summary, and has only known lines
between them, and if text, XML and summary have the same number of records. The formats are those of 2025.3 and of the
manual of 2026.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from audit import foreign
from audit.foreign import ForeignError
from audit.records.sanitize import Severity, Tool, ToolFinding
from audit.sanitize.collapse import NOBODY, Frame, Names, RawReport, Taking, collapsed, plain_function
from audit.sanitize.ranges import point

_LONGEST = 2**16  # characters of a line
_NUMBER = re.compile(r"\d{19}")
_PREFIX = "========="
_TITLE = "COMPUTE-SANITIZER"
CONSEQUENCES = frozenset({"Target application returned an error", "Error: process didn't terminate successfully"})
"""The lines that the tool adds after any failure of its target."""

_ERRORS = re.compile(r"ERROR SUMMARY: (?:(1) error|(0|[2-9]|[1-9]\d+) errors)")
_HAZARDS = re.compile(
    r"RACECHECK SUMMARY: (?:(1) hazard|(0|[2-9]|[1-9]\d+) hazards) displayed "
    r"\((?:(1) error|(0|[2-9]|[1-9]\d+) errors), (?:(1) warning|(0|[2-9]|[1-9]\d+) warnings)\)"
)
_LEAKS = re.compile(r"LEAK SUMMARY: \d+ bytes leaked in \d+ allocations")

_AT_CODE = r"(?P<function>.+)\+(?P<pc>0x[0-9a-f]+)(?: in (?P<file>.+):(?P<line>\d+))?"
_POINT = r"\((\d+),(\d+),(\d+)\)"
_CLONE = re.compile(r"^\[clone (.+?)\] ")
_AT = re.compile(rf"at {_AT_CODE}")
_BY = re.compile(rf"by thread {_POINT} in block {_POINT}")
_FRAME = re.compile(rf"Device Frame: ?{_AT_CODE}")
_ACCESS = re.compile(rf"(?P<access>Read|Write|Atomic) Thread {_POINT} at {_AT_CODE}")
_AND = re.compile(rf"and (?P<access>[A-Z]\w+) access at {_AT_CODE} \[(?P<hazards>\d+) hazards?\]")
_DETAILS = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?:Access to|Address) 0x[0-9a-f]+(?P<why> is .+)?",
        r"and is .+ the nearest allocation at 0x[0-9a-f]+ of size [\d,]+ bytes?",
        r"Current Value : -?\d+(?:, Incoming Value : -?\d+)?",
        r"Uninitialized access to 0x[0-9a-f]+ on access by .+",
        r"Device Frame: ?.+",
        r"Saved host backtrace up to driver entry point at .+",
        r"Host Frame: ?.+",
    )
)

_HAZARD = re.compile(
    r"(?P<level>Error|Warning|Info): "
    r"(?P<text>(?:\(Warp Level Programming\) )?Potential (?:RAW|WAR|WAW) hazard detected) "
    rf"at __shared__ 0x[0-9a-f]+ in block {_POINT} :"
)
_RACE = re.compile(rf"(?P<level>Error|Warning|Info): Race reported between (?P<access>[A-Z]\w+) access at {_AT_CODE}")
_INVALID = re.compile(r"(?:Potential i|I)nvalid __\w+__ (?P<what>\w+(?: \w+)*? of size [\d,]+ bytes?)")
_HEADS = (
    (re.compile(r"Uninitialized __\w+__ memory (?P<what>\w+ of size [\d,]+ bytes?)"), "uninitialised"),
    (re.compile(r"Host API memory access error at host access to 0x[0-9a-f]+ of size [\d,]+ bytes?"), "uninitialised"),
    (re.compile(r"Barrier error detected\. Divergent thread\(s\) in (?:block|warp)\."), "divergent-barrier"),
    (re.compile(r"Barrier error detected\. .+"), "invalid-barrier"),
    (re.compile(r"Program hit \S+ \(error \d+\)(?: due to \".*\")? on CUDA API call to \w+\."), "api-error"),
    (re.compile(r"Leaked [\d,]+ bytes at 0x[0-9a-f]+(?: on the device heap)?"), "leak"),
    (re.compile(r"Malloc/Free error encountered : .+"), "device-heap"),
)


class Report(msgspec.Struct, frozen=True):
    """A tool's report. Each finding has `count` records; `reported` is the count in the summary."""

    complete: bool
    reported: int | None
    findings: tuple[ToolFinding, ...]
    troubles: tuple[str, ...]


class _Line(NamedTuple):
    number: int
    indent: int  # 0: the first of a record
    text: str


def parse_tool_output(tool: Tool, text: str, xml: str | None, sources: Sequence[str]) -> Report:
    """Parse the log and the XML (None if there is none) of one run; `sources` are the names that findings use for the
    project's files."""
    lines, troubles = _lines(text)
    summary = _HAZARDS if tool == "racecheck" else _ERRORS
    reported: list[int] = []
    records: list[RawReport] = []
    names = Names(sources, ())
    last = lines[-1].number if lines else -1
    for head, details in _grouped(lines):
        if match := summary.fullmatch(head.text):
            counts = [int(one or many) for one, many in zip(match.groups()[::2], match.groups()[1::2], strict=True)]
            if head.number != last or details or (len(counts) == 3 and counts[0] != counts[1] + counts[2]):
                troubles.append(f"misplaced or inconsistent summary: {head.text}")
            reported.append(counts[0])
        elif record := _record(head, details, names):
            records.append(record)
        elif not (_LEAKS.fullmatch(head.text) and not details):
            troubles.append(" ".join((head.text, *(line.text for line in details))).strip())
    counted = _records_of(xml) if xml is not None else None
    if counted is not None and counted != len(records):
        troubles.append(f"the XML has {counted} records, but the text has {len(records)}")
    if reported and reported[0] != len(records):
        troubles.append(f"the summary counts {reported[0]} records, but the text has {len(records)}")
    framed = text.endswith("\n") and lines[:1] == [_Line(0, 0, _TITLE)] and len(reported) == 1 and counted is not None
    return Report(
        complete=framed and not troubles,
        reported=reported[0] if len(reported) == 1 else None,
        findings=collapsed(tool, _joined(records)),
        troubles=tuple(dict.fromkeys(troubles)),
    )


def _lines(text: str) -> tuple[list[_Line], list[str]]:
    """The tool's lines that are not empty, without their prefix, and a trouble for each line of another form."""
    lines, troubles = [], []
    for number, line in enumerate(text.split("\n")):
        rest = line.removeprefix(_PREFIX)
        if len(line) > _LONGEST or _NUMBER.search(line):
            troubles.append(f"a line that is too long, or has too long a number: {line[:200]!r}")
        elif line and (rest == line or (rest and not rest.startswith(" ")) or not line.isprintable()):
            troubles.append(f"unknown line: {line[:200]!r}")
        elif rest.strip():
            lines.append(_Line(number, len(rest) - len(rest.lstrip()) - 1, rest.strip()))
    return lines, troubles


def _grouped(lines: Sequence[_Line]) -> Iterator[tuple[_Line, list[_Line]]]:
    """Every first line with the indented lines below it, without the title."""
    at = 1 if lines[:1] == [_Line(0, 0, _TITLE)] else 0
    while at < len(lines):
        end = at + 1
        while end < len(lines) and lines[end].indent:
            end += 1
        yield lines[at], list(lines[at + 1 : end])
        at = end


def _record(head: _Line, details: Sequence[_Line], names: Names) -> RawReport | None:
    """The record of a first line and its details; None if one of them is unknown."""
    raw = "\n".join((head.text, *(" " * line.indent + line.text for line in details)))
    if hazard := _HAZARD.fullmatch(head.text):
        return _hazard(hazard, details, names, raw)
    if race := _RACE.fullmatch(head.text):
        return _race(race, details, names, raw)
    instructions = [match for line in details if (match := _AT.fullmatch(line.text))]
    threads = [match for line in details if (match := _BY.fullmatch(line.text))]
    others = [line for line in details if not (_AT.fullmatch(line.text) or _BY.fullmatch(line.text))]
    if len(instructions) > 1 or len(threads) > 1:
        return None
    if not all(any(known.fullmatch(line.text) for known in _DETAILS) for line in others):
        return None
    kind, what = _kind(head.text, details)
    if not kind:
        if not (instructions and threads):  # an unknown kind counts as a finding only with an instruction and a thread
            return None
        kind = "device-exception"
    frames = [match for line in details if (match := _FRAME.fullmatch(line.text))]
    what = what or ("barrier" if kind.endswith("-barrier") else "instruction")
    side = names.side(what, _stack([*instructions, *frames]))
    coordinates = [match.groups() for match in threads]
    taking: Taking = ([point(each[:3]) for each in coordinates], [point(each[3:]) for each in coordinates])
    kernel = _kernel((frames or instructions)[-1]["function"]) if instructions else ""
    message = head.text
    if why := next((match["why"] for line in details if (match := _DETAILS[0].fullmatch(line.text))), None):
        message += why
    if kind in ("leak", "uninitialised") and not instructions:
        message = re.sub(r" (?:at|to) 0x[0-9a-f]+", "", message)
    sides = (side,) if instructions else ()
    return RawReport(kind, kernel, message, sides, (taking,) * len(sides), raw)


def _kind(head: str, details: Sequence[_Line]) -> tuple[str, str]:
    if invalid := _INVALID.fullmatch(head):
        why = next((match["why"] or "" for line in details if (match := _DETAILS[0].fullmatch(line.text))), "")
        if "misaligned" in why:
            return "misaligned", invalid["what"]
        return "out-of-bounds" if "out of bounds" in why else "invalid-access", invalid["what"]
    for pattern, kind in _HEADS:
        if match := pattern.fullmatch(head):
            return kind, match.groupdict().get("what") or ""
    return "", ""


def _hazard(head: re.Match[str], details: Sequence[_Line], names: Names, raw: str) -> RawReport | None:
    """The record of a hazard. The tool lists the earlier access first, `ToolFinding.sides` the later one."""
    accesses = [match for line in details if (match := _ACCESS.fullmatch(line.text))]
    others = [line for line in details if not _ACCESS.fullmatch(line.text)]
    if len(accesses) != 2 or not all(any(known.fullmatch(line.text) for known in _DETAILS) for line in others):
        return None
    block = point(head.groups()[2:])
    sides, taking = [], list[Taking]()
    for access in reversed(accesses):
        sides.append(names.side(access["access"].lower(), _stack([access])))
        taking.append(([point(access.groups()[1:4])], [block]))
    severity: Severity = "error" if head["level"] == "Error" else "warning"
    kernel = _kernel(accesses[0]["function"])
    message = f"{head['text']} in shared memory"
    return RawReport("race", kernel, message, tuple(sides), tuple(taking), raw, severity=severity)


def _race(head: re.Match[str], details: Sequence[_Line], names: Names, raw: str) -> RawReport | None:
    """The record of a race analysis: one access and those that conflict with it, without threads."""
    others = [match for line in details if (match := _AND.fullmatch(line.text))]
    rest = [line for line in details if not (_AND.fullmatch(line.text) or _FRAME.fullmatch(line.text))]
    if not others or rest:
        return None
    sides = tuple(names.side(match["access"].lower(), _stack([match])) for match in (head, *others))
    severity: Severity = "error" if head["level"] == "Error" else "warning"
    message = "Race reported in shared memory"
    kernel = _kernel(head["function"])
    return RawReport("race", kernel, message, sides, (NOBODY,) * len(sides), raw, severity=severity)


def _stack(frames: Sequence[re.Match[str]]) -> list[Frame]:
    own = [_CLONE.sub("", frame["function"]) for frame in frames]
    return [Frame(name, frame["file"] or "", int(frame["line"] or 0)) for name, frame in zip(own, frames, strict=True)]


def _kernel(function: str) -> str:
    """The kernel of a function, which the compiler may have cloned for that kernel."""
    clone = _CLONE.match(function)
    return plain_function(clone[1] if clone else function)


def _joined(records: Sequence[RawReport]) -> list[RawReport]:
    """The records, with every race analysis (a race without threads) merged into the first hazard that it covers."""
    joined: list[RawReport] = []
    for record in records:
        about = None
        if record.kind == "race" and record.taking[0] == NOBODY:
            hazards = (at for at, each in enumerate(joined) if each.kind == "race" and each.taking[0] != NOBODY)
            about = next((at for at in hazards if set(record.sides) >= set(joined[at].sides)), None)
        if about is None:
            joined.append(record)
        else:
            worst: Severity = "error" if "error" in (record.severity, joined[about].severity) else "warning"
            joined[about] = joined[about]._replace(times=joined[about].times + 1, severity=worst)
    return joined


def _records_of(xml: str) -> int | None:
    """The number of records in an XML report; None unless it is a well-formed report."""
    try:
        *_, (_, root, _) = foreign.xml_events(xml)
    except ForeignError:
        return None
    if root.tag != "ComputeSanitizerOutput" or any(child.tag != "record" for child in root):
        return None
    return len(root)
