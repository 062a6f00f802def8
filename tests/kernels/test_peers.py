"""The peers of a bench get the inputs of the operator, and on a CPU the SDPA peer computes the same result.

FlashInfer's pages are read back here by the rules of its page table; where a GPU and FlashInfer are, it runs as well.
"""

from __future__ import annotations

import importlib
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audit import formats
from audit.errors import InputError, PlanError, ToolMissing
from audit.project import find_project
from audit.spec import Array, Case, Inputs, Shape

torch = pytest.importorskip("torch")

PROJECT = find_project(Path(__file__).resolve().parents[2])
inputs = importlib.import_module(PROJECT.operators["grouped"].inputs.__module__)
peers = importlib.import_module(f"{inputs.__package__}.peers")
peer_run = importlib.import_module(f"{inputs.__package__}.peer_run")
storage = importlib.import_module(f"{inputs.__package__}.storage")

LAYOUTS = list(itertools.product(storage.LAYOUTS, storage.PLACEMENTS))
LIMIT = 1e-3  # relative L2: an f16 V and an f16 output; correct runs read 2e-4 to 6e-4


def case_of(rows: int = 6, seed: int = 1, **axes: int | str) -> Case:
    operator = PROJECT.operators["scalar" if rows == 1 else "grouped"]
    return operator.case(Shape(f"q{rows}", {"rows": rows}), {"heads": 3, "dim": 64, **axes}, seed=seed)


def layer(case: Case) -> Inputs:
    return inputs.generated(case, case.rng())


def tokens(case: Case, given: Inputs, view: Array, total: int) -> Array:
    """u8 [total, D], token by token, by the text of the contract."""
    return np.array([view[given["table"][0, i // case.page], i % case.page, 0] for i in range(total)])


def error(case: Case, given: Inputs, got: Array) -> float:
    """Relative L2 against FP64."""
    expected = PROJECT.operators[case.operator].references[0].compute(case, given)["out"]
    return float(np.linalg.norm(got - expected) / np.linalg.norm(expected))


@pytest.mark.parametrize("rows", [1, 6])
@pytest.mark.parametrize("dim", [64, 256])
def test_sdpa_computes_what_the_operator_promises(rows: int, dim: int) -> None:
    cases = [case_of(rows, seed, dim=dim) for seed in (1, 2)]
    layers = [layer(case) for case in cases]
    run = peers.sdpa(cases[0], layers, device="cpu")
    run.replay()
    for index, (case, given) in enumerate(zip(cases, layers, strict=True)):
        got = run.out(index)
        assert (got.dtype, got.shape) == (np.float16, (rows, 3, dim))
        assert error(case, given, got) <= LIMIT
    assert error(cases[0], layers[0], run.out(1)) > LIMIT


@pytest.mark.parametrize(("layout", "placement"), LAYOUTS)
def test_sdpa_finds_its_tokens_in_every_layout(layout: str, placement: str) -> None:
    case = case_of(layout=layout, placement=placement, page=48)
    given = layer(case)
    assert error(case, given, peers.sdpa(case, [given], device="cpu").out(0)) <= LIMIT


def test_fewer_tokens_may_be_visible_than_the_table_holds() -> None:
    case, short = case_of(page=48), case_of(page=48, context=70)
    given = {**layer(case), "lengths": inputs.live_lengths(short)}
    for seen in (case, short):  # the case of the working set or of the context; storage and table hold the rest
        got = peers.sdpa(seen, [given], device="cpu").out(0)
        assert error(case, given, got) <= LIMIT


@pytest.mark.parametrize("fault", ["upper left", "no k_scale", "no v_scale", "wrong page"])
def test_a_fault_in_what_a_peer_is_given_shows(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of()
    given = layer(case)
    wrong = dict(given)
    if fault == "upper left":
        tail = torch.full((1, 1, 6, 129), -torch.inf, dtype=torch.float16).triu(1)
        monkeypatch.setattr(peers, "_tail_bias", lambda *_: tail)
    elif fault == "wrong page":
        wrong["table"] = given["table"].copy()
        wrong["table"][0, 0] = wrong["table"][0, 1]  # an order alone would not show: softmax has none
    else:
        wrong[fault[3:]] = np.float32(1)
    assert error(case, given, peers.sdpa(case, [wrong], device="cpu").out(0)) > 10 * LIMIT


def test_the_tail_is_that_of_lower_right_causal_attention() -> None:
    from torch.nn.attention.bias import causal_lower_right

    bias = peers._tail_bias(torch, 6, 50, "cpu")
    assert torch.equal(bias[0, 0] == 0, causal_lower_right(6, 50)._materialize())
    assert all(stride % 16 == 0 for stride in bias.stride()[:-1])


@pytest.mark.parametrize("layout", storage.LAYOUTS)
@pytest.mark.parametrize(("page", "size"), [(16, 16), (48, 48), (48, 16)])
@pytest.mark.parametrize("total", [129, 96, 50, 6])
def test_flashinfer_finds_every_visible_token(layout: str, page: int, size: int, total: int) -> None:
    cases = [case_of(seed=seed, layout=layout, page=page) for seed in (1, 2)]
    layers = [{**layer(case), "lengths": np.arange(total - 5, total + 1, dtype=np.int32)} for case in cases]
    order, table = peers.placement(layers[0], page)
    arrays = peers.plan_arrays(6, table, page, size, total)
    assert all(array.dtype == np.int32 for array in arrays)
    qo_indptr, kv_indptr, indices, last = arrays
    assert qo_indptr.tolist() == [0, 6]
    assert kv_indptr.tolist() == [0, indices.size]
    assert 1 <= last[0] <= size
    assert (indices.size - 1) * size + last[0] == total
    for case, given in zip(cases, layers, strict=True):
        cache = peers._upload(torch, case, given, given["table"].reshape(-1), total, "cpu", order)
        for part, view in zip(cache, storage.views(case, given), strict=True):
            pages = part.view(-1, size, 1, 64).numpy()
            np.testing.assert_array_equal(pages[indices].reshape(-1, 64)[:total], tokens(case, given, view, total))
            assert not pages[indices].reshape(-1, 64)[total:].any()


def test_pages_stay_as_shuffled_as_they_were() -> None:
    given = layer(case_of())
    order, table = peers.placement(given, 16)
    np.testing.assert_array_equal(np.argsort(given["table"][0]), order)
    np.testing.assert_array_equal(table[order], np.arange(9))
    assert table.tolist() != list(range(9))


def test_a_page_size_with_a_remainder_is_refused() -> None:
    with pytest.raises(PlanError, match="divides the case's 48 tokens, but got 32"):
        peers.plan_arrays(6, np.arange(2), 48, 32, 90)


def test_codes_decode_exactly() -> None:
    codes = np.setdiff1d(np.arange(256, dtype=np.uint8), [0x7F, 0xFF])
    tensor = torch.from_numpy(codes)
    np.testing.assert_array_equal(peers.decoded(torch, tensor, 1.0).numpy(), formats.decode_e4m3_f16(codes))
    scaled = (formats.decode_e4m3(codes) * np.float32(0.291)).astype(np.float16)
    np.testing.assert_array_equal(peers.decoded(torch, tensor, float(np.float32(0.291))).numpy(), scaled)


def test_a_visible_nan_is_refused_and_a_hidden_one_is_not() -> None:
    case = case_of()
    given = layer(case)
    page, slot = given["table"][0, 8], 128 % 16
    given["v"][page, slot, 0, 5] = 0xFF
    with pytest.raises(InputError, match="129 visible tokens of V"):
        peers.sdpa(case, [given], device="cpu")
    peers.sdpa(case, [{**given, "lengths": given["lengths"] - 1}], device="cpu")


@pytest.mark.parametrize("lengths", [[0, 1, 2, 3, 4, 5], [60, 61, 62, 63, 64, 66], [64] * 6])
def test_other_than_live_lengths_are_refused(lengths: list[int]) -> None:
    given = layer(case_of())
    with pytest.raises(PlanError, match="lengths of a live round"):
        peers.live_total([given, {**given, "lengths": np.array(lengths, np.int32)}])
    with pytest.raises(PlanError, match="lengths of a live round"):
        peers.live_total([{**given, "lengths": np.array(lengths, np.int32)}])


def test_bytes_moved() -> None:
    case = case_of(heads=6, dim=256, context=4096, page=1648)
    moved = {peer.name: peer.moves(case) for peer in peers.PEERS}
    kv, q_and_out = 2 * 4096 * 256, 2 * 6 * 6 * 256 * 2
    assert moved == {
        "sdpa-f16": 2 * kv + q_and_out,
        "flashinfer-f16": 2 * kv + q_and_out + 3 * 4,
        "flashinfer-f16-page16": 2 * kv + q_and_out + 256 * 4,
        "flashinfer-e4m3": kv + q_and_out + 3 * 4,
        "flashinfer-e4m3-page16": kv + q_and_out + 256 * 4,
    }


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
@pytest.mark.parametrize("peer", peers.PEERS, ids=lambda peer: peer.name)
@pytest.mark.parametrize("rows", [1, 6])
def test_on_a_gpu_every_peer_computes_what_the_operator_promises(peer: Any, rows: int) -> None:
    cases = [case_of(rows, seed, heads=6, dim=256, context=1649, page=48) for seed in (1, 2)]
    layers = [layer(case) for case in cases]
    try:
        run = peer.prepare(cases[0], layers)
    except ToolMissing as missing:
        pytest.skip(str(missing))
    run.replay()
    for index, (case, given) in enumerate(zip(cases, layers, strict=True)):
        assert error(case, given, run.out(index)) <= LIMIT


@pytest.mark.parametrize("peer", peers.PEERS, ids=lambda peer: peer.name)
def test_without_a_gpu_every_peer_is_missing(peer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ToolMissing, match="torch sees none"):
        peer.prepare(case_of(), [layer(case_of())])


def test_a_library_that_is_absent_or_broken_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setitem(sys.modules, "flashinfer", None)
    with pytest.raises(ToolMissing, match="flashinfer"):
        peers.flashinfer(case_of(), [layer(case_of())])
    (tmp_path / "broken_peer.py").write_text("import what_it_needs")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ToolMissing, match=r"broken_peer could not be imported.*what_it_needs"):
        peers._library("broken_peer")
    with pytest.raises(ToolMissing, match="nothing_of_this_name is not installed"):
        peers._library("nothing_of_this_name")


def refusing() -> Any:
    raise RuntimeError("No available kernel.\nMore about it")


def giving(value: float) -> Callable[[], Any]:
    return lambda: torch.full((1, 1, 2), value, dtype=torch.float16)


def test_the_fastest_backend_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_run.LayersRun, "milliseconds", lambda run: float(run.out(0)[0, 0, 0]))
    ways = {"slow": [giving(3)], "absent": [refusing], "fast": [giving(1)], "middle": [giving(2)]}
    assert peers._fastest(torch, "cpu", ways).note == "fast"
    with pytest.raises(ToolMissing, match=r"a: No available kernel\.; b: No available kernel\."):
        peers._fastest(torch, "cpu", {"a": [refusing], "b": [refusing]})


def test_a_replay_computes_again() -> None:
    q = torch.zeros((1, 1, 2), dtype=torch.float16)
    run = peer_run.LayersRun(torch, "cpu", [lambda: q + 1])
    q += 1
    assert run.out(0).tolist() == [[[1, 1]]]
    run.replay()
    assert run.out(0).tolist() == [[[2, 2]]]
