"""Inputs of a paged operator: generated or captured tokens, laid into permuted pages of an exact-size table."""

from collections.abc import Mapping

import numpy as np

from audit import formats
from audit.spec import Array, AxisValue, CapturedInputs, Case, Inputs

from .axes import CANARY, physical_pages, table_entries

E4M3_NAN = 0x7F
# Test values of the contract and values that are no powers of two; all three differ in every case.
_SCALES = (0.0625, 0.5, 1.25, 0.0773, 0.291, 0.8125)


def generated(case: Case, rng: np.random.Generator) -> Inputs:
    """Normal q, K and V; scores of standard deviation 3 or so, V with a mean, so that a dropped token shows."""
    k_scale, v_scale = (np.float32(value) for value in rng.permutation(_SCALES)[:2])
    q = rng.normal(0, 1, (case.rows, case.heads, case.dim)).astype(np.float16)
    k = formats.encode_e4m3(rng.normal(0, 1, (case.context, case.dim)).astype(np.float32))
    v = formats.encode_e4m3(rng.normal(0.25, 1, (case.context, case.dim)).astype(np.float32))
    scale = np.float32(3 / (np.sqrt(case.dim) * k_scale))
    return {
        **paged(case, k, v, rng),
        **_rows(q, live_lengths(case)),
        "scale": scale,
        "k_scale": k_scale,
        "v_scale": v_scale,
    }


def captured(case: Case, capture: CapturedInputs) -> Inputs:
    """A capture's tokens in pages of the case's size; of its query rows the last `rows`."""
    k, v = (_tokens(capture.arrays[name], case.context) for name in ("k", "v"))
    q = np.ascontiguousarray(capture.arrays["q"][-case.rows :])
    scales = {name: np.float32(capture.scales[name]) for name in ("scale", "k_scale", "v_scale")}
    return {**paged(case, k, v, case.rng()), **_rows(q, live_lengths(case)), **scales}


def capture_axes(capture: CapturedInputs) -> Mapping[str, AxisValue]:
    """The axis values that a capture fixes."""
    _, heads, dim = capture.arrays["q"].shape
    pages, page, _, _ = capture.arrays["k"].shape
    return {"heads": heads, "dim": dim, "context": pages * page, "page": page}


def paged(case: Case, k: Array, v: Array, rng: np.random.Generator) -> Inputs:
    """k, v e4m3 [context, dim] in physical pages [pages, page, 1, dim] that the table i32 [1, entries] permutes.

    Storage that no token of the context fills is NaN: the rest of the last page, the canary, a stranger.
    """
    pages = np.array([page for page in range(physical_pages(case)) if page != CANARY], np.int32)
    table = rng.permutation(pages)[: table_entries(case)]
    storage = []
    for tokens in (k, v):
        logical = np.full((table.size * case.page, case.dim), E4M3_NAN, np.uint8)
        logical[: case.context] = tokens
        physical = np.full((physical_pages(case), case.page, 1, case.dim), E4M3_NAN, np.uint8)
        physical[table] = logical.reshape(table.size, case.page, 1, case.dim)
        storage.append(physical)
    return {"k": storage[0], "v": storage[1], "table": table[None]}


def live_lengths(case: Case) -> Array:
    """Visible tokens of each row in a live round: context-rows+1 .. context, negative where it is short."""
    return np.arange(case.context - case.rows + 1, case.context + 1, dtype=np.int32)


def steps(case: Case, inputs: Inputs) -> Mapping[str, Inputs]:
    """live, all_zero, tail_zero, first_zero, restore; rows of length 0 hold NaN in q, which must reach nothing."""
    live = live_lengths(case)
    all_zero, tail_zero, first_zero = np.zeros_like(live), live.copy(), live.copy()
    tail_zero[-1] = 0
    first_zero[0] = 0
    q = np.asarray(inputs["q"])
    return {
        "live": {},
        "all_zero": _rows(q, all_zero),
        "tail_zero": _rows(q, tail_zero),
        "first_zero": _rows(q, first_zero),
        "restore": {},
    }


def _rows(q: Array, lengths: Array) -> dict[str, Array]:
    return {"q": np.where(lengths[:, None, None] > 0, q, np.float16(np.nan)), "lengths": lengths}


def _tokens(pages: Array, context: int) -> Array:
    return pages.reshape(-1, pages.shape[-1])[:context]
