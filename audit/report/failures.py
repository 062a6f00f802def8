"""What did not pass, as a page shows it: the first differing element, where they all lie, how to see it again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from itertools import islice

import msgspec

from audit.records.run import Audit, CheckFinding, RunRecord, findings
from audit.report import heat
from audit.report.anchors import finding_anchor
from audit.report.conditions import RunCondition
from audit.report.heat import Map

_FINDINGS, _MAPS = 200, 12
"""The most that a page shows of findings, and of those with a map."""


class FindingView(msgspec.Struct, frozen=True):
    """One finding as the page shows it. No `maps`: nothing says where, or (`unmapped`) too many are shown."""

    anchor: str
    finding: CheckFinding
    command: str
    maps: tuple[Map, ...]
    unmapped: bool

    @property
    def has_nan(self) -> bool:
        """Whether any element that differs is NaN."""
        return any(one.nan_on_one_side or one.nan_on_both_sides for one in self.finding.result.largest)


def failures(evidence: RunRecord, found: Sequence[RunCondition]) -> list[FindingView]:
    """The finding that each condition names first, then all others, as many as a page holds."""
    named = {
        finding_anchor(one.result.check, one.audit.variant, one.audit.case)
        for one in found
        if one.state in ("fail", "inconclusive") and one.result and one.audit
    }
    listed = sorted(findings(evidence), key=lambda each: (each.result.verdict != "fail", _anchor(each) not in named))
    shown: list[FindingView] = []
    mapped = 0
    for finding in islice(listed, _FINDINGS):
        tallies = finding.result.differences
        drawn = mapped < _MAPS
        mapped += bool(tallies)
        maps = tuple(heat.heat_map(tally) for tally in tallies) if drawn else ()
        again = reproduce(evidence, finding.audit)
        shown.append(FindingView(_anchor(finding), finding, again, maps, bool(tallies) and not drawn))
    return shown


def _anchor(finding: CheckFinding) -> str:
    return finding_anchor(finding.result.check, finding.audit.variant, finding.audit.case)


def reproduce(evidence: RunRecord, audit: Audit) -> str:
    """The command that runs exactly one case of one variant (and its parents) again; empty where none is planned."""
    case = next((case for case in evidence.plan.cases if case.id == audit.case), None)
    variant = next((variant for variant in evidence.plan.variants if variant.label == audit.variant), None)
    if case is None or variant is None:
        return ""
    if evidence.command.startswith("audit compare "):  # no project declares it
        return evidence.command
    words = ["audit", "run", "--shape", case.shape, "--variant", variant.name]
    if past := next((variant.revision for variant in evidence.plan.variants if variant.revision), None):
        words += ["--against", past]
    if case.capture:
        words += ["--capture", case.capture]
    elif case.probe:
        words += ["--probe", case.probe, *(f"--axis={name}={value}" for name, value in case.axes.items())]
    else:
        words += ["--seed", str(case.seed)]
        for name, value in case.axes.items():
            words += ["--axis", f"{name}={value}"]
    if evidence.plan.backend == "cuda":
        return shlex.join([*words, "--device", "cuda"])
    return shlex.join([*words, "--arch", evidence.plan.arch])
