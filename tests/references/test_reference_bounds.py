"""The bounds: a sound result stays within them, and each planted fault leaves a named one."""

from collections.abc import Mapping

import numpy as np
import pytest

from . import planted_faults
from .paged_case import PagedCase, paged_case
from .planted_faults import FAULTS, Result
from .project_references import bounds, fp64, splits

Array = np.ndarray

_RNG = np.random.default_rng(9)
BIASED = np.linspace(-4, 4, 64) + 0.3 * _RNG.normal(size=(400, 64))
ONE_HOT = (np.arange(400)[:, None] % 64 == np.arange(64)).astype(np.float32)

PLAN: dict[str, PagedCase] = {
    "random": paged_case(400, rows=3, seed=1),
    "peaked": paged_case(400, rows=3, seed=2, query_size=12),
    "uniform": paged_case(400, rows=3, seed=3, query_size=0),
    "biased": paged_case(400, rows=3, seed=4, values=BIASED),
}
SOUND: dict[str, PagedCase] = {
    **PLAN,
    "wide": paged_case(257, rows=8, heads=6, dims=256, seed=5),
    "one-hot": paged_case(400, values=ONE_HOT, query_size=12),
    "alternating": paged_case(400, values=np.where(np.arange(400)[:, None] % 2, 1, -1) * np.ones(64), query_size=0),
    "zero V": paged_case(100, values=np.zeros((100, 64))),
    "some rows empty": paged_case(200, rows=6, lengths=[0, 37, 0, 1, -9, 200]),
    "sharp": paged_case(257, query_size=400),
    **{f"total {n}": paged_case(n, rows=3, query_size=2) for n in (1, 31, 32, 33, 129, 257)},
    "nothing": paged_case(0, lengths=[0, 0]),
}
_REFERENCES: dict[int, fp64.GroupedFP64] = {}


def reference(case: PagedCase) -> fp64.GroupedFP64:
    if id(case) not in _REFERENCES:
        _REFERENCES[id(case)] = fp64.grouped_fp64(*case.arrays, **case.scales)
    return _REFERENCES[id(case)]


def verdicts(case: PagedCase, result: Result) -> Mapping[str, tuple[Array, Array]]:
    exact, active = reference(case), len(splits.splits(splits.total_of(case.lengths)))
    return {
        "precast": bounds.precast_error(result.precast, exact),
        "partial": bounds.partial_error(result.partial, result.lse, exact, active),
        "lse": bounds.lse_error(result.lse, exact, active),
        "final": bounds.final_error(result.out, exact),
    }


def caught_by(case: PagedCase, result: Result) -> set[str]:
    return {name for name, (measured, bound) in verdicts(case, result).items() if not (measured <= bound).all()}


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_result_is_within_every_bound(name: str) -> None:
    case = SOUND[name]
    for check, (measured, bound) in verdicts(case, planted_faults.sound(case)).items():
        assert measured.shape == bound.shape
        assert (measured <= bound).all(), check


def test_shapes_are_by_line_and_by_split() -> None:
    case = PLAN["random"]
    found = verdicts(case, planted_faults.sound(case))
    assert found["precast"][0].shape == found["final"][0].shape == (3, 3)
    assert found["partial"][0].shape == found["lse"][0].shape == (len(splits.splits(400)), 3, 3)


# The bounds that catch a fault over the whole plan; single cases may hide one (exchanged heads at q = 0).
CAUGHT = {
    "zeros": {"precast", "final"},
    "token lost": {"precast", "partial", "lse", "final"},
    "token replaced": {"precast", "partial", "final"},
    "mask of the last row": {"precast", "partial", "lse", "final"},
    "rows exchanged": {"precast", "partial", "lse", "final"},
    "heads shifted": {"precast", "partial", "lse", "final"},
    "split counted twice": {"precast", "partial", "lse", "final"},
    "lse in base 2": {"lse"},
    "subnormal codes flushed": {"precast", "partial", "lse", "final"},
    "scale off by 0.1%": {"precast", "partial", "lse", "final"},
    "k_scale dropped": {"precast", "partial", "lse", "final"},
    "v_scale twice": {"precast", "partial", "final"},
    "residual missing": {"precast", "partial", "final"},
    "P in bf16": {"precast", "partial", "final"},
    "f16 accumulator": {"precast", "partial", "final"},
    "compensation removed": set(),
    "one term in exp": set(),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_caught_by_exactly_these_bounds(fault: str) -> None:
    found = set[str]()
    for case in PLAN.values():
        found |= caught_by(case, FAULTS[fault](case))
    assert found == CAUGHT[fault]


def test_a_lost_token_and_a_missing_residual_are_caught_in_single_cases() -> None:
    for name, case in PLAN.items():
        assert {"precast", "partial"} <= caught_by(case, FAULTS["token lost"](case)), name
    for name in ("random", "peaked", "biased"):
        assert {"precast", "partial"} <= caught_by(PLAN[name], FAULTS["residual missing"](PLAN[name])), name


@pytest.mark.parametrize("fault", ["compensation removed", "one term in exp"])
def test_what_no_bound_catches_the_bytes_do(fault: str) -> None:
    case = PLAN["random"]
    assert FAULTS[fault](case).partial.tobytes() != planted_faults.sound(case).partial.tobytes()


# --- NaN and numbers where nothing is seen fail -----------------------------------------------------------------------


def test_nan_is_within_no_bound() -> None:
    case = PLAN["random"]
    good = planted_faults.sound(case)
    for field in ("partial", "lse", "precast", "out"):
        array = getattr(good, field).copy()
        array[(1,) * array.ndim] = np.nan
        damaged = Result(**{**vars(good), field: array})
        assert caught_by(case, damaged), field
    assert caught_by(
        SOUND["zero V"], Result(**{**vars(planted_faults.sound(SOUND["zero V"])), "out": np.full((2, 3, 64), np.nan)})
    )


def test_numbers_where_nothing_is_seen_fail() -> None:
    case = SOUND["some rows empty"]
    good = planted_faults.sound(case)
    tiny = np.float32(1e-45)
    partial, lse = good.partial.copy(), good.lse.copy()
    partial[0, 2, 1, 5] = tiny
    assert caught_by(case, Result(partial, lse, good.precast, good.out)) == {"partial"}
    for state in ((-1e30, 1e-45), (-1e29, 0), (0, 0), (np.nan, 0), (-1e30, np.nan)):
        lse = good.lse.copy()
        lse[0, 2, 1] = state
        assert caught_by(case, Result(good.partial, lse, good.precast, good.out)) == {"lse"}, state
    out = good.out.copy()
    out[2, 0, 0] = np.float16(6e-8)
    assert caught_by(case, Result(good.partial, good.lse, good.precast, out)) == {"final"}


def test_a_sum_off_by_1e_5_is_seen_by_the_lse_bound() -> None:
    for name, case in PLAN.items():
        good = planted_faults.sound(case)
        lse = good.lse.copy()
        lse[2, 1, 0, 1] *= np.float32(1 + 1e-5)
        measured, bound = bounds.lse_error(lse, reference(case), len(splits.splits(400)))
        assert np.argwhere(~(measured <= bound)).tolist() == [[2, 1, 0]], name


def test_a_sum_of_0_where_something_is_seen_fails() -> None:
    case = PLAN["random"]
    good = planted_faults.sound(case)
    lse = good.lse.copy()
    lse[0, 0, 0, 1] = 0
    assert caught_by(case, Result(good.partial, lse, good.precast, good.out)) == {"partial", "lse"}


def test_where_fp64_is_0_the_bound_is_absolute() -> None:
    case = SOUND["alternating"]
    exact = reference(case)
    assert not exact.out[1].any()
    assert exact.mass[1].min() > 1
    out = planted_faults.sound(case).out.copy()
    measured, bound = bounds.final_error(out, exact)
    assert 0 < bound[1, 0] < 1e-4
    out[1, 0, 0] = 1e-3
    measured, bound = bounds.final_error(out, exact)
    assert measured[1, 0] == pytest.approx(1e-3, rel=1e-3)
    assert not measured[1, 0] <= bound[1, 0]
    assert measured[1, 1] <= bound[1, 1]


def test_one_element_can_fail_its_line_alone() -> None:
    case = PLAN["biased"]
    good = planted_faults.sound(case)
    precast = good.precast.copy()
    precast[2, 1, 40] *= np.float32(1 + 2e-5)
    measured, bound = bounds.precast_error(precast, reference(case))
    assert np.argwhere(~(measured <= bound)).tolist() == [[2, 1]]
