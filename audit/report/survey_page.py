"""A survey as one offline HTML page: the counts, then a line for each shape, those that did not pass first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from audit.project import Project
from audit.records.folder import REPORT
from audit.records.survey import KIND, SurveyRecord
from audit.report.point import NamedPoint, Point
from audit.report.template import template

_ORDER = {"fail": 0, "inconclusive": 1, "pass": 2}
_MARKS = {"pass": "✓", "fail": "✗", "inconclusive": "?"}


def pages(record: SurveyRecord, files: Mapping[str, bytes], _project: Project | None) -> dict[str, bytes]:
    """The page of a survey, by name."""
    page = template("survey.html.j2").render(
        evidence=record,
        record_sha256=KIND.digest(record, files),
        summary=record.summary,
        shapes=sorted(record.shapes, key=lambda shape: (_ORDER[shape.verdict], shape.shape)),
        compilers=sorted({build.compiler for build in record.builds.values()}),
        marks=_MARKS,
    )
    return {REPORT: page.encode()}


def points(record: SurveyRecord) -> Iterator[NamedPoint]:
    """What two surveys can be compared by."""
    for shape in record.shapes:
        for variant in shape.variants:
            yield ("verdict", f"{shape.shape}, {variant.name}"), Point.of(variant.verdict)
