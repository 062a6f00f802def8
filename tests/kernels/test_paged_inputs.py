"""Tokens in pages: reading through table and strides returns the tokens, and all other storage is NaN."""

from __future__ import annotations

import importlib
import itertools
from pathlib import Path

import numpy as np
import pytest

from audit import formats, sparse
from audit.errors import PlanError
from audit.project import find_project
from audit.spec import Array, Case, Inputs, Shape

OPERATOR = find_project(Path(__file__).resolve().parents[2]).operators["grouped"]
inputs = importlib.import_module(OPERATOR.inputs.__module__)
storage = importlib.import_module(f"{inputs.__package__}.storage")

LAYOUTS, PLACEMENTS = storage.LAYOUTS, storage.PLACEMENTS
ALL = list(itertools.product(LAYOUTS, PLACEMENTS))


def case_of(**axes: int | str) -> Case:
    return OPERATOR.case(Shape("q6", {"rows": 6}), {"heads": 3, "dim": 64, **axes}, seed=1)


def laid(case: Case) -> tuple[Array, Array, Inputs]:
    """Random codes without NaN, and the storages that hold them."""
    k, v = np.random.default_rng(7).integers(0, 0x7F, (2, case.context, case.dim), np.uint8)
    return k, v, inputs.paged(case, k, v, np.random.default_rng(8))


def read_back(case: Case, given: Inputs, view: Array) -> Array:
    """Token by token, by the text of the contract."""
    return np.array([view[given["table"][0, i // case.page], i % case.page, 0] for i in range(case.context)])


@pytest.mark.parametrize(("layout", "placement"), ALL)
@pytest.mark.parametrize(("context", "page"), [(1, 16), (16, 16), (129, 16), (50, 48), (1649, 1648)])
def test_tokens_are_where_the_contract_looks(layout: str, placement: str, context: int, page: int) -> None:
    case = case_of(layout=layout, placement=placement, context=context, page=page)
    k, v, given = laid(case)
    views = storage.views(case, given)
    for codes, view in zip((k, v), views, strict=True):
        assert view.shape == (storage.physical_pages(case), page, 1, 64)
        np.testing.assert_array_equal(read_back(case, given, view), codes)
        assert view.strides[3] == 1
        assert all(stride % 8 == 0 for stride in view.strides[:3])


@pytest.mark.parametrize(("layout", "placement"), ALL)
def test_storage_without_a_token_is_nan_or_a_hole(layout: str, placement: str) -> None:
    case = case_of(layout=layout, placement=placement, context=129)
    k, v, given = laid(case)
    held, nan = 0, 0
    for buffer in storage.storage_buffers(case):
        for _, block in sparse.blocks(given[buffer.name]):
            nan += int(np.count_nonzero(block == storage.E4M3_NAN))
            held += int(np.count_nonzero((block != storage.E4M3_NAN) & (block != 0)))
    assert held == np.count_nonzero(k) + np.count_nonzero(v)
    pages, entries = storage.physical_pages(case), storage.table_entries(case)
    if placement == "far":  # those of the context, the canary, a neighbour of each region, those where offsets wrap
        pages = entries + 1 + 2 + (-(-entries // 2) + 1)
    per_page = sum(storage.page_stride(case, part) for part in ("k" if layout == "interleaved" else "kv"))
    assert nan == pages * per_page - k.size - v.size


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("context", [1, 17, 129, 3000])
def test_a_table_is_of_exact_size_permuted_and_without_the_canary(placement: str, context: int) -> None:
    case = case_of(context=context, placement=placement)
    tables = [storage.draw_table(case, np.random.default_rng(seed)) for seed in (1, 2)]
    for table in tables:
        assert table.shape == (1, -(-context // 16))
        assert table.dtype == np.int32
        assert len(set(table[0].tolist())) == table.size
        assert storage.CANARY not in table
        assert table.min() > 0
        assert table.max() < storage.physical_pages(case)
    assert context < 129 or (tables[0] != tables[1]).any()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("context", "page", "dim"), [(129, 16, 64), (5000, 48, 64), (3297, 3296, 256), (1, 16, 256)])
def test_far_pages_lie_beyond_32_bits(layout: str, context: int, page: int, dim: int) -> None:
    case = case_of(layout=layout, placement="far", context=context, page=page, dim=dim)
    table = storage.draw_table(case, case.rng())[0].astype(np.int64)
    for part, view in zip("kv", storage.views(case, storage.empty_storages(case)), strict=True):
        stride = storage.page_stride(case, part)
        offsets = table * stride
        assert offsets.min() >= 2**31
        assert offsets.max() >= 2**32
        assert (np.abs(np.diff(offsets)) > 2**31).all()
        # every second one, from the first on, is beyond 2^32 and falls, modulo that, into pages that are NaN
        for wrapped in (offsets[::2] % 2**32).tolist():
            page_there = wrapped // stride
            assert (view[page_there : page_there + 2] == storage.E4M3_NAN).all()


def test_layouts_hold_the_same_tokens() -> None:
    """A layout changes only where the tokens of one generator lie."""
    found = []
    for layout in LAYOUTS:
        case = case_of(layout=layout)
        given = inputs.generated(case, np.random.default_rng(3))
        tokens = [read_back(case, given, view) for view in storage.views(case, given)]
        found.append([given["q"], given["table"], *tokens])
    for other in found[1:]:
        for mine, theirs in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_interleaved_strides_of_the_real_cache() -> None:
    case = case_of(layout="interleaved", page=3296, dim=256, context=3297)
    _, _, given = laid(case)
    k, v = storage.views(case, given)
    assert k.strides == v.strides == (1_687_552, 256, 256, 1)
    assert storage.strides(case) == (1_687_552, 256, 1_687_552, 256)
    assert v.ctypes.data - k.ctypes.data == 3296 * 256
    at_k, at_v = storage.addresses(case)
    assert (at_k.buffer, at_k.elements, at_v.buffer, at_v.elements) == ("kv", 0, "kv", 3296 * 256)


def test_padded_strides_allow_no_16_byte_loads() -> None:
    case = case_of(layout="padded", page=48, dim=256)
    assert storage.strides(case) == (48 * 264 + 8, 264, 48 * 280 + 24, 280)
    assert [stride % 16 for stride in storage.strides(case)] == [8, 8, 8, 8]


def test_offsets_move_q_and_the_storages() -> None:
    buffers = {buffer.name: buffer for buffer in OPERATOR.buffers(case_of(q_offset=7, base=8))}
    assert {name: buffer.offset for name, buffer in buffers.items() if buffer.offset} == {"q": 14, "k": 8, "v": 8}


@pytest.mark.parametrize("page", [16, 848, 48, 3456, 266_240])
def test_any_multiple_of_16_is_a_page(page: int) -> None:
    assert case_of(page=page).page == page


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ({"page": 24}, "axis page: expected a multiple of 16, but got 24"),
        ({"page": 0}, "axis page: expected an integer of at least 16"),
        ({"page": 266_256}, "at most 266,240"),
        ({"page": "16"}, "axis page: expected an integer"),
        ({"q_offset": 2}, "axis q_offset"),
        ({"base": 4}, "axis base"),
        ({"layout": "planar"}, "axis layout"),
    ],
)
def test_axis_values_outside_the_contract(axes: dict[str, int | str], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        case_of(**axes)


def test_generated_codes_are_normal() -> None:
    case = case_of(context=4000)
    for mean in (0, 0.25):
        values = formats.decode_e4m3(inputs.normal_codes(case, mean, np.random.default_rng(5))).astype(np.float64)
        assert np.isfinite(values).all()
        assert abs(values.mean() - mean) < 0.01  # 256,000 draws: five standard errors
        assert abs(values.std() - 1) < 0.01
        assert abs(((values - mean) ** 4).mean() - 3) < 0.1
        assert 3.75 <= np.abs(values).max() <= 5
        assert abs(np.corrcoef(values[:-1].ravel(), values[1:].ravel())[0, 1]) < 0.01


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_a_long_context_needs_no_more_than_tokens_and_storage(placement: str) -> None:
    """Beside the tokens and the storage, 16 MiB each of K and V, little memory: no wide copy of either."""
    case = case_of(context=262_152, layout="interleaved", placement=placement)
    before = _status("VmRSS", forget=True)
    given = inputs.generated(case, case.rng())
    assert _status("VmHWM") - before < (64 + 24 + (40 if placement == "far" else 0)) << 20
    OPERATOR.admit_inputs(case, given)


def _status(field: str, forget: bool = False) -> int:
    """Bytes, as the operating system counts them; `forget` resets the peak."""
    if forget:
        Path("/proc/self/clear_refs").write_text("5")
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(field))
