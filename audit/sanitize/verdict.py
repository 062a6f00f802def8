"""Judges the output of a tool. A run is clean only if every other explanation of its silence is ruled out."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from audit.checks.result import Verdict
from audit.records.sanitize import Canary, Observation, Tool, describe_finding, unproven


def judge_run(tool: Tool, observed: Observation, planned: int, canaries: Sequence[Canary]) -> tuple[Verdict, str]:
    """The verdict on one run over an audited variant, and its reason in a sentence.

    `observed.findings` must have passed through `suppressions.apply`. `planned` is the number of launches, `canaries`
    are those of the same session. A finding that is not suppressed is a fail in any case. A pass needs a run without
    `doubts`, every canary of the tool found, and every clean twin passed.

    A run that was killed at its limit is inconclusive: tools slow kernels down a lot, and a barrier that never
    completes looks the same from outside. Findings printed before the kill count like any other.
    """
    open_ = [finding for finding in observed.findings if not finding.suppressed]
    if open_:
        killed = f" ({_killed(observed)})" if observed.exit_code is None else ""
        return "fail", f"{_counted(len(open_), 'finding')}{killed}; the first: {describe_finding(open_[0])}"
    if reasons := (*unproven(tool, canaries), *doubts(observed, planned)):
        return "inconclusive", "; ".join(reasons)
    clean = f"no finding in {_counted(planned, 'launch', 'launches')}"
    if observed.findings:
        clean = f"only {_counted(len(observed.findings), 'suppressed finding')}"
    return "pass", "; ".join((clean, *observed.notes))


def doubts(observed: Observation, planned: int) -> tuple[str, ...]:
    """Every reason not to trust a run, whatever it found."""
    reasons = []
    if observed.exit_code is None:
        reasons.append(_killed(observed))
    reasons.extend(f"the tool reports: {trouble}" for trouble in observed.troubles)
    if not observed.complete and not observed.troubles:
        reasons.append("the report is incomplete: its summary or its XML is missing or malformed")
    listed = sum(finding.count for finding in observed.findings)
    if observed.reported is not None and observed.reported != listed:
        reasons.append(f"its summary counts {_counted(observed.reported, 'report')}, but it lists {listed}")
    if observed.exit_code is not None and (observed.exit_code == 0) != (listed == 0):
        reasons.append(f"exit status {observed.exit_code} with {_counted(listed, 'report')}")
    if observed.launches != planned:
        reasons.append(f"expected {_counted(planned, 'launch', 'launches')}, but {observed.launches} completed")
    if planned < 1:
        reasons.append("the plan has no launch")
    return tuple(reasons)


def canary(
    name: str,
    tool: Tool,
    fault: Observation,
    twin: Observation,
    kinds: Collection[str],
    lines: Collection[tuple[str, int]],
) -> Canary:
    """The result of a planted fault and its twin, each a bundle of one launch.

    The fault is found if there are findings of one of `kinds` whose sides are on `lines` (file, line): on all of them
    for a race, otherwise on at least one, because a divergent barrier is reported only where threads reached it. The
    twin must be clean by the rules for a variant.
    """
    of_kind = [finding for finding in fault.findings if finding.kind in kinds]
    missing = sorted(set(lines) - {(side.file, side.line) for finding in of_kind for side in finding.sides})
    found = bool(of_kind) and len(missing) <= (0 if tool == "racecheck" else len(set(lines)) - 1)
    twin_doubts = doubts(twin, 1)
    twin_clean = not twin.findings and not twin_doubts
    details = []
    if not found:
        expected = f"a finding of {' or '.join(sorted(kinds))}" + "".join(f", {file}:{line}" for file, line in missing)
        shown = describe_finding(fault.findings[0]) if fault.findings else "; ".join(doubts(fault, 1)) or "nothing"
        details.append(f"expected {expected}, but got {shown}")
    if not twin_clean:
        shown = describe_finding(twin.findings[0]) if twin.findings else "; ".join(twin_doubts)
        details.append(f"the clean twin: {shown}")
    return Canary(name, tool, found, twin_clean, "; ".join(details) or describe_finding(of_kind[0]))


def _killed(observed: Observation) -> str:
    return f"killed at its limit of {observed.seconds:g} s"


def _counted(number: int, singular: str, plural: str = "") -> str:
    return f"{number} {singular if number == 1 else plural or singular + 's'}"
