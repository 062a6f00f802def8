"""One session of sanitizers as one offline HTML page: the verdict, the findings, then what each tool proved."""

from __future__ import annotations

import shlex

from audit.checks.result import Verdict, worst
from audit.records.sanitize import Checked, Finding, SanitizeEvidence, Side
from audit.report.template import template

_ORDER = {"fail": 0, "inconclusive": 1, "pass": 2}
_MARKS = {"pass": "✓", "fail": "✗", "inconclusive": "?"}


def render_sanitize(evidence: SanitizeEvidence) -> str:
    """The page for one session. Everything from the evidence is escaped."""
    return template("sanitize.html.j2").render(
        evidence=evidence,
        summary=evidence.summary,
        troubled=sorted(
            (one for one in evidence.checked if one.verdict != "pass"), key=lambda one: _ORDER[one.verdict]
        ),
        suppressed=[(one, finding) for one in evidence.checked for finding in one.findings if finding.suppressed],
        matrix=_matrix(evidence),
        reproduce=lambda one: _reproduce(evidence, one),
        open_findings=_open,
        place=_place,
        marks=_MARKS,
    )


def _matrix(evidence: SanitizeEvidence) -> list[tuple[str, list[tuple[Verdict | str, str]]]]:
    """A row for each variant, a cell for each tool: its verdict over all cases and a sentence; `absent` did not run."""
    rows = []
    for variant in evidence.plan.variants:
        cells: list[tuple[Verdict | str, str]] = []
        for tool in evidence.plan.tools:
            mine = [one for one in evidence.checked if (one.variant, one.tool) == (variant, tool)]
            if not mine:
                cells.append(("absent", "did not run"))
                continue
            launches = sum(one.launches for one in mine)
            seconds = sum(one.seconds for one in mine)
            told = f"{len(mine)} cases, {launches} launches, {seconds:.1f} s"
            cells.append((worst([one.verdict for one in mine]), told))
        rows.append((variant, cells))
    return rows


def _reproduce(evidence: SanitizeEvidence, one: Checked) -> str:
    plan = evidence.plan
    words = ["audit", "sanitize", "--shape", plan.shape, "--tool", one.tool, "--variant", one.variant]
    return shlex.join([*words, "--case", one.case, *(["--device", "cuda"] if plan.backend == "cuda" else [])])


def _open(one: Checked) -> list[Finding]:
    return [finding for finding in one.findings if not finding.suppressed]


def _place(side: Side) -> str:
    where = f"{side.file}:{side.line}" if side.line else side.file or "no line told"
    who = " ".join(f"{what} {span}" for what, span in (("threads", side.threads), ("blocks", side.blocks)) if span)
    return f"{side.what} at {where}" + (f", {side.function}" if side.function else "") + (f", {who}" if who else "")
