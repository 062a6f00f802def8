"""Where errors lie: against the axis that a plan varies most, by row and head, and in ULP."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TypeVar

import msgspec
from markupsafe import Markup

from audit.checks.result import Result
from audit.records.run import RunRecord
from audit.report.chart import Series, chart
from audit.report.histogram import histogram
from audit.report.tables import used

_INDEX = re.compile(r"\b(\w{1,64})=(\d{1,9})")
_Key = TypeVar("_Key")
_MOST, _MOST_VALUES = 16, 64
"""The most indices along a dimension of a grid, and values of an axis, that a page shows."""


class WorstShare(msgspec.Struct, frozen=True):
    """The share of a limit that is used at most, and the audit that uses it."""

    share: float
    case: str
    variant: str


class Curves(msgspec.Struct, frozen=True):
    """For each bound: value of the axis -> the worst over all variants, steps and cases that have it."""

    axis: str
    values: tuple[int, ...]
    bounds: dict[str, dict[int, WorstShare]]
    picture: Markup
    left_out: int  # values of the axis that use less than those shown


class ErrorMap(msgspec.Struct, frozen=True):
    """One bound: (index along `down`, index along `right`) -> the worst result whose worst element lies there."""

    bound: str
    down: str
    right: str
    downs: tuple[int, ...]
    rights: tuple[int, ...]
    cells: dict[tuple[int, int], WorstShare]


class Distances(msgspec.Struct, frozen=True):
    """One array over all audits and steps: how many elements lie how many ULP from the rounded reference."""

    name: str
    counts: tuple[int, ...]
    labels: tuple[str, ...]
    picture: Markup


def main_axis(evidence: RunRecord) -> str | None:
    """The axis with the most values among the planned cases; None where no axis has two whole numbers above zero."""
    seen: dict[str, set[int]] = {}
    for case in evidence.plan.cases:
        for name, value in case.axes.items():
            if isinstance(value, int) and value > 0:
                seen.setdefault(name, set()).add(value)
    most = max(seen, key=lambda name: len(seen[name]), default=None)
    return most if most and len(seen[most]) > 1 else None


def curves(evidence: RunRecord) -> Curves | None:
    """Error against the main axis; None where there is no such axis, or no bound."""
    axis = main_axis(evidence)
    at = {case.id: case.axes.get(axis) for case in evidence.plan.cases} if axis else {}
    bounds: dict[str, dict[int, WorstShare]] = {}
    for bound, found, _ in _bounded(evidence):
        value = at.get(found.case)
        if isinstance(value, int) and value > 0:
            _keep(bounds.setdefault(bound, {}), value, found)
    if axis is None or not bounds:
        return None
    most: dict[int, float] = {}
    for points in bounds.values():
        for value, worst in points.items():
            most[value] = max(worst.share, most.get(value, 0.0))
    values = sorted(sorted(most, key=lambda value: -most[value])[:_MOST_VALUES])
    bounds = {bound: {x: points[x] for x in values if x in points} for bound, points in bounds.items()}
    series = [
        Series(bound, {x: worst.share for x, worst in points.items() if 0 < worst.share < math.inf})
        for bound, points in bounds.items()
    ]
    picture = chart([*series, *_whole(values)], axis, "share of the limit used")
    return Curves(axis, tuple(values), bounds, picture, len(most) - len(values))


def _whole(values: list[int]) -> list[Series]:
    return [Series("the limit", dict.fromkeys((values[0], values[-1]), 1.0), muted=True)]


def error_maps(evidence: RunRecord) -> list[ErrorMap]:
    """By row and head, in the project's own names: the last two short dimensions that name worst elements."""
    located: dict[str, list[tuple[dict[str, int], WorstShare]]] = {}
    for bound, found, result in _bounded(evidence):
        index = {name: int(at) for name, at in _INDEX.findall(result.where)}
        if index and found.share > 0:
            located.setdefault(bound, []).append((index, found))
    grids = []
    for bound, mine in located.items():
        seen: dict[str, set[int]] = {}
        for index, _ in mine:
            for name, at in index.items():
                seen.setdefault(name, set()).add(at)
        short = [name for name, values in seen.items() if max(values) < _MOST]
        if len(short) < 2:
            continue
        down, right = short[-2:]
        cells: dict[tuple[int, int], WorstShare] = {}
        for index, found in mine:
            if down in index and right in index:
                _keep(cells, (index[down], index[right]), found)
        downs, rights = (tuple(range(max(seen[name]) + 1)) for name in (down, right))
        grids.append(ErrorMap(bound, down, right, downs, rights, cells))
    return grids


def distances(evidence: RunRecord) -> list[Distances]:
    """The ULP histogram of every measured array (final and pre-cast, where a project declares both)."""
    totals: dict[str, Counter[int]] = {}
    for audit in evidence.audits:
        for metric in audit.metrics:
            if metric.ulp_counts:
                totals.setdefault(metric.name, Counter()).update(dict(enumerate(metric.ulp_counts)))
    found = []
    for name, total in totals.items():
        counts = tuple(total[bin_] for bin_ in range(max(total) + 1))
        labels = tuple(_label(bin_) for bin_ in range(len(counts)))
        picture = histogram(counts, [_short(bin_) for bin_ in range(len(counts))], f"Ulp distances of {name}")
        found.append(Distances(name, counts, labels, picture))
    return found


def _bounded(evidence: RunRecord) -> list[tuple[str, WorstShare, Result]]:
    return [
        (
            result.check.partition(":")[2],
            WorstShare(used(result.measured, result.limit), audit.case, audit.variant),
            result,
        )
        for audit in evidence.audits
        for result in audit.results
        if result.check.startswith("error:") and result.measured and result.limit
    ]


def _keep(found: dict[_Key, WorstShare], key: _Key, worst: WorstShare) -> None:
    if key not in found or worst.share > found[key].share:
        found[key] = worst


def _label(bin_: int) -> str:
    low, high = 2 ** (bin_ - 1), 2**bin_ - 1
    return str(bin_) if bin_ < 2 else f"{low:,} to {high:,}"


def _short(bin_: int) -> str:
    return str(bin_) if bin_ < 2 else f"<{2**bin_}" if bin_ < 14 else f"<2^{bin_}"
