"""Grouped results with one fault planted: the contract reference, wrong in one named way."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .paged_case import NAN_CODE, PagedCase
from .project_references import contract, merge, splits, wrong_steps

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Result:
    partial: Array
    lse: Array
    precast: Array
    out: Array


def _result(case: PagedCase, partial: Array, lse: Array) -> Result:
    precast = merge.merge(partial, lse, case.lengths, splits.total_of(case.lengths))
    return Result(partial, lse, precast, precast.astype(np.float16))


def sound(case: PagedCase, steps: contract.GroupedSteps = contract.CONTRACT) -> Result:
    got = contract.grouped_contract(*case.arrays, **case.scales, steps=steps)
    return _result(case, got.partial, got.lse)


def _with(**steps: Callable[..., Array]) -> Callable[[PagedCase], Result]:
    return lambda case: sound(case, contract.GroupedSteps(**steps))


def _with_f16_accumulator(p: Array, values: Array, model: object) -> Array:
    return contract.weighted_values(p, values, model).astype(np.float16).astype(np.float32)


def _token_lost(case: PagedCase) -> Result:
    """No row sees its last token; the lengths given to the bounds stay."""
    return sound(case.changed(lengths=case.lengths - 1))


def _token_replaced(case: PagedCase) -> Result:
    """Token 0's V is read where token 1's should be."""
    v = case.v.copy()
    v[case.address(1)] = case.v[case.address(0)]
    return sound(case.changed(v=v))


def _mask_of_the_last_row(case: PagedCase) -> Result:
    return sound(case.changed(lengths=np.full_like(case.lengths, case.lengths.max())))


def _rows_exchanged(case: PagedCase) -> Result:
    good = sound(case)
    partial, lse = good.partial.copy(), good.lse.copy()
    partial[:, :2], lse[:, :2] = good.partial[:, 1::-1], good.lse[:, 1::-1]
    return _result(case, partial, lse)


def _heads_shifted(case: PagedCase) -> Result:
    good = sound(case)
    return _result(case, np.roll(good.partial, 1, axis=2), np.roll(good.lse, 1, axis=2))


def _split_counted_twice(case: PagedCase) -> Result:
    good = sound(case)
    partial, lse = good.partial.copy(), good.lse.copy()
    partial[1], lse[1] = partial[0], lse[0]
    return _result(case, partial, lse)


def _lse_in_base_2(case: PagedCase) -> Result:
    good = sound(case)
    lse = good.lse.copy()
    lse[..., 0] *= np.float32(1.4426950408889634)
    return Result(good.partial, lse, good.precast, good.out)


def _subnormal_codes_flushed(case: PagedCase) -> Result:
    def flush(codes: Array) -> Array:
        return np.where((codes & 0x7F < 8) & (codes & 0x7F != NAN_CODE), codes & 0x80, codes).astype(np.uint8)

    return sound(case.changed(k=flush(case.k), v=flush(case.v)))


def _scaled(field: str, factor: float) -> Callable[[PagedCase], Result]:
    return lambda case: sound(case.changed(**{field: np.float32(getattr(case, field) * factor)}))


def _out(replacement: Callable[[Array], Array]) -> Callable[[PagedCase], Result]:
    def run(case: PagedCase) -> Result:
        good = sound(case)
        return Result(good.partial, good.lse, replacement(good.precast), replacement(good.precast).astype(np.float16))

    return run


FAULTS: dict[str, Callable[[PagedCase], Result]] = {
    "zeros": _out(np.zeros_like),
    "token lost": _token_lost,
    "token replaced": _token_replaced,
    "mask of the last row": _mask_of_the_last_row,
    "rows exchanged": _rows_exchanged,
    "heads shifted": _heads_shifted,
    "split counted twice": _split_counted_twice,
    "lse in base 2": _lse_in_base_2,
    "subnormal codes flushed": _subnormal_codes_flushed,
    "scale off by 0.1%": _scaled("scale", 1.001),
    "k_scale dropped": _scaled("k_scale", 1 / 0.7),
    "v_scale twice": _scaled("v_scale", 1.25),
    "residual missing": _with(weigh=wrong_steps.f16_weighted_values),
    "P in bf16": _with(weigh=wrong_steps.bf16_weighted_values),
    "f16 accumulator": _with(weigh=_with_f16_accumulator),
    "compensation removed": _with(dot=wrong_steps.uncompensated_products),
    "one term in exp": _with(exp=wrong_steps.one_term_exp),
}
