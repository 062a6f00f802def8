"""Inputs outside the contract's domain are refused by name; data that no row sees is not read."""

import numpy as np
import pytest

from audit.errors import InputError

from .paged_case import NAN_CODE, PagedCase, paged_case
from .project_references import domain

CASE = paged_case(70, rows=3, lengths=[0, 70, 35])


def check(case: PagedCase, **options: int) -> None:
    domain.check_domain(*case.arrays, **case.scales, **options)


def with_code(side: str, token: int, dim: int, code: int) -> PagedCase:
    storage = getattr(CASE, side).copy()
    storage[(*CASE.address(token), 0, dim)] = code
    return CASE.changed(**{side: storage})


def with_query(row: int, value: float) -> PagedCase:
    q = CASE.q.copy()
    q[row, 2, 63] = value
    return CASE.changed(q=q)


def test_the_domain_admits_what_the_contract_does() -> None:
    check(CASE)
    check(with_query(0, np.nan))  # a row of length 0
    check(CASE.changed(table=np.append(CASE.table, [[-1]], axis=1).astype(np.int32)))  # an entry no token needs
    check(CASE.changed(lengths=np.array([-5, 70, 0], np.int32)))
    check(CASE.changed(scale=np.float32(2**-30), k_scale=np.float32(2**-30)))
    check(paged_case(0, lengths=[0, 0]))


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (with_code("k", 69, 3, NAN_CODE), r"k, token 69, dim 3: .*0x7F"),
        (with_code("v", 40, 63, 0xFF), r"v, token 40, dim 63: .*0xFF"),
        (with_query(2, np.nan), r"q\[2, 2, 63\]: .*got nan"),
        (with_query(1, -np.inf), r"q\[1, 2, 63\]: .*got -inf"),
        (CASE.changed(scale=np.float32(0)), r"scale: expected a finite number above 0, got 0.0"),
        (CASE.changed(k_scale=np.float32(-1)), r"k_scale: .*got -1.0"),
        (CASE.changed(v_scale=np.float32(np.nan)), r"v_scale: .*got nan"),
        (CASE.changed(v_scale=np.float32(np.inf)), r"v_scale: .*got inf"),
        (CASE.changed(scale=np.float32(2**-30), k_scale=np.float32(2**-31)), r"scale\*k_scale: .*2\^-60"),
        (CASE.changed(scale=np.float32(1e30), k_scale=np.float32(1e30)), r"scale\*k_scale: .*finite"),
        (CASE.changed(lengths=np.array([0, 70, 81], np.int32)), r"lengths\[2\]: expected at most 80 .*got 81"),
        (CASE.changed(lengths=np.array([0, 70], np.int32)), r"expected q \[rows, G, D\]"),
        (CASE.changed(lengths=np.array([0, 70, 35])), r"lengths: expected int32 .*got int64"),
        (CASE.changed(table=np.full((1, 20_000), 1, np.int32)), r"table: expected n\*page <= 266240, got 320000"),
        (CASE.changed(table=np.array([[0, 1, 2, 3, 99]], np.int32)), r"table\[0, 4\]: .*got 99 \(token 64\)"),
        (CASE.changed(table=np.array([[0, -1, 2, 3, 4]], np.int32)), r"table\[0, 1\]: .*got -1 \(token 16\)"),
    ],
)
def test_refused_and_named(case: PagedCase, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check(case)


def test_the_first_offender_is_named() -> None:
    long = paged_case(5000, page=848)
    long.v[(*long.address(4990), 0, 9)] = NAN_CODE
    with pytest.raises(InputError, match="v, token 4990, dim 9"):
        check(long)
    case = with_code("k", 69, 3, NAN_CODE)
    case.k[(*case.address(20), 0, 9)] = 0xFF
    with pytest.raises(InputError, match="k, token 20, dim 9"):
        check(case)


def test_scores_must_stay_below_1e20() -> None:
    q = CASE.q.copy()
    q[0] = 65504  # a row of length 0 has no score
    q[2, 1] = np.sign(np.where(q[2, 1] == 0, 1, q[2, 1]))
    score_of_one = float(np.float32(1e19)) * float(np.float32(0.9))
    case = CASE.changed(q=q, scale=np.float32(1e19), k_scale=np.float32(0.9))
    with pytest.raises(InputError, match=r"score of row 1, head 0, token \d+: expected a magnitude below 1e20"):
        check(case)
    small = CASE.changed(q=(q * 0).astype(np.float16), scale=case.scale, k_scale=case.k_scale)
    check(small)
    one = np.zeros_like(q)
    one[1, 1, 0] = 11
    keys = np.zeros((70, 64), np.float32)
    keys[33, 0] = 1
    sharp = paged_case(70, rows=3, keys=keys, lengths=[0, 70, 35]).changed(scale=case.scale, k_scale=case.k_scale)
    assert 10 * score_of_one < 1e20 < 12 * score_of_one
    check(sharp.changed(q=one))
    with pytest.raises(InputError, match=r"score of row 1, head 1, token 33: .*got 1.08e\+20"):
        check(sharp.changed(q=one + one * np.float16(1 / 11)))
    hidden = one.copy()
    hidden[2, 1, 0], hidden[1] = 12, 0
    check(sharp.changed(q=hidden, lengths=np.array([0, 70, 33], np.int32)))  # row 2 does not see token 33


def test_capacity_is_that_of_the_operator() -> None:
    case = paged_case(70)
    check(case, capacity=70)
    with pytest.raises(
        InputError, match=r"lengths\[1\]: expected at most 69 \(n\*page is 80, the capacity 69\), got 70"
    ):
        check(case, capacity=69)
