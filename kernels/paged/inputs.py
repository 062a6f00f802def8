"""Inputs of a paged operator: generated or captured tokens, laid into permuted pages of an exact-size table."""

from collections.abc import Mapping
from functools import cache
from statistics import NormalDist

import numpy as np

from audit import Array, AxisValue, CapturedInputs, Case, Inputs, PlanError, formats

from .storage import draw_table, empty_storages, views

# Test values of the contract and values that are not powers of two. The three scales of a case all differ.
_SCALES = (0.0625, 0.5, 1.25, 0.0773, 0.291, 0.8125)
_BLOCK = 4096  # tokens drawn at a time
_FIRST_TOTAL, _LATER_TOTALS = 128, (127, 129, 4096)  # of replayed lengths; the grouped operator splits from 129 on


def generated(case: Case, rng: np.random.Generator) -> Inputs:
    """Normal q, K and V. Scores have a standard deviation of about 3 and V a mean, so that a dropped token shows."""
    k_scale, v_scale = (np.float32(value) for value in rng.permutation(_SCALES)[:2])
    q = rng.normal(0, 1, (case.rows, case.heads, case.dim)).astype(np.float16)
    k, v = (normal_codes(case, mean, rng) for mean in (0, 0.25))
    scale = np.float32(3 / (np.sqrt(case.dim) * k_scale))
    return {
        **paged(case, k, v, rng),
        **_rows(q, live_lengths(case)),
        "scale": scale,
        "k_scale": k_scale,
        "v_scale": v_scale,
    }


def normal_codes(case: Case, mean: float, rng: np.random.Generator) -> Array:
    """e4m3 [context, dim], normal with standard deviation 1: 16 random bits choose one of 65,536 quantiles."""
    codes = np.empty((case.context, case.dim), np.uint8)
    for start in range(0, case.context, _BLOCK):
        block = codes[start : start + _BLOCK]
        block[:] = _quantiles(mean)[rng.integers(0, 1 << 16, block.shape, np.uint16)]
    return codes


def captured(case: Case, capture: CapturedInputs) -> Inputs:
    """The tokens of a capture in pages of the case's size, with its last `rows` query rows."""
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
    """The storages and the table of tokens k, v e4m3 [context, dim], with the layout and placement of the case.

    Storage without a token of the context is NaN or, where it is far, a hole.
    """
    table = draw_table(case, rng)
    storages = empty_storages(case)
    token = np.arange(case.context)
    page, slot = table[0, token // case.page], token % case.page
    for view, codes in zip(views(case, storages), (k, v), strict=True):
        view[page, slot, 0] = codes
    return {**storages, "table": table}


def live_lengths(case: Case) -> Array:
    """Visible tokens of each row in the first step: total-rows+1 .. total, which is negative for a small total.

    The total is the context, or 128 where lengths are replayed. Raises PlanError for replayed lengths in a context
    other than 4,096.
    """
    return _of_total(case, _FIRST_TOTAL if _replayed(case) else case.context)


def steps(case: Case, inputs: Inputs) -> Mapping[str, Inputs]:
    """live, all_zero, tail_zero, first_zero, restore. Rows of length 0 hold NaN in q, which must reach no result.

    Where lengths are replayed: live, at_127, at_129, at_4096, restore. All have storage and table of 4,096 tokens, and
    live has lengths of 128: on a GPU, one graph captured at 128 tokens serves all steps.
    """
    q = np.asarray(inputs["q"])
    if _replayed(case):
        later = {f"at_{total}": _rows(q, _of_total(case, total)) for total in _LATER_TOTALS}
        return {"live": {}, **later, "restore": {}}
    live = live_lengths(case)
    all_zero, tail_zero, first_zero = np.zeros_like(live), live.copy(), live.copy()
    tail_zero[-1] = 0
    first_zero[0] = 0
    return {
        "live": {},
        "all_zero": _rows(q, all_zero),
        "tail_zero": _rows(q, tail_zero),
        "first_zero": _rows(q, first_zero),
        "restore": {},
    }


def _replayed(case: Case) -> bool:
    longest = max(_LATER_TOTALS)
    if case.lengths == "replayed" and case.context != longest:
        raise PlanError(
            f"case {case.id}: replayed lengths reach {longest} tokens: expected context={longest}, but got "
            f"context={case.context}; add --axis context={longest}"
        )
    return bool(case.lengths == "replayed")


def _of_total(case: Case, total: int) -> Array:
    return np.arange(total - case.rows + 1, total + 1, dtype=np.int32)


def _rows(q: Array, lengths: Array) -> dict[str, Array]:
    return {"q": np.where(lengths[:, None, None] > 0, q, np.float16(np.nan)), "lengths": lengths}


@cache
def _quantiles(mean: float) -> Array:
    deviates = [NormalDist().inv_cdf((i + 0.5) / (1 << 16)) for i in range(1 << 16)]
    return formats.encode_e4m3(mean + np.array(deviates))


def _tokens(pages: Array, context: int) -> Array:
    return pages.reshape(-1, pages.shape[-1])[:context]


def describe(case: Case) -> str:
    """The row lengths of a case, in words for the reader of a plan. Raises PlanError as `live_lengths` does."""
    live = live_lengths(case)
    seen = f"{live[0]}..{live[-1]}" if len(live) > 1 else f"{live[0]}"
    if _replayed(case):
        later = ", ".join(map(str, _LATER_TOTALS))
        seen += f", then those of {later} and {_FIRST_TOTAL} tokens, in the same storage and launches"
    return f"live row lengths {seen}; pages of {case.page} tokens"
