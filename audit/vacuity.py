"""Could the checks have failed? Wrong results are laid in place of right ones, and every check is asked again.

A check that says yes to zeros says nothing. For the variant without a parent, in each case, the first step's results
are replaced by mutated ones (those that the operator declares, and zeros and noise for any operator), and the same
checks that judged the right results judge the wrong ones. A mutation that no check tells from the right result
in any case of the plan makes the plan inconclusive. `bytes` takes no part: it needs a parent that is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import msgspec
import numpy as np

from audit.arena import Snapshot
from audit.checks.error import error, probe
from audit.checks.finite import finite
from audit.checks.result import Figure, Result
from audit.checks.view import View
from audit.declaration import ask, mutated_by
from audit.spec import Array

_CHECKS: tuple[Callable[[View], Iterator[Result]], ...] = (finite, error, probe)


class Exposure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which checks told one mutation from the right result in one case; `applies` is false where it cannot show."""

    mutation: str
    case: str
    applies: bool
    caught_by: tuple[str, ...]


class OmissionShare(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The share of single omissions (of a token, say) whose effect a case's bounds could show at all."""

    case: str
    share: Figure


def expose(view: View) -> Iterator[Exposure]:
    """Lay every mutation over the first step of a completed, right result."""
    step = view.steps[0]
    right = {name: array for name, array in view.got(step).items() if name in step.snapshots}
    for name, mutate in _mutations(view).items():
        wrong = mutate(right)
        if wrong is None or all(np.array_equal(_bytes(array), _bytes(right[key])) for key, array in wrong.items()):
            yield Exposure(name, view.case.id, False, ())
            continue
        laid = {key: Snapshot(_bytes(np.ascontiguousarray(array)), ()) for key, array in wrong.items()}
        mutated = replace(view, steps=[replace(step, snapshots={**step.snapshots, **laid})], again=[])
        caught = [result.check for check in _CHECKS for result in check(mutated) if result.verdict == "fail"]
        yield Exposure(name, view.case.id, True, tuple(dict.fromkeys(caught)))


def unseen(exposures: Sequence[Exposure], *, pruned: bool) -> tuple[str, ...]:
    """The mutations that no check told from the right result in any case.

    One that can show in no case at all counts in a default plan, which must have such a case, and not in a plan that
    options narrowed: that one makes no claim about it.
    """
    seen: dict[str, bool] = {}
    for exposure in exposures:
        if exposure.applies or not pruned:
            seen[exposure.mutation] = seen.get(exposure.mutation, False) or bool(exposure.caught_by)
    return tuple(name for name, caught in seen.items() if not caught)


def omission_share(view: View) -> OmissionShare | None:
    """The operator's analytic figure for a case, where it has one."""
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
    outputs = [buffer.name for buffer in view.results if buffer.role == "out"]
    return {
        "zeros": lambda right: {name: np.zeros_like(right[name]) for name in outputs},
        "noise": lambda right: {name: _noise(right[name], view) for name in outputs},
        **declared,
    }


def _noise(array: Array, view: View) -> Array:
    """Noise at the scale of the output itself."""
    rng = view.case.rng()
    if array.dtype.kind != "f":
        return np.asarray(rng.permutation(array.ravel()).reshape(array.shape))
    scale = float(np.sqrt(np.mean(np.square(array.astype(np.float64)))))
    return np.asarray(rng.normal(0, scale or 1.0, array.shape), array.dtype)


def _bytes(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)
