"""FP64 against exact arithmetic, against a direct formula, and on what it must not touch."""

import tracemalloc

import numpy as np
import pytest

from . import exact
from .paged_case import PagedCase, paged_case
from .project_references import attention, fp64, paging, splits


def grouped(case: PagedCase) -> object:
    return fp64.grouped_fp64(*case.arrays, **case.scales)


def direct(case: PagedCase, row: int, head: int, start: int, stop: int) -> dict[str, np.ndarray]:
    """The definitions, one after another, for one row and head over the visible part of start..stop."""
    stop = min(stop, int(case.lengths[row]))
    addresses = [case.address(t) for t in range(start, stop)]
    k = np.array([paging.formats.E4M3_F32[case.k[p, i, 0]] for p, i in addresses], np.float64)
    v = np.array([paging.formats.E4M3_F32[case.v[p, i, 0]] for p, i in addresses], np.float64) * float(case.v_scale)
    q = case.q[row, head].astype(np.float64)
    factor = float(case.scale) * float(case.k_scale)
    score = factor * (k @ q)
    weight = np.exp(score - score.max())
    pi = weight / weight.sum()
    chunks = (k * q).reshape(len(k), -1, 16).sum(axis=2)
    o = pi @ v
    return {
        "out": o,
        "lse": score.max() + np.log(weight.sum()),
        "mass": pi @ np.abs(v),
        "spread": pi @ np.abs(v - o),
        "reach": factor * np.abs(chunks).sum(axis=1).max(),
    }


CASES = [
    paged_case(1),
    paged_case(33, query_size=5),
    paged_case(257, dims=128, rows=3),
    paged_case(1100, query_size=3, page=848),
    paged_case(200, rows=4, lengths=[0, 37, 200, -3]),
    paged_case(150, query_size=200, heads=2),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.lengths))
def test_every_field_is_its_definition(case: PagedCase) -> None:
    got = grouped(case)
    parts = splits.splits(splits.total_of(case.lengths))
    for row, head in np.ndindex(case.q.shape[:2]):
        seen = int(case.lengths[row])
        ranges = [("", (), 0, seen)] + [("partial_", (s,), p.start, p.stop) for s, p in enumerate(parts)]
        for prefix, index, start, stop in ranges:
            for field in ("out", "lse", "mass", "spread", "reach"):
                name = "partial" if prefix and field == "out" else prefix + field
                value = getattr(got, name)[(*index, row, head)]
                if start >= seen:
                    assert np.all(value == (-np.inf if field == "lse" else 0))
                else:
                    np.testing.assert_allclose(value, direct(case, row, head, start, stop)[field], 1e-11, 1e-12)


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.lengths))
def test_fp64_is_within_1e_13_of_exact(case: PagedCase) -> None:
    got = grouped(case)
    dims = range(0, case.q.shape[2], 5)
    parts = splits.splits(splits.total_of(case.lengths))
    for row in {0, len(case.lengths) - 1, int(np.argmax(case.lengths))}:
        head, length = row % case.q.shape[1], int(case.lengths[row])
        arguments = (case.q[row, head], case.k, case.v, case.table, length)
        whole = exact.exact_head(*arguments, **case.scales, dims=dims)
        split = exact.exact_head(*arguments, **case.scales, dims=dims, tokens=parts[-1])
        for want, out, lse in (
            (whole, got.out[row, head], got.lse[row, head]),
            (split, got.partial[len(parts) - 1, row, head], got.partial_lse[len(parts) - 1, row, head]),
        ):
            reference = np.array([float(x) for x in want.out])
            error = np.linalg.norm(out[dims.start :: dims.step] - reference)
            assert error <= attention.FP64_ERROR * np.linalg.norm(reference)
            assert lse == float(want.lse) or abs(lse - float(want.lse)) <= 1e-14 * max(1, abs(float(want.lse)))


def test_fp64_is_within_1e_13_of_exact_at_8197_tokens() -> None:
    """Rows, heads and dimensions at the ends of their ranges; 3e-16 was measured."""
    case = paged_case(8197, rows=3, heads=2, page=848, query_size=3)
    got, parts, dims = grouped(case), splits.splits(8197), range(0, 64, 63)
    for row, head in ((0, 1), (2, 0)):
        arguments = (case.q[row, head], case.k, case.v, case.table, int(case.lengths[row]))
        for tokens, out, lse in (
            (None, got.out[row, head], got.lse[row, head]),
            (parts[-1], got.partial[len(parts) - 1, row, head], got.partial_lse[len(parts) - 1, row, head]),
        ):
            want = exact.exact_head(*arguments, **case.scales, dims=dims, tokens=tokens)
            reference = np.array([float(x) for x in want.out])
            error = np.linalg.norm(out[dims.start :: dims.step] - reference)
            assert error <= attention.FP64_ERROR * np.linalg.norm(reference)
            assert abs(lse - float(want.lse)) <= 1e-14 * abs(float(want.lse))


def test_exact_sees_a_wrong_scale_and_a_lost_token() -> None:
    case = paged_case(33)
    got = grouped(case)
    reference = exact.exact_head(
        case.q[1, 0],
        case.k,
        case.v,
        case.table,
        33,
        **case.changed(scale=np.float32(0.062500007)).scales,
        dims=range(64),
    )
    error = np.linalg.norm(got.out[1, 0] - [float(x) for x in reference.out])
    assert error > attention.FP64_ERROR * np.linalg.norm(got.out[1, 0])
    assert np.linalg.norm(got.out[1, 0] - got.out[0, 0]) > 1e-3  # row 0 sees one token fewer


def test_dead_storage_and_rows_of_length_0_reach_nothing() -> None:
    case = paged_case(70, rows=3, lengths=[0, 70, 35])
    q = case.q.copy()
    q[0] = np.nan
    want, got = grouped(case), grouped(case.changed(q=q))
    k, v = case.k.copy(), case.v.copy()
    dead = np.ones(k.shape[:2], bool)
    for token in range(70):
        dead[case.address(token)] = False
    k[dead], v[dead] = 0x7E, 0xFE
    other = grouped(case.changed(k=k, v=v, table=np.append(case.table, [[10**6]], axis=1).astype(np.int32)))
    for field in vars(want):
        assert getattr(want, field).tobytes() == getattr(got, field).tobytes() == getattr(other, field).tobytes()
    assert np.isfinite(want.out).all()


def test_total_0_is_all_zeros() -> None:
    got = grouped(paged_case(0, lengths=[0, -7]))
    assert not got.out.any()
    assert not got.partial.any()
    assert np.isneginf(got.lse).all()
    assert np.isneginf(got.partial_lse).all()


def test_spread_of_equal_values_is_zero() -> None:
    got = grouped(paged_case(300, values=np.full((300, 64), 1.125, np.float32)))
    assert got.spread.max() <= 1e-14


def test_memory_is_that_of_the_scores() -> None:
    case = paged_case(40_000, rows=2, heads=2, page=800)
    tracemalloc.start()
    grouped(case)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 8 * 4 * 40_000 + 60 * 2**20


# --- paging and splits -----------------------------------------------------------------------------------


def test_gather_reads_the_token_range_in_any_dtype() -> None:
    case = paged_case(50)
    codes = paging.gather_codes(case.k, case.table, 50, start=20)
    assert codes.tolist() == [case.k[(*case.address(t), 0)].tolist() for t in range(20, 50)]
    for dtype in (np.float16, np.float64):
        tokens = paging.gather_tokens(case.k, case.table, 50, start=20, dtype=dtype)
        assert tokens.dtype == dtype
        assert np.array_equal(tokens, paging.formats.decode_e4m3(codes))
    assert paging.gather_codes(case.k, case.table, 0).shape == (0, 64)


def test_gather_names_the_entry_that_is_no_page() -> None:
    case = paged_case(50)
    for entry in (-1, len(case.k)):
        table = case.table.copy()
        table[0, 2] = entry
        paging.gather_codes(case.k, table, 32)  # the entry is not needed yet
        with pytest.raises(paging.InputError, match=rf"table\[0, 2\].*got {entry} \(token 32\)"):
            paging.gather_codes(case.k, table, 33)


def test_splits_are_those_of_the_contract() -> None:
    def by_tile(total: int) -> list[list[int]]:
        """The contract's words, token by token."""
        active = 1 if total <= 128 else min(80, (total + 63) // 64)
        base, extra = divmod((total + 31) // 32, active)
        found = []
        for s in range(active):
            first = s * base + min(s, extra)
            tiles = range(first, first + base + (1 if s < extra else 0))
            found.append([t for tile in tiles for t in range(32 * tile, 32 * tile + 32) if t < total])
        return found

    for total in (1, 31, 32, 33, 127, 128, 129, 191, 192, 193, 257, 4096, 5120, 5121, 5153, 10_000):
        got = splits.splits(total)
        assert [list(tokens) for tokens in got] == by_tile(total)
        assert [t for tokens in got for t in tokens] == list(range(total))
    assert splits.splits(0) == splits.splits(-5) == []
    assert len(splits.splits(128)) == 1
    assert len(splits.splits(129)) == 3
    assert len(splits.splits(262_152)) == 80
    assert max(len(tokens) for tokens in splits.splits(266_240)) == 3328
