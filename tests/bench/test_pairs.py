"""Figures of pairs, against values worked out by hand."""

from __future__ import annotations

import pytest

from audit.bench.pairs import Spread, added, arms, figures, floor_ms, judge_times
from audit.errors import EvidenceError

from .records import bench, pair, point


def test_medians_ratios_and_floors_by_hand() -> None:
    timed = pair(
        a_ms=(2.0, 1.0, 4.0, 2.0, 2.5), b_ms=(1.0, 0.5, 1.0, 1.5, 1.0), again_ms=(2.2, 1.0, 3.8, 2.1, 2.5)
    )  # B/A 0.5, 0.5, 0.25, 0.75, 0.4; A/A 1.1, 1, 0.95, 1.05, 1
    (row,) = figures(bench(point(1024, timed)))
    assert (row.value, row.a, row.b, row.b_is_peer) == (1024, "control", "fast", False)
    assert (row.a_ms, row.b_ms, row.again_ms) == (2.0, 1.0, 2.2)
    assert row.ratio == Spread(0.5, 0.25, 0.75)
    assert (row.same.median, row.same.low, row.same.high) == pytest.approx((1.0, 0.95, 1.1))
    assert row.word == "faster"
    assert (row.a_floor_ms, row.b_floor_ms) == pytest.approx((0.1, 0.1))  # 4e8 bytes at 4e12 bytes/s
    assert (row.a_multiple, row.b_multiple) == pytest.approx((20, 10))


def test_a_ratio_is_that_of_one_trial_and_not_of_medians() -> None:
    """The device slows down threefold during the run; B is a tenth slower in each trial."""
    a = (1.0, 1.5, 2.0, 2.5, 3.0)
    (row,) = figures(bench(point(1024, pair(a_ms=a, b_ms=[1.1 * ms for ms in a]))))
    assert (row.ratio.low, row.ratio.high) == pytest.approx((1.1, 1.1))
    assert row.word == "slower"


def test_a_planted_slow_variant_is_told_slower() -> None:
    noisy = (1.0, 1.01, 0.99, 1.0, 1.02)
    slow = pair("slow", a_ms=noisy, b_ms=[1.03 * ms for ms in noisy], again_ms=[1.005 * ms for ms in noisy])
    (row,) = figures(bench(point(1024, slow)))
    assert row.word == "slower"


@pytest.mark.parametrize(
    ("ratio", "same", "word"),
    [
        ((0.97, 0.98), (0.99, 1.01), "faster"),
        ((1.02, 1.03), (0.99, 1.01), "slower"),
        ((0.97, 0.98), (0.96, 1.01), "no difference"),  # noise wider than the difference
        ((0.97, 1.00), (0.99, 1.01), "no difference"),  # one trial inside the noise
        ((0.97, 1.03), (0.99, 1.01), "no difference"),  # on both sides of 1
        ((0.99, 0.99), (1.00, 1.00), "faster"),
        ((1.00, 1.00), (1.00, 1.00), "no difference"),  # not on one side of 1
        ((0.99, 0.995), (1.02, 1.05), "no difference"),  # A's own arms differ by more, the other way
        ((1.01, 1.02), (0.94, 0.96), "no difference"),
        ((1.005, 1.01), (1.02, 1.05), "no difference"),  # slower than one arm of A, faster than the other
        ((0.93, 0.94), (1.02, 1.05), "faster"),
    ],
)
def test_a_difference_counts_only_outside_the_noise(
    ratio: tuple[float, float], same: tuple[float, float], word: str
) -> None:
    assert judge_times(Spread.of(ratio), Spread.of(same), 5) == word


def test_two_trials_show_no_difference() -> None:
    assert judge_times(Spread.of((0.5, 0.5)), Spread.of((1.0, 1.0)), 2) == "no difference"
    assert judge_times(Spread.of((0.5, 0.5)), Spread.of((1.0, 1.0)), 3) == "faster"


def test_a_peer_has_a_floor_of_its_own() -> None:
    timed = point(1024, pair("peer", peer=True), pair("fast"), moved=400_000_000, peer=800_000_000)
    peer, fast = figures(bench(timed))
    assert (peer.a_floor_ms, peer.b_floor_ms) == pytest.approx((0.1, 0.2))
    assert peer.b_multiple == pytest.approx(2.5)
    assert fast.b_floor_ms == pytest.approx(0.1)


def test_an_arm_is_the_median_over_all_that_was_timed_of_it() -> None:
    """control: 1 1 1 | 2 2 2 from the first pair, 4 4 4 | 8 8 8 from the second; middle of 2 and 4."""
    first = pair("fast", a_ms=(1, 1, 1), b_ms=(7, 5, 6), again_ms=(2, 2, 2))
    second = pair("peer", a_ms=(4, 4, 4), b_ms=(9, 9, 9), again_ms=(8, 8, 8), peer=True)
    control, fast, peer = arms(bench(point(1024, first, second), point(2048, pair("fast"))))
    assert (control.name, control.is_peer, control.ms) == ("control", False, {1024: 3.0, 2048: 1.0})
    assert (fast.name, fast.ms) == ("fast", {1024: 6.0, 2048: 0.5})
    assert (peer.name, peer.is_peer, peer.ms) == ("peer", True, {1024: 9.0})


def test_one_name_cannot_be_a_variant_and_a_peer() -> None:
    with pytest.raises(EvidenceError, match="'fast' names both"):
        arms(bench(point(1024, pair("fast"), pair("fast", peer=True))))


def test_cost_of_added_tokens_by_hand() -> None:
    """0.5 ms for 4,096 tokens are 125 us for each 1,024; order of the record does not matter."""
    first, second = added({8192: 1.5, 1024: 0.9, 4096: 1.0})
    assert (first.start, first.end) == (1024, 4096)
    assert first.microseconds == pytest.approx(100 / 3)
    assert (second.start, second.end, second.microseconds) == (4096, 8192, pytest.approx(125))
    assert added({1024: 1.0}) == ()


@pytest.mark.parametrize(("moved", "copy"), [(0, 4e12), (-1, 4e12), (1, 0.0), (1, float("nan")), (1, float("inf"))])
def test_no_floor_without_bytes_or_bandwidth(moved: int, copy: float) -> None:
    with pytest.raises(EvidenceError, match="positive copy bandwidth"):
        floor_ms(moved, copy)


@pytest.mark.parametrize(
    "b_ms", [(), (1.0,), (1.0, 0.0, 1.0, 1.0, 1.0), (1.0, -1.0, 1, 1, 1), (1, 1, 1, 1, float("nan"))]
)
def test_malformed_times_are_refused(b_ms: tuple[float, ...]) -> None:
    with pytest.raises(EvidenceError, match="pair fast beside control at 1,024"):
        figures(bench(point(1024, pair(b_ms=b_ms))))
