"""The contract reference against its slow twin, number by number, and against what it must not touch."""

from fractions import Fraction

import numpy as np
import pytest

from . import slow_contract
from .paged_case import PagedCase, paged_case
from .project_references import binary32, contract, merge, paging, splits, tensor_core

Array = np.ndarray


def grouped(case: PagedCase, **options: object) -> contract.GroupedContract:
    return contract.grouped_contract(*case.arrays, **case.scales, **options)


def rationals(x: Array) -> list[Fraction]:
    return [Fraction(float(value)) for value in x]


def assert_is_twin(case: PagedCase, row: int, head: int) -> None:
    """Every number of partial, lse and precast of one row and head."""
    got = grouped(case)
    score_scale = slow_contract.f32(Fraction(float(case.scale)) * Fraction(float(case.k_scale)))
    parts = []
    for s, tokens in enumerate(splits.splits(splits.total_of(case.lengths))):
        keys, values = (
            [rationals(x) for x in paging.gather_tokens(side, case.table, tokens.stop, start=tokens.start)]
            for side in (case.k, case.v)
        )
        padding = [[slow_contract.ZERO] * case.q.shape[2]] * (-len(tokens) % 32)
        part = slow_contract.split_state(
            rationals(case.q[row, head]),
            keys + padding,
            values + padding,
            visible=int(case.lengths[row]) - tokens.start,
            score_scale=score_scale,
            v_scale=Fraction(float(case.v_scale)),
        )
        assert rationals(got.partial[s, row, head]) == part[0], s
        assert rationals(got.lse[s, row, head]) == list(part[1:]), s
        parts.append(part)
    merged = slow_contract.merge(parts)
    assert rationals(got.precast[row, head]) == merged
    assert rationals(got.out[row, head]) == [slow_contract.f16(x) for x in merged]


@pytest.mark.parametrize(
    ("case", "row", "head"),
    [
        (paged_case(1, rows=2), 1, 0),
        (paged_case(1, rows=2), 0, 2),  # sees nothing
        (paged_case(33, query_size=20), 1, 1),
        (paged_case(32, query_size=3), 0, 1),
        (paged_case(130, rows=3, query_size=8), 0, 2),  # splits of 2, 2 and 1 tiles, the last one not seen
        (paged_case(100, rows=3, lengths=[64, 100, 33], query_size=300), 0, 0),
        (paged_case(64, values=np.eye(64), query_size=15), 1, 0),  # p below f16's normal numbers, alone in a sum
    ],
)
def test_every_number_is_the_twins(case: PagedCase, row: int, head: int) -> None:
    assert_is_twin(case, row, head)


def test_descending_scores_rescale_nothing_and_ascending_ones_do() -> None:
    """Scores far apart between tiles: the floor of exp at -80 and both directions of the running maximum."""
    total = 96
    for direction in (1, -1):
        slope = np.linspace(0, 400, total, dtype=np.float32)[::direction, None]
        keys = np.tile(slope, (1, 64)) / 448 * 400
        case = paged_case(total, rows=2, heads=1, keys=keys)
        assert_is_twin(case.changed(q=np.full_like(case.q, 1.0)), 1, 0)


def test_what_is_written_and_what_is_not() -> None:
    got = grouped(paged_case(257, rows=3))
    active = len(splits.splits(257))
    assert got.written.sum() == active * 3
    assert got.written[:active, :3].all()
    expected = np.broadcast_to(got.written[:, :, None, None], got.partial.shape)
    assert np.array_equal(np.isfinite(got.partial), expected)
    assert np.array_equal(np.isfinite(got.lse), expected[..., :2])
    assert np.isfinite(got.out).all()


def test_total_0_writes_only_the_output() -> None:
    got = grouped(paged_case(0, lengths=[0, -4]))
    assert not got.written.any()
    assert np.isnan(got.partial).all()
    assert got.out.tobytes() == bytes(got.out.nbytes)


def test_a_row_that_sees_nothing_writes_the_empty_state() -> None:
    case = paged_case(100, rows=3, lengths=[0, 100, -5])
    q = case.q.copy()
    q[[0, 2]] = np.nan
    got = grouped(case.changed(q=q))
    empty = np.array([-1e30, 0], np.float32)
    for row in (0, 2):
        assert got.partial[0, row].tobytes() == bytes(got.partial[0, row].nbytes)
        assert all(state.tobytes() == empty.tobytes() for state in got.lse[0, row])
        assert got.out[row].tobytes() == bytes(got.out[row].nbytes)
    assert got.out[1].tobytes() == grouped(case).out[1].tobytes()


def test_no_negative_zero_is_stored() -> None:
    case = paged_case(40, values=np.full((40, 64), -0.0, np.float32))
    tiny = paged_case(40, values=np.full((40, 64), -1.0)).changed(v_scale=np.float32(1e-45))
    small = tiny.changed(v=np.where(tiny.v == 0xB8, np.uint8(0x81), tiny.v))
    assert np.signbit(grouped(tiny).partial[0, 1]).all()
    for got in (grouped(case), grouped(small)):
        assert not got.partial[got.written].any()
        assert not np.signbit(got.partial[got.written]).any()


def test_dead_storage_reaches_nothing() -> None:
    case = paged_case(70, rows=3, lengths=[0, 70, 35])
    k, v = case.k.copy(), case.v.copy()
    dead = np.ones(k.shape[:2], bool)
    for token in range(70):
        dead[case.address(token)] = False
    k[dead], v[dead] = 0x7E, 0xFE
    want, got = grouped(case), grouped(case.changed(k=k, v=v))
    for field in vars(want):
        assert getattr(want, field).tobytes() == getattr(got, field).tobytes()


def test_rows_do_not_depend_on_each_other() -> None:
    case = paged_case(70, rows=4, lengths=[70, 69, 68, 67])
    whole = grouped(case)
    last = grouped(case.changed(q=case.q[[0, 2]], lengths=case.lengths[[0, 2]]))
    assert whole.out[[0, 2]].tobytes() == last.out.tobytes()
    assert whole.partial[:, [0, 2]].tobytes() == last.partial[:, :2].tobytes()


def test_chosen_splits_are_those_of_the_whole() -> None:
    case = paged_case(400)
    whole, some = grouped(case), grouped(case, chosen={0, 5})
    assert np.flatnonzero(some.written[:, 0]).tolist() == [0, 5]
    assert some.partial[[0, 5]].tobytes() == whole.partial[[0, 5]].tobytes()
    assert some.lse[[0, 5]].tobytes() == whole.lse[[0, 5]].tobytes()
    assert np.isnan(some.out).all()
    assert grouped(case, chosen=range(80)).out.tobytes() == whole.out.tobytes()


def test_the_architecture_decides_the_bytes() -> None:
    case = paged_case(130)
    sm_90, sm_80 = grouped(case), grouped(case, model=tensor_core.MODELS["sm_80"])
    assert sm_90.partial.tobytes() != sm_80.partial.tobytes()
    assert np.abs(sm_90.precast - sm_80.precast).max() < 1e-5


# --- merge -----------------------------------------------------------------------------------------------


def test_merge_of_the_workspace_is_the_output() -> None:
    case = paged_case(300, rows=3, lengths=[300, -1, 70])
    got = grouped(case)
    precast = merge.merge(got.partial, got.lse, case.lengths, 300)
    assert precast.dtype == np.float32
    assert precast.tobytes() == got.precast.tobytes()
    assert precast.astype(np.float16).tobytes() == got.out.tobytes()


def test_merge_skips_splits_that_hold_nothing_whatever_their_partial() -> None:
    case = paged_case(300, rows=2, lengths=[70, 300])
    got = grouped(case)
    partial = got.partial.copy()
    partial[2:, 0] = 3e38  # row 0 sees the first two splits only
    assert merge.merge(partial, got.lse, case.lengths, 300).tobytes() == got.precast.tobytes()
    partial[1, 0] += 1
    assert merge.merge(partial, got.lse, case.lengths, 300).tobytes() != got.precast.tobytes()


def test_merge_of_a_ruined_workspace_gives_no_warning() -> None:
    case = paged_case(300, rows=2, lengths=[300, 0])
    got = grouped(case)
    for word in (0x7FFFFFFF, 0xFFFFFFFF, 0x7F800000, 0xCDCDCDCD, 0):
        ruin = np.full(got.partial.shape, word, np.uint32).view(np.float32)
        state = np.full(got.lse.shape, word, np.uint32).view(np.float32)
        merged = merge.merge(ruin, state, case.lengths, 300)
        assert merged.shape == case.q.shape
        assert not merged[1].any()  # a row of length 0 does not read the workspace


def test_merge_order_matters_and_is_ascending() -> None:
    rng = np.random.default_rng(0)
    partial = rng.normal(size=(80, 8, 1, 8)).astype(np.float32)
    lse = np.stack([rng.normal(size=(80, 8, 1)), 1 + rng.random((80, 8, 1))], axis=-1).astype(np.float32)
    got = merge.merge(partial, lse, np.full(8, 5000, np.int32), 5000)
    active = len(splits.splits(5000))
    assert active == 79
    for row in range(8):
        parts = [(rationals(partial[s, row, 0]), *rationals(lse[s, row, 0])) for s in range(active)]
        assert rationals(got[row, 0]) == slow_contract.merge(parts)
        assert rationals(got[row, 0]) != slow_contract.merge(parts[::-1])


def test_exp32_of_the_twin_agrees() -> None:
    x = np.concatenate([-np.geomspace(1e-6, 80, 200), [0]]).astype(np.float32)
    assert rationals(binary32.exp32(x)) == [slow_contract.exp(value) for value in rationals(x)]
