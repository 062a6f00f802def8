"""The share of detectable omissions, against every omission carried out one by one."""

import numpy as np
import pytest

from .paged_case import PagedCase, paged_case
from .project_references import bounds, fp64, omissions, paging, scalar_fp64


def share(case: PagedCase) -> float:
    reference = fp64.grouped_fp64(*case.arrays, **case.scales)
    return omissions.omission_share(*case.arrays, **case.scales, fp64=reference)


def one_by_one(case: PagedCase) -> float:
    reference = fp64.grouped_fp64(*case.arrays, **case.scales)
    limit = 2 * bounds.precast_bound(reference)
    total = int(case.lengths.max())
    k = paging.gather_tokens(case.k, case.table, total)
    v = paging.gather_tokens(case.v, case.table, total) * float(case.v_scale)
    detectable, visible = 0, 0
    for row, head in np.ndindex(case.q.shape[:2]):
        score = float(case.scale) * float(case.k_scale) * (k @ case.q[row, head].astype(np.float64))
        length = max(0, int(case.lengths[row]))
        for lost in range(length):
            kept = np.delete(np.arange(length), lost)
            weights = np.exp(score[kept] - score[kept].max(initial=-np.inf)) if kept.size else np.zeros(0)
            out = weights @ v[kept] / weights.sum() if kept.size else np.zeros(v.shape[1])
            visible += 1
            detectable += bool(np.linalg.norm(out - reference.out[row, head]) > limit[row, head])
    return detectable / visible


PEAKED = paged_case(300, rows=2, query_size=12)
EQUAL_V = paged_case(60, values=np.full((60, 64), 1.125))


@pytest.mark.parametrize(
    ("case", "low", "high"),
    [
        (paged_case(300, rows=2), 1, 1),
        (PEAKED, 0.1, 0.5),
        (paged_case(200, rows=2, query_size=60), 0.005, 0.1),
        (paged_case(40, rows=4, lengths=[0, 1, -3, 40], query_size=30), 0.01, 0.9),
        (paged_case(1), 1, 1),
        (EQUAL_V, 0, 0),
    ],
)
def test_the_share_is_that_of_the_omissions_carried_out(case: PagedCase, low: float, high: float) -> None:
    found = share(case)
    assert found == pytest.approx(one_by_one(case), abs=1e-12)
    assert low <= found <= high


def test_the_rest_counts_where_one_token_is_nearly_all() -> None:
    """pi of 1 - 1e-20: 1 - pi is 0 in f64, and yet the omission of that token has the largest effect."""
    keys = np.zeros((30, 64), np.float32)
    keys[7] = 1
    case = paged_case(30, rows=1, heads=1, keys=keys).changed(scale=np.float32(46 / 64 / 0.7))
    case = case.changed(q=np.ones_like(case.q))
    assert share(case) == one_by_one(case) == pytest.approx(1 / 30)


def test_nothing_seen_is_a_share_of_0() -> None:
    assert share(paged_case(0, lengths=[0, 0])) == 0
    assert share(paged_case(20, lengths=[0, -1])) == 0


def test_the_scalar_operator_takes_its_own_bound() -> None:
    case = paged_case(900, rows=1, query_size=4)
    reference = scalar_fp64.scalar_fp64(*case.arrays, **case.scales)
    assert omissions.omission_share(*case.arrays, **case.scales, fp64=reference) < share(case)


def test_what_is_left_is_normalised_again() -> None:
    """Equal weights of 1/3: token 2 moves the last dimension by (15 - 5)/2 steps of 2^-9; the limit is 3.5 or so."""
    values = np.full((3, 64), 448.0)
    values[:, 63] = np.array([0, 0, 15]) * 2.0**-9
    case = paged_case(3, rows=1, heads=1, query_size=0, values=values).changed(v_scale=np.float32(1))
    limit = 2 * bounds.precast_bound(fp64.grouped_fp64(*case.arrays, **case.scales))[0, 0] / 2.0**-9
    assert 10 / 3 < limit < 5
    assert share(case) == one_by_one(case) == pytest.approx(1 / 3)
