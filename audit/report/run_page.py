"""One run as one offline HTML page: the verdict and what failed on the first screen, then everything.

The page holds at most so many rows of each long table, the worst first; where there are more, the whole table lies
beside it as a file of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from audit import conversions
from audit.checks.result import Figure
from audit.project import Project
from audit.records.folder import REPORT
from audit.records.run import KIND, CaseRecord, RunRecord, families_run, findings
from audit.report import attachments, captured, case_rows, errors, failures, tables
from audit.report.anchors import case_anchor, closed_anchor, finding_anchor
from audit.report.attachments import Attachment
from audit.report.case_rows import CaseRows
from audit.report.conditions import MEANINGS, RunCondition, count_conditions, run_conditions
from audit.report.failures import FindingView
from audit.report.pair_figures import pair_figures
from audit.report.point import NamedPoint, Point, badness
from audit.report.project_context import ClosedVariant, ProjectContext, project_context
from audit.report.related import related_variants
from audit.report.template import template

MARKS = {"pass": "✓", "fail": "✗", "inconclusive": "?", "absent": "–", "unplanned": "–"}
_ROWS, _INPUTS, _COLUMNS = 300, 1000, 60
"""The most that a page shows of the rows of a table of errors and of inputs, and of the columns of the matrix."""
_NO_CONTEXT = ProjectContext()
_NO_FILES: Mapping[str, bytes] = {}


def pages(record: RunRecord, files: Mapping[str, bytes], project: Project | None) -> dict[str, bytes]:
    """The page of a run with what its project keeps beside it, and the files that the page links to, by name."""
    context = project_context(project, record.plan.operator) if project else _NO_CONTEXT
    return render(record, context, files)


def points(record: RunRecord) -> Iterator[NamedPoint]:
    """What two runs can be compared by."""
    for one in run_conditions(record):
        limit = f", {one.measured} of {one.limit}" if one.measured and one.limit else ""
        yield ("condition", one.name), Point(f"{one.state}, {one.outcome}{limit}", *2 * (badness(one.state),))
    ran = {(audit.case, audit.variant): audit.verdict for audit in record.audits}
    for case in record.plan.cases:
        for variant in record.plan.variants:
            yield ("verdict", f"{variant.label}, {case.id}"), Point.of(ran.get((case.id, variant.label)))
    for row in tables.error_table(record):
        if row.result.measured:
            error = row.result.measured.value
            yield ("error", f"{row.bound}, {row.variant}, {row.case}"), Point(row.result.measured.text, error, error)
    for each in record.cases:
        yield ("inputs", each.case.id), Point(each.inputs_sha256)


def render(
    evidence: RunRecord, context: ProjectContext = _NO_CONTEXT, files: Mapping[str, bytes] = _NO_FILES
) -> dict[str, bytes]:
    """The page for one run, and the files beside it that it links to. Everything from the record is escaped."""
    error_rows, metric_rows, rows = tables.error_table(evidence), tables.metric_rows(evidence), tables.matrix(evidence)
    found = run_conditions(evidence)
    shown = failures.failures(evidence, found)
    anchors = {failure.anchor for failure in shown}
    cases = case_rows.case_rows(evidence, rows, anchors)
    beside: dict[str, Attachment] = {}
    if len(error_rows) > _ROWS:
        beside["errors"] = attachments.errors(error_rows)
    if len(metric_rows) > _ROWS:
        beside["metrics"] = attachments.metrics_table(metric_rows)
    if len(cases) < len(rows):
        beside["cases"] = attachments.cases(evidence, rows)
    if len(evidence.cases) > _INPUTS:
        beside["inputs"] = attachments.inputs_table(evidence)
    content: dict[str, Any] = {
        "errors": error_rows[:_ROWS],
        "distances": errors.distances(evidence),
        "metrics": metric_rows[:_ROWS],
        "vacuity": tables.vacuity(evidence),
        "probes": tables.probes(evidence)[:_ROWS],
        "coverage": captured.coverage(evidence),
        "closed": _closed(evidence, context),
        "retained": context.failures,
        "sessions": context.sessions,
        "notes": tables.note_rows(evidence)[:_ROWS],
        "relations": related_variants(evidence),
        "cubins": tables.build_rows(evidence),
    }
    page = template("run.html.j2").render(
        **content,
        record_sha256=KIND.digest(evidence, files),
        sections=_sections(evidence, content),
        evidence=evidence,
        families=families_run(evidence),
        summary=evidence.summary,
        conditions=found,
        pair=pair_figures(evidence),
        counted=count_conditions(found),
        failures=shown,
        all_findings=len(findings(evidence)),
        blocks=cases,
        columns=cases[:_COLUMNS],
        all_cases=len(rows),
        label=case_rows.labels(evidence),
        case_anchor=case_anchor,
        closed_anchor=closed_anchor,
        link=lambda condition: _link(condition, anchors),
        launches=_launches(evidence),
        all_errors=len(error_rows),
        curves=errors.curves(evidence),
        error_maps=errors.error_maps(evidence),
        session=next((one for one in context.sessions if one.backend == evidence.plan.backend), None),
        all_metrics=len(metric_rows),
        compilers=sorted({build.compiler for build in evidence.builds.values()}),
        arithmetic=tables.arithmetic(evidence),
        ran_by={verdict: _by_variant(evidence, verdict) for verdict in ("pass", "fail", "inconclusive")},
        inputs=evidence.cases[:_INPUTS],
        converted=conversions.lines_of(one.converted for one in evidence.cases),
        beside=beside,
        index=_index(evidence, cases, shown, found),
        marks=MARKS,
        meanings=MEANINGS,
        figure=_figure,
        share=_share,
        percent=_percent,
    )
    return {REPORT: page.encode(), **{each.name: each.content for each in beside.values()}}


def _sections(evidence: RunRecord, content: Mapping[str, Any]) -> dict[str, str]:
    """Anchor -> title of every section that has something in it, in the order of the page."""
    sections = {
        "failed": ("Findings", evidence.summary.verdict != "pass"),
        "relations": ("Relations", content["relations"]),
        "notes": ("Not judged", content["notes"]),
        "cases": ("Cases", True),
        "conditions": ("Conditions", True),
        "errors": ("Errors", content["errors"]),
        "metrics": ("In numbers", content["distances"] or content["metrics"]),
        "probes": ("Probes", content["probes"]),
        "vacuity": ("Vacuity", content["vacuity"]),
        "captures": ("Captures", content["coverage"].planned),
        "sanitizers": ("Sanitizers", content["sessions"]),
        "closed": ("Closed", content["closed"]),
        "retained": ("Retained", content["retained"]),
        "identity": ("Identity", evidence.builds),
        "cubins": ("Device code", content["cubins"]),
        "inputs": ("Inputs", evidence.cases),
    }
    return {anchor: title for anchor, (title, has_content) in sections.items() if has_content}


def _closed(evidence: RunRecord, context: ProjectContext) -> list[ClosedVariant]:
    """Those of the plan as it recorded them, then the others of the project."""
    planned = {
        variant.name: ClosedVariant(variant.label, variant.why, variant.evidence)
        for variant in evidence.plan.variants
        if variant.status == "closed"
    }
    return [*planned.values(), *(one for one in context.closed if one.name not in planned)]


def _link(condition: RunCondition, anchors: set[str]) -> str:
    """Where the page shows the worst result of a condition: at its finding, else at its case."""
    if condition.name == "vacuity":
        return "#vacuity" if condition.of else "#conditions"
    if condition.result is None or condition.audit is None:
        return "#captures" if condition.name == "coverage: captures" else "#cases"
    anchor = finding_anchor(condition.result.check, condition.audit.variant, condition.audit.case)
    return f"#{anchor}" if anchor in anchors else f"#{case_anchor(condition.audit.case)}"


def _launches(evidence: RunRecord) -> tuple[int, int]:
    """Seen and planned, of all executions that completed."""
    seen = planned = 0
    for audit in evidence.audits:
        for result in audit.results:
            if result.check == "completion" and result.measured and result.limit:
                seen += int(result.measured.value)
                planned += int(result.limit.value)
    return seen, planned


def _by_variant(evidence: RunRecord, verdict: str) -> dict[str, int]:
    return {
        variant.label: sum(audit.verdict == verdict and audit.variant == variant.label for audit in evidence.audits)
        for variant in evidence.plan.variants
    }


def _index(
    evidence: RunRecord, cases: Sequence[CaseRows], shown: Sequence[FindingView], found: Sequence[RunCondition]
) -> dict[str, object]:
    """What the page's filters work on."""
    return {
        "verdict": evidence.summary.verdict,
        "conditions": [
            {"name": one.name, "state": one.state, "measured": one.measured, "limit": one.limit} for one in found
        ],
        "variants": [variant.label for variant in evidence.plan.variants],
        "cases": [
            {
                "anchor": block.anchor,
                "id": block.case.id,
                "cells": [cell.verdict if cell else "absent" for _, cell, _ in block.lines],
            }
            for block in cases
        ],
        "findings": [
            {
                "anchor": failure.anchor,
                "case": failure.finding.audit.case,
                "variant": failure.finding.audit.variant,
                "check": failure.finding.result.check,
                "verdict": failure.finding.result.verdict,
            }
            for failure in shown
        ],
    }


def _figure(figure: Figure | None) -> str:
    return "" if figure is None else figure.text


def _share(record: CaseRecord) -> str:
    return "" if record.omission_share is None else f"{100 * record.omission_share.share.value:.1f} %"


def _percent(share: float) -> str:
    return "no room" if share == float("inf") else f"{100 * share:.1f} %" if share < 10 else f"{share:.3g} ×"
