"""The user's Python file: inputs, and what it may say beside them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import numpy as np

from audit.errors import PlanError, ProjectError
from audit.project import load_file

Values: TypeAlias = Mapping[str, Any]
"""Arrays and scalars by the names of the kernels' parameters."""


class Hooks(msgspec.Struct, frozen=True):
    """The functions of the file that has the inputs; each of the others may be missing.

    inputs      arrays and scalars by parameter, from nothing or from a numpy generator
    reference   the right results in FP64, from the inputs as the kernels get them
    outputs     an array, or a shape, for each buffer that is only written, from the inputs
    launch      grid, block and shared_bytes, from the inputs
    new_launch  the same for the new kernel, where it is launched in another way
    """

    file: Path
    inputs: Callable[..., Values]
    reference: Callable[[Values], Values] | None = None
    outputs: Callable[[Values], Values] | None = None
    launch: Callable[[Values], Values] | None = None
    new_launch: Callable[[Values], Values] | None = None

    @property
    def draws(self) -> bool:
        """Whether the inputs are drawn from a generator, so that several seeds give several cases."""
        return bool(inspect.signature(self.inputs).parameters)

    def make(self, rng: np.random.Generator) -> Values:
        """The inputs of one case."""
        made = self.inputs(rng) if self.draws else self.inputs()
        if not isinstance(made, Mapping):
            raise ProjectError(
                f"{self.file}: {self.inputs.__name__}: expected a dict of arrays and scalars, "
                f"but got a {type(made).__name__}"
            )
        return made


def load_hooks(root: Path, words: str) -> Hooks:
    """The hooks of `make.py:inputs`; without a function, that named `inputs`.

    Raises ProjectError for what the file raises, PlanError where it has no such function.
    """
    path, _, name = words.partition(":")
    name = name or "inputs"
    module = load_file(root, Path(path))
    if not callable(function := getattr(module, name, None)):
        listed = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise PlanError(f"--inputs: expected a function of {path} ({', '.join(listed) or 'none'}), but got {name!r}")
    others = {
        key: value
        for key in ("reference", "outputs", "launch", "new_launch")
        if callable(value := getattr(module, key, None))
    }
    return Hooks(Path(path).resolve(), function, **others)
