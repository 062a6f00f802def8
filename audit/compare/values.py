"""The values that the user's file returns, checked: arrays, numbers and None by the names of parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from audit.declaration import came
from audit.errors import ProjectError
from audit.spec import Array

Values: TypeAlias = Mapping[str, Any]
"""Arrays, numpy scalars, Python numbers and None by the names of the kernels' parameters."""


def checked(where: str, found: object) -> dict[str, Any]:
    """What a function returned, its arrays as read-only numpy arrays. Raises ProjectError for anything else."""
    if not isinstance(found, Mapping):
        raise ProjectError(f"{where}: expected a dict of arrays and numbers by parameter, but got {came(found)}")
    return {_name(where, name): _value(f"{where}[{name!r}]", value) for name, value in found.items()}


def _name(where: str, name: object) -> str:
    if not isinstance(name, str):
        raise ProjectError(f"{where}: expected names of parameters as keys, but got {came(name)}")
    return name


def _value(where: str, value: object) -> Any:
    if value is None or isinstance(value, bool | int | float | np.bool_ | np.integer | np.floating):
        return value
    array = as_array(where, value)
    if array.ndim == 0:
        return array[()]
    array = array.view()
    array.flags.writeable = False
    return array


def as_array(where: str, value: object) -> Array:
    """A value as an array of numbers. Raises ProjectError, which names its place."""
    expected = "expected an array of numbers, a number, or None for a null pointer"
    if isinstance(value, str | bytes | Mapping) or callable(value):
        raise ProjectError(f"{where}: {expected}, but got {came(value)}")
    try:
        array = np.asarray(value)
    except Exception as error:  # whatever the value's own conversion raises
        raise ProjectError(f"{where}: {expected}, but got {came(value)} ({type(error).__name__}: {error})") from None
    if array.dtype.kind not in "fiub":
        raise ProjectError(f"{where}: {expected}, but got {came(value if array.ndim == 0 else array)}")
    return array
