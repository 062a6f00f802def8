"""One run as one offline HTML page: the verdict first, then what failed, then everything."""

from __future__ import annotations

import shlex

from audit.checks.result import Figure, Verdict, worst
from audit.evidence.findings import findings
from audit.evidence.schema import Audit, CaseRecord, Evidence
from audit.report import tables
from audit.report.tables import value
from audit.report.template import template

_ORDER = {"fail": 0, "inconclusive": 1, "pass": 2}
_MARKS = {"pass": "✓", "fail": "✗", "inconclusive": "?", "absent": "–"}


def render(evidence: Evidence) -> str:
    """The page for one run. Everything from the evidence is escaped."""
    audits = sorted(evidence.audits, key=lambda audit: _ORDER[audit.verdict])
    return template("run.html.j2").render(
        evidence=evidence,
        summary=evidence.summary,
        audits=audits,
        findings=findings(evidence),
        reproduce=lambda audit: reproduce(evidence, audit),
        matrix=tables.matrix(evidence),
        errors=tables.error_table(evidence),
        captures=tables.captures(evidence),
        vacuity=tables.vacuity(evidence),
        metrics=tables.metric_rows(evidence),
        cubins=tables.build_rows(evidence),
        check_names=evidence.plan.checks,
        check_verdict=_check_verdict,
        marks=_MARKS,
        figure=_figure,
        share=_share,
    )


def reproduce(evidence: Evidence, audit: Audit) -> str:
    """The command that runs exactly one case of one variant (and its parents) again."""
    case = next(case for case in evidence.plan.cases if case.id == audit.case)
    variant = next(variant for variant in evidence.plan.variants if variant.label == audit.variant)
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


def _check_verdict(audit: Audit, check: str) -> Verdict | str:
    mine = [result.verdict for result in audit.results if result.check.partition(":")[0] == check]
    return worst(mine) if mine else "absent"


def _figure(figure: Figure | None) -> str:
    return "" if figure is None else figure.text


def _share(record: CaseRecord) -> str:
    return "" if record.omission_share is None else f"{100 * value(record.omission_share.share):.1f} %"
