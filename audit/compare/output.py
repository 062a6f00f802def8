"""A comparison for programs: the verdict and its figures, as `audit compare --json` prints them."""

from __future__ import annotations

from typing import Any

import msgspec

from audit.checks.result import Figure, Verdict
from audit.records.run import RunRecord, findings
from audit.records.sanitize import SanitizeRecord
from audit.report.pair_figures import differences, kernel_errors


def comparison_json(record: RunRecord, session: SanitizeRecord | None, verdict: Verdict) -> dict[str, Any]:
    """What `audit compare --json` prints, without the paths."""
    return {
        "verdict": verdict,
        "cases": [case.id for case in record.plan.cases],
        "differences": [_plain(one) for one in differences(record)],
        "errors": [_plain(one) for one in kernel_errors(record)],
        "findings": [
            {
                "check": finding.result.check,
                "kernel": finding.audit.variant,
                "case": finding.audit.case,
                "steps": finding.steps,
                "verdict": finding.result.verdict,
                "detail": finding.result.detail,
                "where": finding.result.where,
            }
            for finding in findings(record)
        ],
        "notes": list(dict.fromkeys(note.detail for audit in record.audits for note in audit.notes)),
        "sanitizers": session.summary if session else None,
    }


def _plain(one: msgspec.Struct) -> dict[str, Any]:
    """Figures as numbers; one that JSON has no number for, as text."""
    fields = msgspec.structs.asdict(one)
    return {name: _number(value) if isinstance(value, Figure) else value for name, value in fields.items()}


def _number(figure: Figure) -> float | str:
    finite = figure.value - figure.value == 0
    return figure.value if finite else figure.text
