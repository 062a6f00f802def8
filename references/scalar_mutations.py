"""Results of the scalar operator that are wrong in one named way; see also `mutations`.

A partition has at most 1,024 tokens, so the contract reference recomputes the partition of a lost token at any length.
Faults that change every partition are None on long contexts.
"""

import functools
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import wrong_steps
from .mutations import Buffers, Call, any_token, heaviest_token, mutation
from .scalar_contract import LOWEST, ScalarSteps, scalar_contract, scalar_merge, sees
from .splits import PARTITION, partitions

WHOLE = 2048
"""The most tokens that the contract reference computes where all partitions change."""
WORKSPACE = ("partial", "maximum", "sums")


def _token_dropped(call: Call, choose: Callable[[Call], int]) -> Buffers | None:
    lost = choose(call)
    where = lost // PARTITION
    if len(partitions(call.total)[where]) == 1:
        return None  # gives 0 / 0, which any check would see

    def visible(token: NDArray[np.int64], length: int) -> NDArray[np.bool_]:
        return np.asarray(sees(token, length) & (token != lost))

    return _by_contract(call, {where}, ScalarSteps(visible=visible))


def _everywhere(call: Call, steps: ScalarSteps) -> Buffers | None:
    active = range(len(partitions(call.total)))
    return _by_contract(call, active, steps) if call.total <= WHOLE else None


def _v_scale_twice(call: Call) -> Buffers:
    with np.errstate(over="ignore", invalid="ignore"):  # poison is multiplied too, and then dropped
        scaled = call.got["partial"] * np.float32(call.v_scale)
    return _laid_over(call, {**call.got, "partial": scaled}, range(len(partitions(call.total))))


def _partition_dropped(call: Call) -> Buffers:
    """One partition is computed as if it had no token."""
    empty = {name: np.zeros_like(call.got[name]) for name in WORKSPACE}
    empty["maximum"] = np.full_like(call.got["maximum"], LOWEST)
    return _laid_over(call, empty, [int(call.rng.integers(len(partitions(call.total))))])


def _partition_not_reduced(call: Call) -> Buffers:
    """The reducer leaves one partition out; the workspace is right."""
    return {"out": _partition_dropped(call)["out"]}


def _heads_shifted(call: Call) -> Buffers:
    """Each head is the one before it."""
    rolled = {name: np.roll(call.got[name], 1, axis=1) for name in WORKSPACE}
    return _laid_over(call, rolled, range(len(partitions(call.total))))


def _by_contract(call: Call, chosen: Collection[int], steps: ScalarSteps) -> Buffers:
    return _laid_over(call, vars(scalar_contract(**call.inputs, chosen=chosen, steps=steps)), chosen)


def _laid_over(call: Call, found: dict[str, NDArray[Any]], chosen: Collection[int]) -> Buffers:
    """The audited workspace with the chosen partitions replaced, and the output that the reducer computes from it."""
    buffers = {name: call.got[name].copy() for name in WORKSPACE}
    for name, buffer in buffers.items():
        buffer[:, :, list(chosen)] = found[name][:, :, list(chosen)]
    with np.errstate(over="ignore"):
        precast = scalar_merge(buffers["partial"], buffers["maximum"], buffers["sums"], call.total)
        return {**buffers, "out": precast.astype(np.float16)}


MUTATIONS: tuple[tuple[str, Callable[..., Buffers | None]], ...] = tuple(
    (name, mutation(apply))
    for name, apply in (
        ("heaviest_token_dropped", functools.partial(_token_dropped, choose=heaviest_token)),
        ("random_token_dropped", functools.partial(_token_dropped, choose=any_token)),
        ("length_one_short", functools.partial(_token_dropped, choose=lambda call: call.total - 1)),
        ("partition_dropped", _partition_dropped),
        ("partition_not_reduced", _partition_not_reduced),
        ("heads_shifted", _heads_shifted),
        ("v_scale_twice", _v_scale_twice),
        ("f16_weights", functools.partial(_everywhere, steps=ScalarSteps(weigh=wrong_steps.f16_weights))),
        ("bf16_weights", functools.partial(_everywhere, steps=ScalarSteps(weigh=wrong_steps.bf16_weights))),
        ("one_term_exp", functools.partial(_everywhere, steps=ScalarSteps(exp=wrong_steps.one_term_exp))),
    )
)
"""(name, function) of every fault; for the functions' signature see `mutations.mutation`."""
