"""The scalar operator in FP64 against the direct formula and exact arithmetic, and its bounds."""

import tracemalloc
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from . import exact
from .paged_case import PagedCase, paged_case
from .project_references import (
    attention,
    bounds,
    scalar_bounds,
    scalar_contract,
    scalar_fp64,
    splits,
    wrong_steps,
)
from .test_grouped_fp64 import direct

Array = np.ndarray
Result = scalar_contract.ScalarContract


def scalar_case(total: int, **options: object) -> PagedCase:
    return paged_case(total, rows=1, **{"heads": 2, "page": 848, **options})


def fp64_of(case: PagedCase) -> scalar_fp64.ScalarFP64:
    return scalar_fp64.scalar_fp64(*case.arrays, **case.scales)


def sound(case: PagedCase, **steps: Callable[..., Array]) -> Result:
    return scalar_contract.scalar_contract(*case.arrays, **case.scales, steps=scalar_contract.ScalarSteps(**steps))


def test_every_field_is_its_definition() -> None:
    case = scalar_case(2100, query_size=3)
    got = fp64_of(case)
    ranges = [("", (), 0, 2100)] + [("partial_", (i,), p.start, p.stop) for i, p in enumerate(splits.partitions(2100))]
    for head in range(2):
        for prefix, index, start, stop in ranges:
            want = direct(case, 0, head, start, stop)
            for field in ("out", "lse", "mass", "spread", "reach"):
                name = "partial" if prefix and field == "out" else prefix + field
                np.testing.assert_allclose(getattr(got, name)[(*index, 0, head)], want[field], 1e-11, 1e-12)
            assert getattr(got, prefix + "seen")[(*index, 0, head)] == stop - start
    assert got.partial.shape == (256, 1, 2, 64)
    assert np.isneginf(got.partial_lse[3:]).all()
    assert got.accumulation(np.array([1.0, 100, 1024, 2100])).tolist() == [5, 14, 36, 36]


def test_fp64_is_within_1e_13_of_exact() -> None:
    case = scalar_case(1500, query_size=6)
    got = fp64_of(case)
    want = exact.exact_head(case.q[0, 1], case.k, case.v, case.table, 1500, **case.scales, dims=range(0, 64, 9))
    reference = np.array([float(x) for x in want.out])
    assert np.linalg.norm(got.out[0, 1, ::9] - reference) <= attention.FP64_ERROR * np.linalg.norm(reference)
    assert got.lse[0, 1] == pytest.approx(float(want.lse), rel=1e-14)


def test_memory_is_that_of_the_scores() -> None:
    case = scalar_case(40_000, page=800)
    tracemalloc.start()
    fp64_of(case)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 8 * 2 * 40_000 + 30 * 2**20


# --- bounds ----------------------------------------------------------------------------------------------

BIASED = np.linspace(-4, 4, 64) + 0.3 * np.random.default_rng(9).normal(size=(2100, 64))
ALTERNATING = np.where(np.arange(2100)[:, None] % 2, 1, -1) * np.ones(64)
PLAN = {
    "random": scalar_case(2100, seed=1),
    "peaked": scalar_case(1500, seed=2, query_size=12),
    "biased": scalar_case(2100, seed=4, values=BIASED),
}
SOUND = {
    **PLAN,
    "uniform": scalar_case(2100, seed=3, query_size=0),
    "alternating": scalar_case(2100, values=ALTERNATING, query_size=0),
    "sharp": scalar_case(1100, query_size=400),
    "zero V": scalar_case(100, values=np.zeros((100, 64))),
    "wide": scalar_case(1025, heads=6, dims=256),
    "one token": scalar_case(1),
    "no token": scalar_case(8, lengths=[0]),
}


def verdicts(case: PagedCase, result: Result) -> dict[str, tuple[Array, Array]]:
    reference, active = fp64_of(case), len(splits.partitions(splits.total_of(case.lengths)))
    return {
        "precast": bounds.precast_error(result.precast, reference),
        "partial": scalar_bounds.partial_error(result.partial, reference, active),
        "lse": scalar_bounds.lse_error(result.maximum, result.sums, reference, active),
        "final": bounds.final_error(result.out, reference),
    }


def caught_by(case: PagedCase, result: Result) -> set[str]:
    return {name for name, (measured, bound) in verdicts(case, result).items() if not (measured <= bound).all()}


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_result_is_within_every_bound(name: str) -> None:
    case = SOUND[name]
    for check, (measured, bound) in verdicts(case, sound(case)).items():
        assert measured.shape == bound.shape
        assert (measured <= bound).all(), check


@pytest.mark.parametrize("name", PLAN)
def test_rounded_weights_are_caught(name: str) -> None:
    case = PLAN[name]
    caught = caught_by(case, sound(case, weigh=wrong_steps.bf16_weights))
    assert {"precast", "partial"} <= caught <= {"precast", "partial", "final"}


def test_a_wrong_workspace_is_caught_where_it_is_wrong() -> None:
    case = PLAN["random"]
    good = sound(case)
    assert not caught_by(case, good)
    for field, factor, names in (
        ("partial", 1 + 1e-3, {"partial"}),
        ("maximum", 1 + 1e-5, {"lse"}),
        ("sums", 1 + 1e-5, {"lse"}),
        ("sums", 0, {"lse"}),
        ("partial", np.nan, {"partial"}),
        ("maximum", np.nan, {"lse"}),
        ("sums", np.nan, {"lse"}),
    ):
        changed = getattr(good, field).copy()
        changed[0, 1, 2] *= np.float32(factor)
        result = replace(good, **{field: changed})
        assert caught_by(case, result) == names, (field, factor)
        for name in names:
            measured, bound = verdicts(case, result)[name]
            assert np.argwhere(~(measured <= bound)).tolist() == [[2, 0, 1]]
