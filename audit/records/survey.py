"""The record of a survey: every shape of a project run once, a line each.

A run's own record says everything about one operator. A survey keeps what many operators came to: the verdict of each
variant, the checks that said so, the sanitizers that ran, and what was not judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from audit.checks.result import Verdict, worst
from audit.compile.identity import BuildIdentity
from audit.project import Project
from audit.records.closure import changed_files
from audit.records.kind import Draft, Headline, Kind
from audit.records.machine import MachineRecord

SCHEMA = 1


class Objection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What did not pass: a check or a sanitizer, its verdict, and the first thing that it says."""

    source: str
    verdict: Verdict
    detail: str


class SurveyedVariant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One variant of a shape: the worst verdict over checks and sanitizers, and all that did not pass."""

    name: str
    parent: str
    verdict: Verdict
    objections: tuple[Objection, ...]
    notes: tuple[str, ...]  # seen and not judged


class SurveyedShape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One shape: what its run and its sanitizers came to.

    `refusal` is the message with which the command ended before it judged anything; such a shape is inconclusive.
    """

    shape: str
    verdict: Verdict
    seconds: float
    cases: int
    variants: tuple[SurveyedVariant, ...]
    tools: dict[str, Verdict]  # sanitizer -> its verdict over all variants; empty where none ran
    records: tuple[str, ...]  # sha256 of the records of the run and the session
    refusal: str = ""


class SurveySummary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Counts of shapes, and the verdict over all."""

    verdict: Verdict
    planned: int
    passed: int
    failed: int
    inconclusive: int
    seconds: float


class SurveyRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything about one survey. `files` are relative to the folder `project` is given relative to."""

    schema: int
    kind: str
    tool: str
    started: str
    command: str
    commit: str | None
    project: str  # its folder, relative to the folder in which the command ran
    backend: str
    planned: tuple[str, ...]  # shapes
    machine: MachineRecord
    shapes: tuple[SurveyedShape, ...]
    builds: dict[str, BuildIdentity]
    files: dict[str, str]  # every source and module of the project that took part -> sha256
    summary: SurveySummary


def draft(runs: Path, label: str) -> Draft:
    """The unfinished folder of a survey."""
    return Draft(runs, KIND, f"survey-{label}", {})


def summarize_survey(planned: tuple[str, ...], shapes: tuple[SurveyedShape, ...], seconds: float) -> SurveySummary:
    """The verdict over all shapes; one that is missing is inconclusive."""
    count = Counter(one.verdict for one in shapes)
    missing: list[Verdict] = ["inconclusive"] * (len(planned) - len(shapes))
    return SurveySummary(
        worst([*(one.verdict for one in shapes), *missing]),
        len(planned),
        count["pass"],
        count["fail"],
        count["inconclusive"] + len(missing),
        seconds,
    )


def _lacks(record: SurveyRecord) -> Iterator[str]:
    there = {one.shape for one in record.shapes}
    yield from (f"shape {name} has no result" for name in record.planned if name not in there)


def _disagrees(record: SurveyRecord, files: Mapping[str, bytes]) -> Iterator[str]:  # noqa: ARG001
    expected = summarize_survey(record.planned, record.shapes, record.summary.seconds)
    if expected != record.summary:
        yield f"its summary should be {expected}"
    for shape in record.shapes:
        found = [variant.verdict for variant in shape.variants]
        if shape.verdict != ("inconclusive" if shape.refusal else worst([*found, *shape.tools.values()])):
            yield f"shape {shape.shape}: its verdict is {shape.verdict}, but those of its variants and tools are others"
        for variant in shape.variants:
            if any(one.verdict == "fail" for one in variant.objections) and variant.verdict != "fail":
                yield f"shape {shape.shape}: {variant.name} is {variant.verdict}, but something failed"


def _headline(record: SurveyRecord) -> Headline:
    summary = record.summary
    wrong = [one.shape for one in record.shapes if one.verdict != "pass"]
    return Headline(
        operator=record.project,
        shape=record.project,
        backend=record.backend,
        verdict=summary.verdict,
        counts=f"{summary.passed} of {summary.planned} shapes passed, {summary.failed} with findings",
        problem=f"did not pass: {', '.join(wrong[:5])}{', ...' if len(wrong) > 5 else ''}" if wrong else "",
    )


def _changed(record: SurveyRecord, project: Project) -> Iterator[tuple[str, str]]:
    yield from changed_files(project.root, record.files)


KIND = Kind(
    name="survey",
    title="a survey",
    file="survey.json",
    record=SurveyRecord,
    schemas=(SCHEMA,),
    beside=(),
    lacks=_lacks,
    disagrees=_disagrees,
    headline=_headline,
    page="audit.report.survey_page",
    resolved_cases=lambda _record: (),
    changed=_changed,
)
