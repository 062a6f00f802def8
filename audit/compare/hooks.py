"""The user's Python file: inputs, and what it may say beside them."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from audit.compare.values import Values, checked
from audit.errors import AuditError, PlanError, ProjectError
from audit.hooks import is_interruption, leave_if_forked, project_line
from audit.project import load_file
from audit.project_reads import while_a_hook_runs

OTHERS = ("reference", "outputs", "launch", "new_launch")


class Hooks(msgspec.Struct, frozen=True):
    """The functions of the file that has the inputs; each of the others may be missing.

    inputs      arrays and numbers by parameter, from nothing or from a numpy generator
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
        try:
            return bool(inspect.signature(self.inputs).parameters)
        except (TypeError, ValueError):  # something callable without a signature
            return False

    def name(self, function: str) -> str:
        """A function as messages name it: `make.py: outputs()`."""
        return f"{self.file.name}: {function}()"

    def make(self, rng: np.random.Generator) -> Values:
        """The inputs of one case. Raises ProjectError for anything but arrays and numbers by name."""
        name = self.name(getattr(self.inputs, "__name__", "inputs"))
        return checked(name, asked(name, self.inputs, *([rng] if self.draws else [])))

    def shapes(self, values: Values) -> dict[str, Any]:
        """What outputs() returns, shapes as tuples."""
        if self.outputs is None:
            return {}
        name = self.name("outputs")
        found = asked(name, self.outputs, values)
        shapes = {key: one for key, one in found.items() if isinstance(one, tuple)} if isinstance(found, dict) else {}
        for key, shape in shapes.items():
            if not all(isinstance(size, int | np.integer) and size >= 0 for size in shape):
                raise ProjectError(f"{name}[{key!r}]: expected an array or a shape, but got {shape!r}")
        arrays = {key: one for key, one in found.items() if key not in shapes} if shapes else found
        return {**checked(name, arrays), **shapes}

    def launched(self, new: bool, values: Values) -> dict[str, Any]:
        """What launch(), or new_launch(), returns."""
        hook, name = (self.new_launch, "new_launch") if new and self.new_launch else (self.launch, "launch")
        if hook is None:
            return {}
        found = asked(self.name(name), hook, values)
        keys = ("grid", "block", "shared_bytes")
        if not isinstance(found, dict) or not set(found) <= set(keys):
            came = sorted(map(str, found)) if isinstance(found, dict) else type(found).__name__
            raise ProjectError(f"{self.name(name)}: expected a dict with {', '.join(keys)}, but got {came}")
        return found


def asked(name: str, function: Callable[..., Any], *args: object) -> Any:
    """What a function of the user's file returns. Raises ProjectError for whatever it raises, with its line."""
    own = os.getpid()
    try:
        with while_a_hook_runs():
            return function(*args)
    except AuditError:
        raise
    except BaseException as error:
        if is_interruption(error):
            raise
        line = project_line(error)
        raise ProjectError(f"{name} raised {type(error).__name__}: {error}" + (f" ({line})" if line else "")) from error
    finally:
        leave_if_forked(own)


def load_hooks(root: Path, words: str) -> Hooks:
    """The hooks of `make.py:inputs`; without a function, that named `inputs`.

    Raises ProjectError for what the file raises, PlanError where it has no such function.
    """
    file, name = split_words(words)
    module = load_file(root, file)
    if not callable(function := getattr(module, name, None)):
        listed = [
            key
            for key, value in vars(module).items()
            if inspect.isfunction(value) and value.__module__ == module.__name__
        ]
        raise PlanError(f"--inputs: expected a function of {file} ({', '.join(listed) or 'none'}), but got {name!r}")
    others = {key: value for key in OTHERS if callable(value := getattr(module, key, None))}
    return Hooks(file.resolve(), function, **others)


def split_words(words: str) -> tuple[Path, str]:
    """File and function of `make.py:inputs`; the function is `inputs` unless another is named."""
    path, _, name = words.partition(":")
    return Path(path), name or "inputs"
