"""The output of a tool on this CPU: the sanitizer's log, the program's report and its exit status, taken together.

A run is clean if all three agree: the log is empty (valgrind's XML is complete and has no error), the report ends with
`done` and has no error, and the status is 0. A status of 66 without a finding, a finding without that status, and an
unknown line are troubles. So a log that lost its findings cannot look clean: the status still shows them.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Sequence

from audit.backends import Completed, Outcome, TimedOut, Unsupported, child
from audit.bundle import Bundle
from audit.records.sanitize import Observation, Side
from audit.sanitize.collapse import Names, RawReport, collapsed
from audit.sanitize.host import log as host_text
from audit.sanitize.host import valgrind as host_valgrind
from audit.sanitize.host.log import LogSummary, readable
from audit.sanitize.host.tools import FOUND, HostRun
from audit.sanitize.ranges import Point, point

_ERROR_STATUS = 3
"""A program's exit status after an `error` line; `Outcome` keeps the line, not the status."""

_WORDS = frozenset(("identity", "step", "launch", "note", "error", "done"))
_EQUAL_WRITE = re.compile(r"note equal-write (?P<file>.+):(?P<line>\d+)")
_ERROR = re.compile(
    r"error (?P<kind>\w+) kernel (?P<kernel>.+?), block \((?P<block>\d+, \d+, \d+)\)"
    r"(?:, thread \((?P<thread>\d+, \d+, \d+)\))?: (?P<text>.+)"
)
_OF_KERNELS = frozenset(("barrier", "collective", "assert", "memory"))
_CALL = r"(?P<call>[\w:]+(?: \d+(?:x\d+x\d+)?)?)"
_AT = rf"{_CALL} \((?P<file>[^()]+):(?P<line>\d+)\)(?: with mask (?P<mask>0x[0-9a-f]+))?"
_WAITING = re.compile(rf"threads? (?P<threads>[\d, -]+) waits? at {_AT}")
_EXITED = re.compile(r"threads? (?P<threads>[\d, -]+) ha(?:s|ve) exited")
_LEFT = re.compile(rf"thread (?P<gone>\d+) \(lane \d+\) has exited, but lane (?P<lane>\d+) waits for it at {_AT}")
_CALLED = re.compile(
    rf"(?:thread (?P<threads>\d+) \(lane \d+\) called )?{_CALL} at (?P<file>[^ ]+?):(?P<line>\d+)"
    r"(?: with mask (?P<mask>0x[0-9a-f]+))?.*"
)
_ASSERTED = re.compile(r"(?P<file>[^ ]+):(?P<line>\d+): .+")
_SPAN = re.compile(r"(\d+)(?:-(\d+))?")
_LANES, _MOST_THREADS = 32, 1024


def observe_host_run(run: HostRun, bundle: Bundle, sources: Sequence[str]) -> Observation:
    """The observation of a run over `bundle`; `sources` are the project's files as `BuildIdentity.sources` names them.

    Kinds: race, out-of-bounds, misaligned, invalid-access, undefined, uninitialised, divergent-barrier,
    invalid-barrier, crash. A run killed at its limit is not a finding.
    """
    names = Names(sources, bundle.entries)
    errors = [line for line in run.report if line.startswith("error ")]
    summary = _parse_log(run, names, errors)
    records = list(summary.records)
    troubles = list(summary.troubles)
    for line in errors[:1]:
        if readable(line) == line and (record := _failure(line, run.report, bundle, names)):
            records.append(record)
        else:
            troubles.append(line.replace("error unsupported ", "not supported here: "))
    code = _exit_code(run.outcome)
    troubles.extend(_contradictions(run, code, errors, bool(records), bool(summary.records)))
    try:
        launches = sum(count.entry in bundle.entries for count in child.launches(run.report))
    except ValueError:
        launches = 0
        troubles.append("the program's report has a malformed `launch` line")
    findings = collapsed(run.tool, records)
    return Observation(
        command=run.command,
        exit_code=code,
        complete=run.ended and not troubles,
        reported=(len(summary.records) if summary.counted is None else summary.counted)
        + len(records)
        - len(summary.records),
        findings=findings,
        troubles=tuple(dict.fromkeys(troubles)),
        launches=launches,
        seconds=run.outcome.limit if isinstance(run.outcome, TimedOut) else run.outcome.seconds,
        notes=tuple(dict.fromkeys(_notes(run.report, names))),
    )


def _notes(report: Sequence[str], names: Names) -> Iterator[str]:
    for line in report:
        if found := _EQUAL_WRITE.fullmatch(line):
            file = names.file(found["file"]) or found["file"].rsplit("/", 1)[-1]
            yield f"several threads write one equal value at {file}:{found['line']}, which is no race to the tool"


def _parse_log(run: HostRun, names: Names, known: Sequence[str]) -> LogSummary:
    if run.tool != "initcheck":
        return host_text.parse_log(run.tool, run.log, names, known)
    text, start, xml = run.log.partition(host_valgrind.START)
    before = host_text.parse_log(run.tool, text, names, known)
    report = host_valgrind.parse_valgrind(start + xml, names)
    return LogSummary(report.records, (*before.troubles, *report.troubles), report.counted)


def _contradictions(
    run: HostRun, code: int | None, errors: Sequence[str], any_finding: bool, log_finding: bool
) -> Iterator[str]:
    """The contradictions between exit status, report and log. `log_finding`: the sanitizer's log has a finding."""
    if odd := [line for line in run.report if line.partition(" ")[0] not in _WORDS]:
        yield f"unknown line in the program's report: {odd[0][:200]!r}"
    if errors and (len(errors) > 1 or run.report[-1] != errors[0]):
        yield "the program's report continues after an error"
    if code == FOUND and not log_finding:
        yield f"exit status {FOUND} means a finding, but the log has none"
    if code == 0 and any_finding:
        yield f"expected exit status {FOUND} for a finding, but got 0"
    if code == 0 and not run.ended:
        yield "exit status 0, but the program's report does not end with `done`"
    if code not in (None, 0, FOUND) and not errors and not isinstance(run.outcome, Completed | TimedOut | Unsupported):
        yield f"the program ended with {run.outcome.kind} {run.outcome.message}"


def _exit_code(outcome: Outcome) -> int | None:
    if isinstance(outcome, Completed):
        return 0
    if isinstance(outcome, TimedOut):
        return None
    if isinstance(outcome, Unsupported):
        return _ERROR_STATUS
    if status := re.fullmatch(r"exit (\d+)", outcome.kind):
        return int(status[1])
    return -signal.Signals[outcome.kind] if outcome.kind in signal.Signals.__members__ else _ERROR_STATUS


def _failure(line: str, report: Sequence[str], bundle: Bundle, names: Names) -> RawReport | None:
    """The report of a kernel that the runtime stopped; None if the kernel is not at fault."""
    error = _ERROR.fullmatch(line)
    if error is None or error["kind"] not in _OF_KERNELS:
        return None
    shape = _running_block(report, bundle)
    block = [point(error["block"].split(", "))]
    sides = list(_sides(error, shape, names))
    if error["kind"] in ("assert", "memory"):
        thread = [point(error["thread"].split(", "))] if error["thread"] else []
        kind = "crash"
        sides = [(side, thread) for side, _ in sides]
    else:
        waits = "wait for one another" in error["text"] or "has exited" in error["text"]
        kind = "divergent-barrier" if waits else "invalid-barrier"
    return RawReport(
        kind=kind,
        kernel=names.entry(error["kernel"]),
        message=error["text"],
        sides=tuple(side for side, _ in sides),
        taking=tuple((threads, block) for _, threads in sides),
        raw=line,
    )


def _sides(
    error: re.Match[str], shape: tuple[int, int, int] | None, names: Names
) -> Iterator[tuple[Side, Sequence[Point]]]:
    """The lines where threads wait or act, with these threads."""
    text = error["text"]
    if error["kind"] == "memory":
        yield Side("access", names.entry(error["kernel"])), ()
    elif error["kind"] == "assert":
        if at := _ASSERTED.fullmatch(text):
            yield _side("assertion", at, names), ()
    elif left := _LEFT.fullmatch(text):
        gone = int(left["gone"])
        waiting = gone - gone % _LANES + int(left["lane"])
        yield _side(_barrier(left), left, names), _points([waiting], shape)
        yield Side("exit"), _points([gone], shape)
    elif called := _CALLED.fullmatch(text):
        yield (
            _side(_barrier(called), called, names),
            _points([int(called["threads"] or 0)][: bool(called["threads"])], shape),
        )
    else:
        for part in text.split(": ", 1)[-1].split("; "):
            if waiting_at := _WAITING.fullmatch(part):
                yield _side(_barrier(waiting_at), waiting_at, names), _points(_numbers(waiting_at["threads"]), shape)
            elif exited := _EXITED.fullmatch(part):
                yield Side("exit"), _points(_numbers(exited["threads"]), shape)


def _side(what: str, at: re.Match[str], names: Names) -> Side:
    file = names.file(at["file"]) or at["file"].rsplit("/", 1)[-1]
    return Side(what, "", file, int(at["line"]))


def _barrier(at: re.Match[str]) -> str:
    return f"barrier {at['call']}{' of ' + at['mask'] if at['mask'] else ''}"


def _numbers(text: str) -> list[int]:
    """The numbers of `0-31, 40`."""
    ends = [(int(low), int(high or low)) for low, high in _SPAN.findall(text)]
    return [number for low, high in ends for number in range(low, min(high, _MOST_THREADS - 1) + 1)]


def _running_block(report: Sequence[str], bundle: Bundle) -> tuple[int, int, int] | None:
    """The block's extents of the launch that was running."""
    steps = [at for at, line in enumerate(report) if line.startswith("step ")]
    done = sum(line.startswith("launch ") for line in report[steps[-1] if steps else 0 :])
    return bundle.launches[done].block if done < len(bundle.launches) else None


def _points(threads: Sequence[int], shape: tuple[int, int, int] | None) -> list[Point]:
    """The coordinates of a block's threads, whose numbers run along x first."""
    if shape is None:
        return []
    x, y, _ = shape
    return [(thread % x, thread // x % y, thread // (x * y)) for thread in threads]
