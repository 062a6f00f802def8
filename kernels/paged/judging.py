"""What the judgement of both operators needs: inputs as the references take them, bound 2, mutations."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from audit.spec import Array, Bound, Case, Expected, Got, Inputs, Measured, Mutation

from ...references.places import NUMPY, Place, gpu
from ...references.tensor_core import MODELS
from .storage import views

FP64_OWN_ERROR = "relative L2 at most 1e-13 of exact sums (tests/references); 2.0e-15 at most was measured"
_LONG = 2**28  # rows * G * D * tokens: some seconds of numpy, which pay for the start of torch
_SCALES = ("scale", "k_scale", "v_scale")


def arrays(case: Case, inputs: Inputs) -> tuple[Array, ...]:
    """q, k, v, table and lengths, K and V as strided views of their storage."""
    return inputs["q"], *views(case, inputs), inputs["table"], inputs["lengths"]


def scales(inputs: Inputs) -> dict[str, Array | np.generic]:
    """scale, k_scale and v_scale by name."""
    return {name: inputs[name] for name in _SCALES}


@contextmanager
def place_of(case: Case) -> Iterator[Place]:
    """Where sums over all tokens are computed, for as long as they are: see `_place`."""
    place = _place(case)
    with place.turn():
        yield place


def place_name(case: Case) -> str:
    """`place_of` in words."""
    return _place(case).name


def _place(case: Case) -> Place:
    """numpy, but for a long case the GPU on which its kernels run."""
    long = case.rows * case.heads * case.dim * case.context >= _LONG
    return gpu() if case.gpu and long else NUMPY


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
            given = {**scales(inputs), "got": got, "rng": case.rng(), "model": MODELS[case.arch]}
            with place_of(case) as place:
                return wrong(*arrays(case, inputs), **given, place=place)

        return apply

    return tuple(Mutation(name, bound(wrong)) for name, wrong in named)
