"""What the judgement of both operators needs: inputs as the references take them, bound 2, mutations."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from audit.spec import Array, Bound, Case, Expected, Got, Inputs, Measured, Mutation

from ...references.tensor_core import MODELS
from .storage import views

FP64_OWN_ERROR = "relative L2 at most 1e-13 of exact sums (tests/references); 2.0e-15 at most was measured"
_SCALES = ("scale", "k_scale", "v_scale")


def arrays(case: Case, inputs: Inputs) -> tuple[Array, ...]:
    """q, k, v, table and lengths, K and V as strided views of their storage."""
    return inputs["q"], *views(case, inputs), inputs["table"], inputs["lengths"]


def scales(inputs: Inputs) -> dict[str, Array | np.generic]:
    """scale, k_scale and v_scale by name."""
    return {name: inputs[name] for name in _SCALES}


def differing(got: Array, expected: Array) -> Array:
    """bool, where the bits of two arrays of one dtype differ."""
    word = f"u{got.itemsize}"
    return np.asarray(got.view(word) != expected.view(word))


def _merge(_case: Case, _inputs: Inputs, got: Got, _expected: Expected) -> Measured:
    """Bound 2: `out` is, byte for byte, the pre-cast output rounded to f16; counted in differing elements."""
    value = differing(got["out"], got["precast"].astype(np.float16)).astype(np.float64)
    return Measured(value, np.zeros_like(value), ("row", "head", "dim"))


MERGE = Bound("merge", _merge, reference="")


def as_mutations(named: Iterable[tuple[str, Callable[..., Mapping[str, Array] | None]]]) -> tuple[Mutation, ...]:
    """The references' wrong results, for cases: f(q, k, v, table, lengths, *, scale, k_scale, v_scale, got, rng)."""

    def bound(wrong: Callable[..., Mapping[str, Array] | None]) -> Callable[..., Mapping[str, Array] | None]:
        def apply(
            case: Case, inputs: Inputs, got: Mapping[str, Array], _references: object
        ) -> Mapping[str, Array] | None:
            return wrong(*arrays(case, inputs), **scales(inputs), got=got, rng=case.rng(), model=MODELS[case.arch])

        return apply

    return tuple(Mutation(name, bound(wrong)) for name, wrong in named)
