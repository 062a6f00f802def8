"""What compute-sanitizer wrote, understood: its text and its XML become findings, troubles and a count.

The text is written as things happen and ends with a summary; the XML comes at the very end, and only from a tool that
ended by itself. A report is whole if its text begins with the tool's name and ends with one summary in the tool's own
wording, every line between them is understood, and text, XML and summary tell of the same number of records. Formats
are those of 2025.3 and of the manual of 2026.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from audit import foreign
from audit.foreign import ForeignError
from audit.records.sanitize import Severity, Tool, ToolFinding
from audit.sanitize.collapse import NOBODY, Frame, Names, RawReport, Taking, collapsed, plain
from audit.sanitize.ranges import point

_LONGEST = 2**16  # characters of a line
_NUMBER = re.compile(r"\d{19}")
_PREFIX = "========="
_TITLE = "COMPUTE-SANITIZER"
CONSEQUENCES = frozenset({"Target application returned an error", "Error: process didn't terminate successfully"})
"""What the tool adds where its target ended badly, for whatever reason."""

_ERRORS = re.compile(r"ERROR SUMMARY: (?:(1) error|(0|[2-9]|[1-9]\d+) errors)")
_HAZARDS = re.compile(
    r"RACECHECK SUMMARY: (?:(1) hazard|(0|[2-9]|[1-9]\d+) hazards) displayed "
    r"\((?:(1) error|(0|[2-9]|[1-9]\d+) errors), (?:(1) warning|(0|[2-9]|[1-9]\d+) warnings)\)"
)
_LEAKS = re.compile(r"LEAK SUMMARY: \d+ bytes leaked in \d+ allocations")

_PLACE = r"(?P<function>.+)\+(?P<pc>0x[0-9a-f]+)(?: in (?P<file>.+):(?P<line>\d+))?"
_POINT = r"\((\d+),(\d+),(\d+)\)"
_CLONE = re.compile(r"^\[clone (.+?)\] ")
_AT = re.compile(rf"at {_PLACE}")
_BY = re.compile(rf"by thread {_POINT} in block {_POINT}")
_FRAME = re.compile(rf"Device Frame: ?{_PLACE}")
_ACCESS = re.compile(rf"(?P<access>Read|Write|Atomic) Thread {_POINT} at {_PLACE}")
_AND = re.compile(rf"and (?P<access>[A-Z]\w+) access at {_PLACE} \[(?P<hazards>\d+) hazards?\]")
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
_RACE = re.compile(rf"(?P<level>Error|Warning|Info): Race reported between (?P<access>[A-Z]\w+) access at {_PLACE}")
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
    """A tool's report. `findings` have `count` records each; `reported` is what its summary says."""

    complete: bool
    reported: int | None
    findings: tuple[ToolFinding, ...]
    troubles: tuple[str, ...]


class _Line(NamedTuple):
    number: int
    indent: int  # 0: the first of a record
    text: str


def parse(tool: Tool, text: str, xml: str | None, sources: Sequence[str]) -> Report:
    """The report of one run: its log, its XML (None where it wrote none), and the project's files, named as a finding
    is to name them."""
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
                troubles.append(f"a summary that is not the end or does not add up: {head.text}")
            reported.append(counts[0])
        elif record := _record(head, details, names):
            records.append(record)
        elif not (_LEAKS.fullmatch(head.text) and not details):
            troubles.append(" ".join((head.text, *(line.text for line in details))).strip())
    counted = _records_of(xml) if xml is not None else None
    if counted is not None and counted != len(records):
        troubles.append(f"the XML has {counted} records, the text {len(records)}")
    if reported and reported[0] != len(records):
        troubles.append(f"the summary counts {reported[0]}, the text has {len(records)} records")
    whole = text.endswith("\n") and lines[:1] == [_Line(0, 0, _TITLE)] and len(reported) == 1 and counted is not None
    return Report(
        complete=whole and not troubles,
        reported=reported[0] if len(reported) == 1 else None,
        findings=collapsed(tool, _joined(records)),
        troubles=tuple(dict.fromkeys(troubles)),
    )


def _lines(text: str) -> tuple[list[_Line], list[str]]:
    """The lines that say something, without their prefix; and those that the tool did not write so."""
    lines, strange = [], []
    for number, line in enumerate(text.split("\n")):
        rest = line.removeprefix(_PREFIX)
        if len(line) > _LONGEST or _NUMBER.search(line):
            strange.append(f"a line that is too long, or has too long a number: {line[:200]!r}")
        elif line and (rest == line or (rest and not rest.startswith(" ")) or not line.isprintable()):
            strange.append(f"not a line of the tool: {line[:200]!r}")
        elif rest.strip():
            lines.append(_Line(number, len(rest) - len(rest.lstrip()) - 1, rest.strip()))
    return lines, strange


def _grouped(lines: Sequence[_Line]) -> Iterator[tuple[_Line, list[_Line]]]:
    """Every first line with those that are indented below it; the title is left out where it belongs."""
    at = 1 if lines[:1] == [_Line(0, 0, _TITLE)] else 0
    while at < len(lines):
        end = at + 1
        while end < len(lines) and lines[end].indent:
            end += 1
        yield lines[at], list(lines[at + 1 : end])
        at = end


def _record(head: _Line, details: Sequence[_Line], names: Names) -> RawReport | None:
    """The record of a first line and its details; None where one of them is not understood."""
    raw = "\n".join((head.text, *(" " * line.indent + line.text for line in details)))
    if hazard := _HAZARD.fullmatch(head.text):
        return _hazard(hazard, details, names, raw)
    if race := _RACE.fullmatch(head.text):
        return _race(race, details, names, raw)
    places = [match for line in details if (match := _AT.fullmatch(line.text))]
    threads = [match for line in details if (match := _BY.fullmatch(line.text))]
    others = [line for line in details if not (_AT.fullmatch(line.text) or _BY.fullmatch(line.text))]
    if len(places) > 1 or len(threads) > 1:
        return None
    if not all(any(known.fullmatch(line.text) for known in _DETAILS) for line in others):
        return None
    kind, what = _kind(head.text, details)
    if not kind:
        if not (places and threads):  # what names neither a place nor a thread is no finding
            return None
        kind = "device-exception"
    frames = [match for line in details if (match := _FRAME.fullmatch(line.text))]
    what = what or ("barrier" if kind.endswith("-barrier") else "instruction")
    side = names.side(what, _stack([*places, *frames]))
    who = [match.groups() for match in threads]
    taking: Taking = ([point(one[:3]) for one in who], [point(one[3:]) for one in who])
    kernel = _kernel((frames or places)[-1]["function"]) if places else ""
    message = head.text
    if why := next((match["why"] for line in details if (match := _DETAILS[0].fullmatch(line.text))), None):
        message += why
    if kind in ("leak", "uninitialised") and not places:
        message = re.sub(r" (?:at|to) 0x[0-9a-f]+", "", message)
    sides = (side,) if places else ()
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
    """A hazard lists the earlier access first; `Finding.sides` the later one."""
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
    """The analysis of hazards: one place and those that it meets, without threads."""
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
    """The name of the kernel that a function belongs to: the compiler may have made a clone of it for the kernel."""
    clone = _CLONE.match(function)
    return plain(clone[1] if clone else function)


def _joined(records: Sequence[RawReport]) -> list[RawReport]:
    """The analysis of hazards counts with the first of those that it is about; a record of no threads is one."""
    found: list[RawReport] = []
    for record in records:
        about = None
        if record.kind == "race" and record.taking[0] == NOBODY:
            hazards = (at for at, one in enumerate(found) if one.kind == "race" and one.taking[0] != NOBODY)
            about = next((at for at in hazards if set(record.sides) >= set(found[at].sides)), None)
        if about is None:
            found.append(record)
        else:
            worst: Severity = "error" if "error" in (record.severity, found[about].severity) else "warning"
            found[about] = found[about]._replace(times=found[about].times + 1, severity=worst)
    return found


def _records_of(xml: str) -> int | None:
    """How many records an XML report has; None unless it is well formed and of that kind."""
    try:
        *_, (_, root, _) = foreign.xml_events(xml)
    except ForeignError:
        return None
    if root.tag != "ComputeSanitizerOutput" or any(child.tag != "record" for child in root):
        return None
    return len(root)
