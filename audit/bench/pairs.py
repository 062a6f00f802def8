"""Computes figures from timed pairs: medians, paired ratios, verdicts, multiples of the floor, added cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import pairwise
from statistics import median
from typing import Literal

import msgspec

from audit.errors import EvidenceError
from audit.records.bench import BenchRecord, Pair, TimedPoint

Word = Literal["faster", "slower", "no difference"]
STEP = 1024
"""Costs are for this much more of the axis."""
_LEAST_TRIALS = 3


class Spread(msgspec.Struct, frozen=True):
    """Median, minimum and maximum of one figure over all trials."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """The spread of at least one value."""
        ordered = sorted(values)
        return cls(median(ordered), ordered[0], ordered[-1])


class Figures(msgspec.Struct, frozen=True):
    """One pair at one value of the axis. Times and floors are in ms a replay. `ratio` is B/A, `same` is A again/A."""

    value: int
    a: str
    b: str
    b_is_peer: bool
    a_ms: float
    b_ms: float
    again_ms: float
    ratio: Spread
    same: Spread
    word: Word
    a_floor_ms: float
    b_floor_ms: float  # a peer with other storage has its own floor

    @property
    def a_multiple(self) -> float:
        """A's time in multiples of its floor."""
        return self.a_ms / self.a_floor_ms

    @property
    def b_multiple(self) -> float:
        """B's time in multiples of its floor."""
        return self.b_ms / self.b_floor_ms


class TimedArm(msgspec.Struct, frozen=True):
    """A variant or peer: value of the axis -> median ms of one replay, over all trials of all its pairs."""

    name: str
    is_peer: bool
    ms: dict[int, float]
    floor_ms: dict[int, float]


class AddedCost(msgspec.Struct, frozen=True):
    """The cost of 1,024 more of the axis between two of its values, in microseconds of one replay (all layers)."""

    start: int
    end: int
    microseconds: float


def figures(record: BenchRecord) -> tuple[Figures, ...]:
    """The figures of every pair, in the record's order. Raises EvidenceError for malformed times."""
    return tuple(_figures(pair, point, record.bandwidth.copy) for point in record.points for pair in point.pairs)


def judge_times(ratio: Spread, same: Spread, trials: int) -> Word:
    """Whether B differs from A in time.

    A difference counts only if the whole range of the paired ratios B/A is outside the range of the A/A ratios and on
    one side of 1. The order of A's two arms is arbitrary, so the A/A range includes its mirror image (1/ratio) and 1.
    B is faster if its maximum ratio is less than all of these, and slower if its minimum ratio is greater than all of
    them. Otherwise, or with fewer than three trials, there is no difference.
    """
    if trials < _LEAST_TRIALS:
        return "no difference"
    if ratio.high < min(same.low, 1 / same.high, 1.0):
        return "faster"
    if ratio.low > max(same.high, 1 / same.low, 1.0):
        return "slower"
    return "no difference"


def floor_ms(moved: int, copy: float) -> float:
    """Milliseconds to move `moved` bytes at `copy` bytes per second. Both count bytes read and bytes written."""
    if not (math.isfinite(copy) and copy > 0) or moved <= 0:
        raise EvidenceError(
            f"floor: expected positive bytes and a positive copy bandwidth, but got {moved} bytes at {copy} bytes/s; "
            f"run the bench again"
        )
    return 1e3 * moved / copy


def arms(record: BenchRecord) -> tuple[TimedArm, ...]:
    """Every timed variant and peer, in order of appearance. Raises EvidenceError if one name is both."""
    kinds: dict[str, bool] = {}
    times: dict[str, dict[int, list[float]]] = {}
    floors: dict[str, dict[int, float]] = {}
    for point in record.points:
        for pair in point.pairs:
            _require_times(pair, point.value)
            for name, is_peer, ms in (
                (pair.a, False, (*pair.a_ms, *pair.again_ms)),
                (pair.b, pair.b_is_peer, pair.b_ms),
            ):
                if kinds.setdefault(name, is_peer) is not is_peer:
                    raise EvidenceError(f"{name!r} names both a variant and a peer; rename the peer and bench again")
                times.setdefault(name, {}).setdefault(point.value, []).extend(ms)
                floors.setdefault(name, {})[point.value] = floor_ms(_moved(point, name, is_peer), record.bandwidth.copy)
    return tuple(
        TimedArm(name, kinds[name], {value: median(ms) for value, ms in by.items()}, floors[name])
        for name, by in times.items()
    )


def added(ms: Mapping[int, float]) -> tuple[AddedCost, ...]:
    """The cost of 1,024 more of the axis between successive values, from value -> ms."""
    return tuple(
        AddedCost(start, end, 1e3 * (ms[end] - ms[start]) * STEP / (end - start)) for start, end in pairwise(sorted(ms))
    )


def _figures(pair: Pair, point: TimedPoint, copy: float) -> Figures:
    _require_times(pair, point.value)
    ratio = Spread.of(b / a for a, b in zip(pair.a_ms, pair.b_ms, strict=True))
    same = Spread.of(again / a for a, again in zip(pair.a_ms, pair.again_ms, strict=True))
    return Figures(
        point.value,
        pair.a,
        pair.b,
        pair.b_is_peer,
        median(pair.a_ms),
        median(pair.b_ms),
        median(pair.again_ms),
        ratio,
        same,
        judge_times(ratio, same, len(pair.a_ms)),
        floor_ms(point.moved, copy),
        floor_ms(_moved(point, pair.b, pair.b_is_peer), copy),
    )


def _moved(point: TimedPoint, name: str, is_peer: bool) -> int:
    return point.peer_moved.get(name, point.moved) if is_peer else point.moved


def _require_times(pair: Pair, value: int) -> None:
    trials = (pair.a_ms, pair.b_ms, pair.again_ms)
    alike = len({len(ms) for ms in trials}) == 1 and pair.a_ms
    if not alike or not all(math.isfinite(value) and value > 0 for ms in trials for value in ms):
        raise EvidenceError(
            f"pair {pair.b} beside {pair.a} at {value:,}: expected equally many positive times of its three "
            f"arms, but got {trials}; run the bench again"
        )
