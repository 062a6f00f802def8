"""One bench as one offline HTML page: what was timed and how, then every figure, then what they rest on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from markupsafe import Markup

from audit.bench import curve, text
from audit.bench.curve import Comparison
from audit.bench.pairs import STEP, Added, Arm, Figures, added, arms, figures, floor_ms
from audit.project import Project
from audit.records.bench import CURVE, BenchRecord
from audit.records.folder import REPORT
from audit.report.chart import Series, chart
from audit.report.point import NamedPoint, Point
from audit.report.template import template

_CLASSES = {"faster": "pass", "slower": "fail", "no difference": "soft"}
_FLOOR = "floor (bytes / copy bandwidth)"


class AddedCosts(msgspec.Struct, frozen=True):
    """One arm's (or the floor's) cost per added 1,024 tokens: (start, end) of the context -> microseconds."""

    name: str
    microseconds: dict[tuple[int, int], float]


def pages(record: BenchRecord, files: Mapping[str, bytes], _project: Project | None) -> dict[str, bytes]:
    """The page of a bench, beside the frozen curve among its files, by name."""
    frozen = curve.decode(files[CURVE], Path(CURVE)) if CURVE in files else None
    return {REPORT: render_bench(record, curve.compare(frozen, record) if frozen else None).encode()}


def points(record: BenchRecord) -> Iterator[NamedPoint]:
    """What two benches can be compared by."""
    for row in figures(record):
        name = f"{row.b} beside {row.a}, {row.context:,} tokens"
        yield ("pair", name), Point(f"{row.ratio.median:.4f} of its time", row.ratio.low, row.ratio.high)


def render_bench(evidence: BenchRecord, comparison: Comparison | None = None) -> str:
    """The page for one bench, beside a frozen curve where it was compared with one. Everything in it is escaped.

    Raises EvidenceError where the record's times are malformed.
    """
    timed = arms(evidence)
    floor = {point.context: floor_ms(point.moved, evidence.bandwidth.copy) for point in evidence.points}
    costs = [AddedCosts(arm.name, _spans(added(arm.ms))) for arm in timed]
    costs.append(AddedCosts(_FLOOR, _spans(added(floor))))
    return template("bench.html.j2").render(
        evidence=evidence,
        comparison=comparison,
        described=text.described(evidence),
        tables=_by_context(figures(evidence)),
        verdicts=text.verdicts(figures(evidence)),
        arms=timed,
        contexts=sorted({context for arm in timed for context in arm.ms}),
        floor=floor,
        floor_name=_FLOOR,
        chart=_chart(timed, floor),
        step=STEP,
        costs=costs,
        spans=sorted({span for row in costs for span in row.microseconds}),
        errors=sorted(evidence.errors, key=lambda error: (error.context, error.relative_l2)),
        compared=sum(entry.nbytes for entry in evidence.checked),
        differing=sum(entry.differing for entry in evidence.checked),
        unlike=_unlike(evidence, timed),
        classes=_CLASSES,
        ms=text.ms,
        spread=text.spread,
    )


def _by_context(rows: tuple[Figures, ...]) -> dict[int, list[Figures]]:
    found: dict[int, list[Figures]] = {}
    for row in rows:
        found.setdefault(row.context, []).append(row)
    return found


def _spans(rows: tuple[Added, ...]) -> dict[tuple[int, int], float]:
    return {(row.start, row.end): row.microseconds for row in rows}


def _unlike(evidence: BenchRecord, timed: tuple[Arm, ...]) -> list[str]:
    """The variants of which bytes differ, and whether they were timed."""
    names = {arm.name for arm in timed}
    wrong = dict.fromkeys(entry.variant for entry in evidence.checked if entry.differing)
    return [f"{name} ({'timed all the same' if name in names else 'not timed'})" for name in wrong]


def _chart(timed: tuple[Arm, ...], floor: Mapping[int, float]) -> Markup:
    series = [Series(arm.name, arm.ms) for arm in timed]
    return chart([*series, Series(_FLOOR, floor, muted=True)], "context, tokens", "ms a replay, all layers")
