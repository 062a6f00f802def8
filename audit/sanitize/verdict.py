"""From what a tool showed to a verdict. Clean is what is left when every other explanation is ruled out."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from audit.checks.result import Verdict
from audit.records.sanitize import Canary, Observed, Tool, told, unproven


def judge(tool: Tool, observed: Observed, planned: int, canaries: Sequence[Canary]) -> tuple[Verdict, str]:
    """The verdict on one run over an audited variant, and why in a sentence.

    `observed.findings` have been through `suppressions.apply`; `planned` launches were to run to their end; `canaries`
    are those of the same session. A finding that nothing suppresses is a fail whatever else there is; pass needs all
    that `doubts` asks for, and every canary of the tool found and its clean twin passed.

    A run that was killed at its limit is inconclusive, for tools slow kernels down by far and a barrier that waits for
    ever looks the same from outside; what the tool printed before it was killed is a finding like any other.
    """
    open_ = [finding for finding in observed.findings if not finding.suppressed]
    if open_:
        killed = f" ({_killed(observed)})" if observed.exit_code is None else ""
        return "fail", f"{_counted(len(open_), 'finding')}{killed}; the first: {told(open_[0])}"
    if found := (*unproven(tool, canaries), *doubts(observed, planned)):
        return "inconclusive", "; ".join(found)
    if observed.findings:
        return "pass", f"nothing but {_counted(len(observed.findings), 'suppressed finding')}"
    return "pass", f"no finding in {_counted(planned, 'launch', 'launches')}"


def doubts(observed: Observed, planned: int) -> tuple[str, ...]:
    """All that stands against taking a run at its word, whatever it found."""
    found = []
    if observed.exit_code is None:
        found.append(_killed(observed))
    found.extend(f"the tool says: {trouble}" for trouble in observed.troubles)
    if not observed.complete and not observed.troubles:
        found.append("the report is not whole: its summary or its XML is missing or malformed")
    listed = sum(finding.count for finding in observed.findings)
    if observed.reported is not None and observed.reported != listed:
        found.append(f"its summary counts {observed.reported}, its records {listed}")
    if observed.exit_code is not None and (observed.exit_code == 0) != (listed == 0):
        found.append(f"exit status {observed.exit_code} with {_counted(listed, 'record')}")
    if observed.launches != planned:
        found.append(f"{_counted(observed.launches, 'launch', 'launches')} ran to the end, {planned} were planned")
    if planned < 1:
        found.append("no launch was planned")
    return tuple(found)


def canary(
    name: str, tool: Tool, fault: Observed, twin: Observed, kinds: Collection[str], lines: Collection[tuple[str, int]]
) -> Canary:
    """What became of a planted fault and its twin, each a bundle of one launch.

    Found: findings of one of `kinds` whose sides lie on `lines` (file, line): on all of a race, elsewhere on one at
    least, as a barrier that splits a block is reported where it was met. The twin is clean by a variant's own rules.
    """
    of_kind = [finding for finding in fault.findings if finding.kind in kinds]
    missing = sorted(set(lines) - {(side.file, side.line) for finding in of_kind for side in finding.sides})
    found = bool(of_kind) and len(missing) <= (0 if tool == "racecheck" else len(set(lines)) - 1)
    twin_doubts = doubts(twin, 1)
    twin_clean = not twin.findings and not twin_doubts
    said = []
    if not found:
        expected = f"a finding of {' or '.join(sorted(kinds))}" + "".join(f", {file}:{line}" for file, line in missing)
        shown = told(fault.findings[0]) if fault.findings else "; ".join(doubts(fault, 1)) or "nothing"
        said.append(f"expected {expected}; got {shown}")
    if not twin_clean:
        shown = told(twin.findings[0]) if twin.findings else "; ".join(twin_doubts)
        said.append(f"the clean twin: {shown}")
    return Canary(name, tool, found, twin_clean, "; ".join(said) or told(of_kind[0]))


def _killed(observed: Observed) -> str:
    return f"killed at its limit of {observed.seconds:g} s"


def _counted(number: int, singular: str, plural: str = "") -> str:
    return f"{number} {singular if number == 1 else plural or singular + 's'}"
