"""Cases as a page shows them: a block for each, with a line for each variant, and a short name for headings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import msgspec

from audit.checks.result import Verdict, worst
from audit.records.run import Audit, CaseRecord, RunRecord
from audit.report.anchors import case_anchor, finding_anchor
from audit.report.conditions import ORDER
from audit.report.errors import main_axis
from audit.report.tables import Row
from audit.spec import Case

_AUDITS = 5000
"""The most audits whose checks a page shows one by one."""


class CaseBlock(msgspec.Struct, frozen=True):
    """Everything about one case: a line for each planned variant with its audit and each check's verdict."""

    at: int
    case: Case
    anchor: str
    record: CaseRecord | None
    state: str
    lines: tuple[tuple[str, Audit | None, tuple[tuple[str, str], ...]], ...]  # ... (verdict, anchor of its finding)


def blocks(evidence: RunRecord, rows: Sequence[Row], anchors: Collection[str]) -> list[CaseBlock]:
    records = {record.case.id: record for record in evidence.cases}
    shown: list[CaseBlock] = []
    audits = 0
    for at, row in enumerate(rows):
        audits += len(row.cells)
        if audits > _AUDITS and shown:
            break
        lines = []
        for variant, cell in zip(evidence.plan.variants, row.cells, strict=True):
            verdicts = _verdicts(evidence, cell, anchors) if cell else ()
            lines.append((variant.label, cell, verdicts))
        state = min((cell.verdict if cell else "absent" for cell in row.cells), key=ORDER.__getitem__, default="absent")
        shown.append(CaseBlock(at, row.case, case_anchor(row.case.id), records.get(row.case.id), state, tuple(lines)))
    return shown


def _verdicts(evidence: RunRecord, audit: Audit, anchors: Collection[str]) -> tuple[tuple[str, str], ...]:
    by_check: dict[str, list[Verdict]] = {}
    finding: dict[str, str] = {}
    for result in audit.results:
        base = result.check.partition(":")[0]
        by_check.setdefault(base, []).append(result.verdict)
        if result.verdict != "pass" and base not in finding:
            anchor = finding_anchor(result.check, audit.variant, audit.case)
            finding |= {base: anchor} if anchor in anchors else {}
    return tuple(
        (worst(by_check[check]) if check in by_check else "absent", finding.get(check, ""))
        for check in evidence.plan.checks
    )


def labels(evidence: RunRecord) -> dict[str, str]:
    """A short name for each case: its origin, or its value of the main axis; and what else is unusual about it."""
    cases = evidence.plan.cases
    main = main_axis(evidence)
    usual = {
        name: Counter(repr(case.axes.get(name)) for case in cases).most_common(1)[0][0]
        for name in (cases[0].axes if cases else {})
    }
    found = {}
    for case in cases:
        origin = "/".join(case.capture.split("/")[-2:]) if case.capture else case.probe or ""
        odd = [str(at) for name, at in case.axes.items() if name != main and repr(at) != usual.get(name)]
        plain = f"{main}={case.axes.get(main)}" if main else f"seed {case.seed}"
        found[case.id] = origin or " ".join([plain, *odd[:3]])
    return found
