"""Tables that are too long for a page: they lie beside it as files, named by what they hold."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterable, Sequence

import msgspec

from audit.checks.result import Figure
from audit.records.run import RunRecord
from audit.report.tables import ErrorRow, MetricRow, Row


class Attachment(msgspec.Struct, frozen=True):
    """One file beside a page; `name` carries the first digits of the sha256 of its content."""

    name: str
    content: bytes
    rows: int


def csv_table(stem: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> Attachment:
    """A table as comma-separated values."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    count = 0
    for row in rows:
        writer.writerow(row)
        count += 1
    content = text.getvalue().encode()
    return Attachment(f"{stem}-{hashlib.sha256(content).hexdigest()[:16]}.csv", content, count)


def errors(rows: Sequence[ErrorRow]) -> Attachment:
    """Every row of the table of errors against bounds."""
    head = ("case", "variant", "bound", "step", "where", "measured", "limit", "used", "verdict")
    return csv_table(
        "errors",
        head,
        (
            (
                *(row.case, row.variant, row.bound, row.result.step, row.result.where),
                *(_text(row.result.measured), _text(row.result.limit), row.used, row.result.verdict),
            )
            for row in rows
        ),
    )


def metrics_table(rows: Sequence[MetricRow]) -> Attachment:
    """Every row of the table of errors in numbers."""
    head = ("case", "variant", "array", "step", "max abs", "relative L2", "ULP median", "ULP 99 %", "ULP max")
    return csv_table(
        "metrics",
        head,
        (
            (
                *(row.case, row.variant, row.metric.name, row.metric.step),
                *(_text(row.metric.max_abs), _text(row.metric.relative_l2), *(row.metric.ulp or ("", "", ""))),
            )
            for row in rows
        ),
    )


def cases(evidence: RunRecord, rows: Sequence[Row]) -> Attachment:
    """Every case with each variant's verdict."""
    head = ("case", *(variant.label for variant in evidence.plan.variants))
    return csv_table(
        "cases",
        head,
        ((row.case.id, *(cell.verdict if cell else "did not run" for cell in row.cells)) for row in rows),
    )


def inputs_table(evidence: RunRecord) -> Attachment:
    """What every case was given, by its digests."""
    head = ("case", "what it is", "sha256 of all inputs", "capture manifest sha256")
    described = evidence.plan.described
    return csv_table(
        "inputs",
        head,
        (
            (one.case.id, described.get(one.case.id, ""), one.inputs_sha256, one.capture_sha256 or "generated")
            for one in evidence.cases
        ),
    )


def _text(figure: Figure | None) -> str:
    return "" if figure is None else figure.text
