"""The scalar contract reference against its slow twin, number by number, and on what it must not touch."""

from fractions import Fraction

import numpy as np
import pytest

from . import slow_contract, slow_scalar
from .paged_case import PagedCase, paged_case
from .project_references import paging, scalar_contract, splits

Array = np.ndarray
DIMS = (0, 17, 31)


def scalar_case(total: int, **options: object) -> PagedCase:
    return paged_case(total, rows=1, **{"heads": 2, "page": 848, **options})


def scalar(case: PagedCase, **options: object) -> scalar_contract.ScalarContract:
    return scalar_contract.scalar_contract(*case.arrays, **case.scales, **options)


def rationals(x: Array) -> list[Fraction]:
    return [Fraction(float(value)) for value in np.ravel(x)]


def assert_is_twin(case: PagedCase, head: int) -> None:
    """maximum, sums, and partial, precast and out at DIMS, of one head."""
    got = scalar(case)
    score_scale = slow_contract.f32(Fraction(float(case.scale)) * Fraction(float(case.k_scale)))
    q = rationals(case.q[0, head])
    parts = []
    for i, tokens in enumerate(splits.partitions(splits.total_of(case.lengths))):
        keys, values = (
            paging.gather_tokens(side, case.table, tokens.stop, start=tokens.start) for side in (case.k, case.v)
        )
        scores = [slow_scalar.score(q, rationals(key), score_scale) for key in keys]
        columns = [rationals(values[:, d]) for d in DIMS]
        part = slow_scalar.partition(scores, columns, Fraction(float(case.v_scale)))
        assert Fraction(float(got.maximum[0, head, i])) == part[0], i
        assert Fraction(float(got.sums[0, head, i])) == part[1], i
        assert rationals(got.partial[0, head, i, list(DIMS)]) == part[2], i
        parts.append(part)
    merged = slow_scalar.reduce(parts)
    assert rationals(got.precast[0, head, list(DIMS)]) == merged
    assert rationals(got.out[0, head, list(DIMS)]) == [slow_contract.f16(x) for x in merged]


@pytest.mark.parametrize(
    ("case", "head"),
    [
        (scalar_case(1), 0),
        (scalar_case(300, query_size=20), 1),
        (scalar_case(1100, query_size=3, dims=32), 0),
        (scalar_case(257, query_size=300), 1),  # most weights at the floor
        (scalar_case(40, dims=128, heads=1), 0),
    ],
    ids=["1", "300", "1100", "257", "dims 128"],
)
def test_every_number_is_the_twins(case: PagedCase, head: int) -> None:
    assert_is_twin(case, head)


def test_an_overflowing_v_scale_gives_infinity_and_no_warning() -> None:
    case = scalar_case(40, values=np.full((40, 64), 300.0)).changed(v_scale=np.float32(3e38))
    assert np.isposinf(scalar(case).partial[:, :, 0]).all()


def test_what_is_written_and_what_is_not() -> None:
    got = scalar(scalar_case(1030))
    assert np.flatnonzero(got.written).tolist() == [0, 1]
    for buffer in (got.maximum, got.sums, got.partial):
        assert np.isfinite(buffer[:, :, :2]).all()
        assert np.isnan(buffer[:, :, 2:]).all()


@pytest.mark.parametrize("length", [0, -3])
def test_length_0_writes_only_the_output(length: int) -> None:
    case = scalar_case(40, lengths=[length])
    got = scalar(case.changed(q=np.full_like(case.q, np.nan)))
    assert not got.written.any()
    assert np.isnan(got.partial).all()
    assert got.out.tobytes() == bytes(got.out.nbytes)
    assert got.precast.tobytes() == bytes(got.precast.nbytes)


def test_dead_storage_reaches_nothing() -> None:
    case = scalar_case(70, page=16)
    k, v = case.k.copy(), case.v.copy()
    dead = np.ones(k.shape[:2], bool)
    for token in range(70):
        dead[case.address(token)] = False
    k[dead], v[dead] = 0x7E, 0xFE
    want, got = scalar(case), scalar(case.changed(k=k, v=v))
    for field in vars(want):
        assert getattr(want, field).tobytes() == getattr(got, field).tobytes()


def test_chosen_partitions_are_those_of_the_whole() -> None:
    case = scalar_case(3000)
    whole, some = scalar(case), scalar(case, chosen={0, 2})
    assert np.flatnonzero(some.written).tolist() == [0, 2]
    for name in ("partial", "maximum", "sums"):
        assert getattr(some, name)[:, :, [0, 2]].tobytes() == getattr(whole, name)[:, :, [0, 2]].tobytes()
    assert np.isnan(some.out).all()
    assert scalar(case, chosen=range(256)).out.tobytes() == whole.out.tobytes()


# --- reducer ---------------------------------------------------------------------------------------------


def test_reducer_of_the_workspace_is_the_output() -> None:
    got = scalar(scalar_case(2500))
    precast = scalar_contract.scalar_merge(got.partial, got.maximum, got.sums, 2500)
    assert precast.dtype == np.float32
    assert precast.tobytes() == got.precast.tobytes()
    assert precast.astype(np.float16).tobytes() == got.out.tobytes()


def test_reducer_order_matters_and_is_ascending() -> None:
    rng = np.random.default_rng(0)
    partial = rng.normal(size=(1, 6, 256, 2)).astype(np.float32)
    maximum = rng.normal(size=(1, 6, 256)).astype(np.float32)
    sums = 1 + rng.random((1, 6, 256)).astype(np.float32)
    for active in (9, 256):
        got = scalar_contract.scalar_merge(partial, maximum, sums, 1024 * active)
        for head in range(6):
            parts = [
                (
                    Fraction(float(maximum[0, head, i])),
                    Fraction(float(sums[0, head, i])),
                    rationals(partial[0, head, i]),
                )
                for i in range(active)
            ]
            assert rationals(got[0, head]) == slow_scalar.reduce(parts)
            assert rationals(got[0, head]) != slow_scalar.reduce(parts[::-1])


def test_a_block_adds_within_its_warps_first() -> None:
    x = np.exp(-10 * np.random.default_rng(1).random((40, 256))).astype(np.float32)
    got = scalar_contract._trees(np.add, x)
    want = [float(slow_scalar.block_tree(slow_scalar.add, rationals(row))) for row in x]
    assert got.tolist() == want
    whole = x
    while whole.shape[1] > 1:
        whole = whole[:, : whole.shape[1] // 2] + whole[:, whole.shape[1] // 2 :]
    assert (got != whole[:, 0]).any()


def test_reducer_of_a_ruined_workspace_gives_no_warning() -> None:
    got = scalar(scalar_case(1500))
    for word in (0x7FFFFFFF, 0xFFFFFFFF, 0x7F800000, 0xCDCDCDCD, 0):
        ruined = [np.full(x.shape, word, np.uint32).view(np.float32) for x in (got.partial, got.maximum, got.sums)]
        assert scalar_contract.scalar_merge(*ruined, 1500).shape == got.precast.shape
        assert not scalar_contract.scalar_merge(*ruined, 0).any()  # the workspace is not read
