"""Could the checks have failed? Wrong results replace the right ones, and every check judges again.

A check that passes zeros proves nothing. In each case, mutated results replace those of the first step of the variant
without a parent: the operator's own mutations, zeros and noise for any operator, and the
contents from before for buffers that a kernel changes in place. The checks that judged the right
results then judge the wrong ones. A mutation that no check catches in any case makes the plan inconclusive. `bytes`
takes no part, because it needs a parent that is right; where it is the only check, nothing is exposed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import ml_dtypes
import msgspec
import numpy as np

from audit import arena
from audit.arena import Snapshot
from audit.checks.error import error, probe
from audit.checks.finite import finite
from audit.checks.result import Figure, Result
from audit.checks.view import View
from audit.declaration import ask, mutated_by
from audit.elements import bytes_in, is_float
from audit.formats import FLOATS, as_dtype, encoded
from audit.spec import Array

OWN = ("zeros", "noise", "untouched")
"""The mutations that every operator gets."""
_CHECKS: tuple[Callable[[View], Iterator[Result]], ...] = (finite, error, probe)


class Exposure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The checks that caught one mutation in one case. `applies` is false if the mutation changes nothing."""

    mutation: str
    case: str
    applies: bool
    caught_by: tuple[str, ...]


class OmissionShare(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The share of single omissions (of a token, for example) that are large enough for a case's bounds to catch."""

    case: str
    share: Figure


def expose(view: View) -> Iterator[Exposure]:
    """Replace the first step's results by each mutation in turn, and run the checks."""
    step = view.steps[0]
    right = {name: array for name, array in view.got(step).items() if name in step.snapshots}
    for name, mutate in _mutations(view).items():
        wrong = mutate(right)
        if wrong is None or all(np.array_equal(_bytes(array), _bytes(right[key])) for key, array in wrong.items()):
            yield Exposure(name, view.case.id, False, ())
            continue
        snapshots = {
            key: Snapshot(bytes_in(np.ascontiguousarray(array), view.buffers[key].dtype), ())
            for key, array in wrong.items()
        }
        mutated = replace(view, steps=[replace(step, snapshots={**step.snapshots, **snapshots})], again=[])
        caught = [result.check for check in _CHECKS for result in check(mutated) if result.verdict == "fail"]
        yield Exposure(name, view.case.id, True, tuple(dict.fromkeys(caught)))


def unseen(exposures: Sequence[Exposure], *, pruned: bool) -> tuple[str, ...]:
    """The mutations that no check caught in any case.

    A declared mutation that applies in no case counts in a default plan, which must have a case for it. A plan that
    options narrowed makes no claim about it. Of the tool's own mutations none needs to apply: where the right result
    is zero, zeros are right.
    """
    caught: dict[str, bool] = {}
    for exposure in exposures:
        if exposure.applies or not (pruned or exposure.mutation in OWN):
            caught[exposure.mutation] = caught.get(exposure.mutation, False) or bool(exposure.caught_by)
    return tuple(name for name, was_caught in caught.items() if not was_caught)


def omission_share(view: View) -> OmissionShare | None:
    """The operator's analytic figure for a case, if it declares one."""
    if view.operator.omission_share is None:
        return None
    step = view.steps[0]
    hook = view.operator.omission_share
    share = ask(view.case, "omission_share", hook, view.case, step.inputs, step.references, returns=float)
    return OmissionShare(view.case.id, Figure.of(share))


def _mutations(view: View) -> Mapping[str, Callable[[Mapping[str, Array]], Mapping[str, Array] | None]]:
    step = view.steps[0]
    declared = {
        mutation.name: lambda right, mutation=mutation: mutated_by(
            mutation, view.case, step.inputs, right, step.references
        )
        for mutation in view.operator.mutations
    }
    outputs = [buffer.name for buffer in view.results if buffer.role in ("out", "inout")]
    initial = {
        buffer.name: as_dtype(buffer.dtype, arena.input_array(buffer, view.case, step.inputs))
        for buffer in view.results
        if buffer.role == "inout"
    }
    untouched = {"untouched": lambda _right: initial} if initial else {}
    return {
        "zeros": lambda right: {name: np.zeros_like(right[name]) for name in outputs},
        "noise": lambda right: {name: _noise(right[name], view) for name in outputs},
        **untouched,
        **declared,
    }


def _noise(array: Array, view: View) -> Array:
    """Noise at the scale of the output itself, from another generator than the inputs."""
    rng = view.case.rng().spawn(1)[0]
    if array.dtype == np.bool_:
        return np.asarray(rng.integers(0, 2, array.shape).astype(np.bool_))
    if not is_float(array.dtype):
        return _integer_noise(array, rng)
    scale = float(np.sqrt(np.mean(np.square(array.astype(np.float64)))))
    return encoded(FLOATS[array.dtype], np.asarray(rng.normal(0, scale or 1.0, array.shape)))


def _integer_noise(array: Array, rng: np.random.Generator) -> Array:
    """Integers at the scale of the elements: from below the least to above the greatest, also where all are equal."""
    if not array.size:
        return array
    least, greatest = int(array.min()), int(array.max())
    kind = ml_dtypes.iinfo(array.dtype)  # type: ignore[no-untyped-call]
    beyond = (abs(least) + abs(greatest)) // 2 + 1
    low, high = max(least - beyond, int(kind.min)), min(greatest + beyond, int(kind.max))
    wide = array.dtype if array.dtype.isbuiltin == 1 else np.dtype(np.int8)
    drawn = rng.integers(low, high, array.shape, wide, endpoint=True)
    return np.asarray(drawn).astype(array.dtype)


def _bytes(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)
