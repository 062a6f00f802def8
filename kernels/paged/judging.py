"""What the judgement of both operators needs: inputs as the references take them, and bitwise difference."""

import numpy as np

from audit.spec import Array, Case, Inputs

from .storage import views

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
