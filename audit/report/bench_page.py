"""One bench as one offline HTML page: the winner and the chart, then every figure, then what they rest on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec
from markupsafe import Markup

from audit.bench import curve, text
from audit.bench.curve import CurveComparison
from audit.bench.pairs import STEP, AddedCost, Figures, TimedArm, added, arms, figures, floor_ms
from audit.project import Project
from audit.records.bench import CURVE, KIND, BenchRecord
from audit.records.folder import REPORT
from audit.report.chart import Series, chart
from audit.report.point import NamedPoint, Point
from audit.report.template import template
from audit.report.winner import winners

_NO_FILES: Mapping[str, bytes] = {}
_CLASSES = {"faster": "pass", "slower": "fail", "no difference": "soft"}
_FLOOR = "floor (bytes / copy bandwidth)"


class AddedCosts(msgspec.Struct, frozen=True):
    """One arm's (or the floor's) cost for 1,024 more of the axis: (start, end) -> microseconds."""

    name: str
    microseconds: dict[tuple[int, int], float]


def pages(record: BenchRecord, files: Mapping[str, bytes], _project: Project | None) -> dict[str, bytes]:
    """The page of a bench, beside the frozen curve among its files, by name."""
    frozen = curve.decode_curve(files[CURVE], Path(CURVE)) if CURVE in files else None
    comparison = curve.compare_with_curve(frozen, record) if frozen else None
    return {REPORT: render_bench(record, comparison, files).encode()}


def points(record: BenchRecord) -> Iterator[NamedPoint]:
    """What two benches can be compared by."""
    for row in figures(record):
        name = f"{row.b} beside {row.a}, {record.at(row.value)}"
        yield ("pair", name), Point(f"{row.ratio.median:.4f} of its time", row.ratio.low, row.ratio.high)


def render_bench(
    evidence: BenchRecord, comparison: CurveComparison | None = None, files: Mapping[str, bytes] = _NO_FILES
) -> str:
    """The page for one bench, beside a frozen curve where it was compared with one. Everything in it is escaped.

    Raises EvidenceError where the record's times are malformed.
    """
    timed = arms(evidence)
    floor = {point.value: floor_ms(point.moved, evidence.bandwidth.copy) for point in evidence.points}
    costs = [AddedCosts(arm.name, _spans(added(arm.ms))) for arm in timed]
    costs.append(AddedCosts(_FLOOR, _spans(added(floor))))
    rows, wrong = figures(evidence), dict.fromkeys(one.variant for one in evidence.checked if one.refused)
    return template("bench.html.j2").render(
        evidence=evidence,
        record_sha256=KIND.digest(evidence, files),
        sections=_sections(evidence, comparison),
        winners=winners(timed, rows, wrong),
        comparison=comparison,
        described=text.described(evidence),
        tables=_by_value(rows),
        verdicts=text.verdicts(rows),
        arms=timed,
        values=sorted({value for arm in timed for value in arm.ms}),
        floor=floor,
        floor_name=_FLOOR,
        chart=_chart(evidence.axis, timed, floor),
        step=STEP,
        costs=costs,
        spans=sorted({span for row in costs for span in row.microseconds}),
        errors=sorted(evidence.errors, key=lambda error: (error.value, error.relative_l2)),
        compared=sum(entry.nbytes for entry in evidence.checked),
        differing=sum(entry.differing for entry in evidence.checked if entry.refused),
        permitted=sum(entry.differing for entry in evidence.checked if not entry.refused),
        unlike=_unlike(wrong, timed),
        classes=_CLASSES,
        ms=text.ms,
        spread=text.spread,
    )


def _sections(evidence: BenchRecord, comparison: CurveComparison | None) -> dict[str, str]:
    """Anchor -> title of every section that has something in it, in the order of the page."""
    timed = any(point.pairs for point in evidence.points)
    sections = {
        "verdicts": ("In words", timed),
        "pairs": ("Pairs", timed),
        "curve": ("Times", timed),
        "added": ("Added cost", len(evidence.points) > 1),
        "frozen": ("Frozen curve", comparison),
        "bytes": ("Bytes", evidence.checked),
        "errors": ("Errors", evidence.errors),
        "bandwidth": ("Bandwidth", True),
        "skipped": ("Not timed", evidence.skipped),
        "identity": ("Identity", evidence.builds),
        "peers": ("Peers", evidence.peers),
    }
    return {anchor: title for anchor, (title, has_content) in sections.items() if has_content}


def _by_value(rows: tuple[Figures, ...]) -> dict[int, list[Figures]]:
    found: dict[int, list[Figures]] = {}
    for row in rows:
        found.setdefault(row.value, []).append(row)
    return found


def _spans(rows: tuple[AddedCost, ...]) -> dict[tuple[int, int], float]:
    return {(row.start, row.end): row.microseconds for row in rows}


def _unlike(wrong: Iterable[str], timed: tuple[TimedArm, ...]) -> list[str]:
    """The variants whose bytes differ, and whether they were timed."""
    names = {arm.name for arm in timed}
    return [f"{name} ({'timed all the same' if name in names else 'not timed'})" for name in wrong]


def _chart(axis: str, timed: tuple[TimedArm, ...], floor: Mapping[int, float]) -> Markup:
    series = [Series(arm.name, arm.ms) for arm in timed]
    return chart([*series, Series(_FLOOR, floor, muted=True)], axis, "ms a replay, all layers")
