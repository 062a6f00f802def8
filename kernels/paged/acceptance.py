"""What the acceptance of both operators shares: arguments of the references, bound 2, mutations."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from audit import Array, Bound, Case, Expected, Got, Inputs, Measured, Mutation

from ...references.array_library import NUMPY, ArrayLibrary, gpu_library
from ...references.tensor_core import MODELS
from .storage import views

FP64_OWN_ERROR = "relative L2 at most 1e-13 of exact sums (tests/references); 2.0e-15 at most was measured"
_LONG = 2**28  # rows * G * D * tokens: above this, numpy takes seconds and starting torch pays off
_SCALES = ("scale", "k_scale", "v_scale")


def arrays(case: Case, inputs: Inputs) -> tuple[Array, ...]:
    """q, k, v, table and lengths, K and V as strided views of their storage."""
    return inputs["q"], *views(case, inputs), inputs["table"], inputs["lengths"]


def scales(inputs: Inputs) -> dict[str, Array | np.generic]:
    """scale, k_scale and v_scale by name."""
    return {name: inputs[name] for name in _SCALES}


@contextmanager
def library_for(case: Case) -> Iterator[ArrayLibrary]:
    """The library that computes sums over all tokens of the case, held for exclusive use."""
    library = _library(case)
    with library.exclusive():
        yield library


def library_name(case: Case) -> str:
    """The name of the library that `library_for` gives."""
    return _library(case).name


def _library(case: Case) -> ArrayLibrary:
    """numpy; torch on the GPU for a long case whose kernels run on that GPU."""
    long = case.rows * case.heads * case.dim * case.context >= _LONG
    return gpu_library() if case.gpu and long else NUMPY


def differing(got: Array, expected: Array) -> Array:
    """bool: where the bits of two arrays of one dtype differ."""
    word = f"u{got.itemsize}"
    return np.asarray(got.view(word) != expected.view(word))


def _merge(_case: Case, _inputs: Inputs, got: Got, _expected: Expected) -> Measured:
    """Bound 2: `out` equals the rounded pre-cast output byte for byte. Measures the number of differing elements."""
    value = differing(got["out"], got["precast"].astype(np.float16)).astype(np.float64)
    return Measured(value, np.zeros_like(value), ("row", "head", "dim"))


MERGE = Bound("merge", _merge, reference="")


def as_mutations(named: Iterable[tuple[str, Callable[..., Mapping[str, Array] | None]]]) -> tuple[Mutation, ...]:
    """Mutations of cases from functions f(q, k, v, table, lengths, *, scale, k_scale, v_scale, got, rng, ...)."""

    def bound(wrong: Callable[..., Mapping[str, Array] | None]) -> Callable[..., Mapping[str, Array] | None]:
        def apply(
            case: Case, inputs: Inputs, got: Mapping[str, Array], _references: object
        ) -> Mapping[str, Array] | None:
            given = {**scales(inputs), "got": got, "rng": case.rng(), "model": MODELS[case.arch]}
            with library_for(case) as library:
                return wrong(*arrays(case, inputs), **given, library=library)

        return apply

    return tuple(Mutation(name, bound(wrong)) for name, wrong in named)
