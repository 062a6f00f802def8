"""Results of the grouped operator that are wrong in one named way, as a faulty kernel would leave them.

On short contexts they come from the contract reference with one wrong step, bit for bit. On long contexts, faults that
do not depend on the last bits come from FP64 with the fault in it, split by split; the others are None.
"""

import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from . import wrong_steps
from .array_library import NUMPY, ArrayLibrary, DeviceArray
from .attention import lines_of
from .binary32 import Array32
from .contract import GroupedSteps, grouped_contract, sees
from .merge import NOTHING_SEEN, merge
from .paging import gather_codes
from .splits import CAPACITY_SPLITS, TILE, splits, total_of
from .tensor_core import SM_90, TensorCore

Buffers: TypeAlias = dict[str, NDArray[Any]]
Visible: TypeAlias = Callable[[DeviceArray, DeviceArray], DeviceArray]

WHOLE = 300
"""The most tokens that the contract reference computes, in all or in one split."""


@dataclass(frozen=True, eq=False)
class Call:
    """One call of an operator, with the results of the audited kernel."""

    q: NDArray[np.float16]
    k: NDArray[np.uint8]
    v: NDArray[np.uint8]
    table: NDArray[np.int32]
    lengths: NDArray[np.int32]
    scale: np.float32
    k_scale: np.float32
    v_scale: np.float32
    got: Mapping[str, NDArray[Any]]
    rng: np.random.Generator
    model: TensorCore = SM_90
    library: ArrayLibrary = NUMPY

    @property
    def inputs(self) -> dict[str, Any]:
        """The arguments that the references of both operators share."""
        return {name: value for name, value in vars(self).items() if name not in ("got", "rng", "model", "library")}

    @property
    def total(self) -> int:
        return total_of(self.lengths)


def mutation(apply: Callable[[Call], Buffers | None]) -> Callable[..., Buffers | None]:
    """f(q, k, v, table, lengths, *, scale, k_scale, v_scale, got, rng, model=SM_90, library=NUMPY) of
    `apply`.

    q f16[rows, G, D]; k, v u8[pages, page, 1, D]; table i32[1, n]; lengths i32[rows]; got: outputs and workspaces of
    the audited kernel by name; rng draws a token or split; model: whose tensor cores it ran on (grouped only); library:
    computes sums over many tokens. Returns the outputs and workspaces that the fault changes, whole, in their
    dtypes and shapes; None where it changes no byte, cannot occur, or is not simulated.
    """

    def mutate(
        q: NDArray[np.float16],
        k: NDArray[np.uint8],
        v: NDArray[np.uint8],
        table: NDArray[np.int32],
        lengths: NDArray[np.int32],
        **others: Any,
    ) -> Buffers | None:
        call = Call(q, k, v, table, lengths, **others)
        changed = apply(call) if call.total > 0 else None
        if changed is None:
            return None
        changed = {name: value for name, value in changed.items() if value.tobytes() != call.got[name].tobytes()}
        return changed or None

    return mutate


# --- tokens ----------------------------------------------------------------------------------------------


def heaviest_token(call: Call) -> int:
    """The token with the largest weight pi, of all rows and heads."""
    library, xp = call.library, call.library.xp
    seen, queries = lines_of(call.q, call.lengths, library)
    factor = float(call.scale) * float(call.k_scale)
    score = library.full((len(queries), call.total), -np.inf)
    for tokens in splits(call.total):
        keys = library.decoded(gather_codes(call.k, call.table, tokens.stop, start=tokens.start))
        shown = sees(library.to_device(np.arange(tokens.start, tokens.stop)), seen)
        score[:, tokens.start : tokens.stop] = xp.where(shown, factor * (queries @ keys.T), -np.inf)
    score = score[seen[:, 0] > 0]
    # The weight of the heaviest token is 1 / sum exp(score - peak).
    line = int(xp.argmin(xp.exp(score - xp.amax(score, axis=1)[:, None]).sum(axis=1)))
    return int(xp.argmax(score[line]))


def any_token(call: Call) -> int:
    """A token that the longest row sees, drawn."""
    return int(call.rng.integers(call.total))


def _token_dropped(call: Call, choose: Callable[[Call], int]) -> Buffers:
    lost = choose(call)
    where = next(s for s, tokens in enumerate(splits(call.total)) if lost in tokens)

    def visible(token: DeviceArray, length: DeviceArray) -> DeviceArray:
        return sees(token, length) & (token != lost)

    return _recomputed(call, {where}, visible)


def _length_short(call: Call) -> Buffers:
    """Every row sees one token too few."""
    last = call.lengths[call.lengths > 0] - 1
    ends = {s for s, tokens in enumerate(splits(call.total)) if any(int(token) in tokens for token in last)}
    return _recomputed(call, ends, lambda token, length: sees(token, length - 1))


def _recomputed(call: Call, chosen: Collection[int], visible: Visible) -> Buffers:
    """The chosen splits with another visibility; the others stay."""
    if max(len(splits(call.total)[s]) for s in chosen) <= WHOLE:
        found = grouped_contract(**call.inputs, chosen=chosen, model=call.model, steps=GroupedSteps(visible=visible))
        return _laid_over(call, found.partial, found.lse, chosen)
    return _laid_over(call, *_in_fp64(call, chosen, visible=visible), chosen)


# --- arithmetic ------------------------------------------------------------------------------------------


def _with_steps(call: Call, steps: GroupedSteps) -> Buffers | None:
    """All splits by the contract with a wrong step; None on long contexts."""
    if call.total > WHOLE:
        return None
    found = grouped_contract(**call.inputs, model=call.model, steps=steps)
    return _laid_over(call, found.partial, found.lse, range(len(splits(call.total))))


def _with_weights(call: Call, steps: GroupedSteps, weigh: Callable[[Array32], Array32]) -> Buffers | None:
    """The same; on long contexts FP64 with p rounded by `weigh`, whose error is thousands of times that of f32."""
    if call.total <= WHOLE:
        return _with_steps(call, steps)
    active, kept = range(len(splits(call.total))), call.got["lse"]
    partial, lse = _in_fp64(call, active, weigh=weigh)
    with np.errstate(all="ignore"):  # poison is included here too, and then dropped
        partial *= np.exp(lse[..., :1] - kept[..., :1])  # against the maxima that stay
    return _laid_over(call, partial, kept, active)


def _v_scale_twice(call: Call) -> Buffers:
    with np.errstate(over="ignore", invalid="ignore"):  # poison is multiplied too, and then dropped
        scaled = call.got["partial"] * np.float32(call.v_scale)
    return _laid_over(call, scaled, call.got["lse"], range(len(splits(call.total))))


# --- structure -------------------------------------------------------------------------------------------


def _split_dropped(call: Call) -> Buffers:
    """One split's loop ends before its first tile."""
    partial, lse = np.zeros_like(call.got["partial"]), np.zeros_like(call.got["lse"])
    lse[..., 0] = NOTHING_SEEN
    return _laid_over(call, partial, lse, [int(call.rng.integers(len(splits(call.total))))])


def _split_not_merged(call: Call) -> Buffers:
    """The merge leaves one split out; the workspace is right."""
    return {"out": _split_dropped(call)["out"]}


def _heads_shifted(call: Call) -> Buffers:
    """Each head is the one before it."""
    partial, lse = (np.roll(call.got[name], 1, axis=2) for name in ("partial", "lse"))
    return _laid_over(call, partial, lse, range(len(splits(call.total))))


def _laid_over(call: Call, partial: Array32, lse: Array32, chosen: Collection[int]) -> Buffers:
    """The audited workspace with the chosen splits of the case's rows replaced, and the output merged from it."""
    rows, where = len(call.lengths), list(chosen)
    buffers = {name: call.got[name].copy() for name in ("partial", "lse")}
    buffers["partial"][where, :rows], buffers["lse"][where, :rows] = partial[where, :rows], lse[where, :rows]
    with np.errstate(over="ignore"):
        buffers["out"] = merge(buffers["partial"], buffers["lse"], call.lengths, call.total).astype(np.float16)
    return buffers


def _in_fp64(
    call: Call,
    chosen: Collection[int],
    *,
    visible: Visible = sees,
    weigh: Callable[[Array32], Array32] | None = None,
) -> tuple[Array32, Array32]:
    """(partial, lse) of the chosen splits, NaN elsewhere: FP64, p taken against the running maximum of its tile.

    Where a row sees nothing, the state is the contract's.
    """
    rows, heads = call.q.shape[:2]
    lines, library, xp = rows * heads, call.library, call.library.xp
    partial = np.full((CAPACITY_SPLITS, *call.got["partial"].shape[1:]), np.nan, np.float32)
    lse = np.full((*partial.shape[:3], 2), np.nan, np.float32)
    factor = float(call.scale) * float(call.k_scale)
    seen, queries = lines_of(call.q, call.lengths, library)
    for s in chosen:
        tokens = splits(call.total)[s]
        tiles = -(-len(tokens) // TILE)
        keys, values = (
            library.decoded(gather_codes(side, call.table, tokens.stop, start=tokens.start))
            for side in (call.k, call.v)
        )
        shown = visible(library.to_device(np.arange(tokens.start, tokens.stop)), seen)
        score = library.full((lines, tiles * TILE), -np.inf)
        score[:, : len(tokens)] = xp.where(shown, factor * (queries @ keys.T), -np.inf)
        score = score.reshape(lines, tiles, TILE)
        running = library.running_maximum(xp.amax(score, axis=2)).clip(float(NOTHING_SEEN))
        p = library.to_numpy(xp.exp(score - running[:, :, None])).astype(np.float32)
        maximum = library.to_numpy(running[:, -1]).astype(np.float32)
        rescale = np.exp(library.to_numpy(running) - maximum[:, None])[:, :, None]
        weights = ((p if weigh is None else weigh(p)) * rescale).reshape(lines, -1)[:, : len(tokens)]
        out = library.to_numpy(library.to_device(weights) @ values)
        with np.errstate(over="ignore"):
            partial[s, :rows] = (out * float(call.v_scale)).reshape(call.q.shape)
        sums = (p * rescale).sum(axis=(1, 2))
        lse[s, :rows] = np.stack([maximum, sums], axis=-1).reshape(rows, heads, 2)
    return partial, lse


MUTATIONS: tuple[tuple[str, Callable[..., Buffers | None]], ...] = tuple(
    (name, mutation(apply))
    for name, apply in (
        ("heaviest_token_dropped", functools.partial(_token_dropped, choose=heaviest_token)),
        ("random_token_dropped", functools.partial(_token_dropped, choose=any_token)),
        ("length_one_short", _length_short),
        ("split_dropped", _split_dropped),
        ("split_not_merged", _split_not_merged),
        ("heads_shifted", _heads_shifted),
        ("v_scale_twice", _v_scale_twice),
        (
            "residual_missing",
            functools.partial(
                _with_weights,
                steps=GroupedSteps(weigh=wrong_steps.f16_weighted_values),
                weigh=wrong_steps.f16_weights,
            ),
        ),
        (
            "bf16_weights",
            functools.partial(
                _with_weights,
                steps=GroupedSteps(weigh=wrong_steps.bf16_weighted_values),
                weigh=wrong_steps.bf16_weights,
            ),
        ),
        (
            "compensation_missing",
            functools.partial(_with_steps, steps=GroupedSteps(dot=wrong_steps.uncompensated_products)),
        ),
        ("one_term_exp", functools.partial(_with_steps, steps=GroupedSteps(exp=wrong_steps.one_term_exp))),
    )
)
"""(name, function) of every fault; for the functions' signature see `mutation`."""
