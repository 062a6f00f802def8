"""The values that a declaration's hooks are made with: a limit that a function encloses, a default, a global.

Content of the project's files says what code a hook runs. It does not say what the code computed with while it was
loaded: a limit that came from an environment variable, a table from another package, a choice between two functions.
These values are digested once, before any hook runs, since a hook may keep what it has computed in a global.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import msgspec
import numpy as np

from audit.environment_reads import PROJECT
from audit.spec import Operator, Variant

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_DEEPEST = 40
_OF_A_CASE = frozenset({"axes", "buffers"})
"""Fields of an operator that are looked at case by case."""
_NOT_DECISIVE = frozenset(
    {"name", "variants", "shapes", "plan", "captures", "describe", "sanitize", "default", "bench"}
)  # what a plan asks for is in the plan
_VARIANT_NOT_DECISIVE = frozenset({"name", "launches", "status", "note", "why", "evidence"})


def operator_values(operator: Operator, root: Path) -> dict[str, dict[str, str]]:
    """Variant -> part of the declaration -> sha256 of its values: `parent of fast`.

    The operator's own parts, such as `inputs` or `bound rel_l2(y)`, have the key "".
    """
    parts: dict[str, object] = {}
    for name, value in _set_fields(operator, _OF_A_CASE | _NOT_DECISIVE):
        if isinstance(value, list | tuple) and all(hasattr(each, "name") for each in value):
            parts |= {f"{name.removesuffix('s')} {each.name}": each for each in value}
        else:
            parts[name] = value
    found = {"": {name: _digest(value, root) for name, value in parts.items()}}
    for variant in operator.variants:
        fields = _set_fields(variant, _VARIANT_NOT_DECISIVE)
        found[variant.name] = {f"{name} of {variant.name}": _digest(value, root) for name, value in fields}
    return found


def _set_fields(declared: Operator | Variant, left_out: frozenset[str]) -> Iterator[tuple[str, object]]:
    """The fields that are not at their defaults: a field that a later version adds changes nothing by itself."""
    for field in dataclasses.fields(declared):
        value = getattr(declared, field.name)
        default = field.default_factory() if callable(field.default_factory) else field.default
        if field.name not in left_out and value is not default and not (isinstance(default, dict) and value == {}):
            yield field.name, value


def _digest(value: object, root: Path) -> str:
    walk = _Walk(str(root))
    walk.add(value, 0)
    return walk.digest.hexdigest()


class _Walk:
    """One digest over everything that is reachable from a value. What has no stable text counts by its type alone."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.digest = sha256()
        self.visited: dict[int, object] = {}  # kept alive, so that no id is used twice

    def add(self, value: Any, depth: int) -> None:
        if isinstance(value, _PLAIN):
            self.word(value.hex() if isinstance(value, float) else self.placed(value))
            return
        if id(value) in self.visited or depth > _DEEPEST:
            self.word("again")
            return
        self.visited[id(value)] = value
        self.word(type(value).__qualname__)
        for part in self.parts(value):
            self.add(part, depth + 1)
        self.word("end")

    def word(self, text: object) -> None:
        self.digest.update(f"{type(text).__name__} {text!r}\0".encode(errors="backslashreplace"))

    def placed(self, value: object) -> object:
        """A text without the folder of the project: another clone is the same declaration."""
        return value.replace(self.root, "") if isinstance(value, str) else value

    def parts(self, value: Any) -> Iterator[object]:
        if isinstance(value, np.ndarray):
            yield from (str(value.dtype), value.shape)
            if not value.dtype.hasobject:
                yield sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        elif isinstance(value, np.generic):
            yield from (str(value.dtype), value.tobytes())
        elif isinstance(value, np.dtype | Path):
            yield str(value)
        elif isinstance(value, enum.Enum):
            yield from (value.name, value.value)
        elif isinstance(value, tuple | list):
            yield from value
        elif isinstance(value, set | frozenset):
            yield from sorted(_digest(each, Path(self.root)) for each in value)
        elif isinstance(value, Mapping):
            yield from (part for item in value.items() for part in item)
        else:
            yield from self.of_code(value)

    def of_code(self, value: Any) -> Iterator[object]:
        """Functions, classes and instances. What other packages define counts by its name."""
        if isinstance(value, FunctionType):
            yield from self.of_function(value)
        elif isinstance(value, MethodType):
            yield from (value.__func__, value.__self__)
        elif isinstance(value, BuiltinFunctionType | np.ufunc):
            yield value.__name__
        elif isinstance(value, functools.partial):
            yield from (value.func, value.args, value.keywords)
        elif isinstance(value, staticmethod | classmethod):
            yield value.__func__
        elif isinstance(value, property):
            yield value.fget
        elif isinstance(value, type):
            yield from (_module(value), value.__qualname__)
            if _is_project(value):
                yield from (each for name, each in sorted(vars(value).items()) if not name.startswith("__"))
        elif isinstance(value, ModuleType):
            yield _module(value)
        elif dataclasses.is_dataclass(value) or isinstance(value, msgspec.Struct):
            names: tuple[str, ...] = tuple(getattr(value, "__dataclass_fields__", ()))
            yield from (getattr(value, name, None) for name in names or getattr(value, "__struct_fields__", ()))
        elif hasattr(value, "__wrapped__"):
            yield value.__wrapped__
        elif _is_project(type(value)):
            yield from (type(value), vars(value) if hasattr(value, "__dict__") else None)

    def of_function(self, function: FunctionType) -> Iterator[object]:
        yield from (_module(function), function.__qualname__, function.__defaults__, function.__kwdefaults__)
        for cell in function.__closure__ or ():
            try:
                yield cell.cell_contents
            except ValueError:  # not set yet
                yield None
        if not _is_project(function):
            return
        yield function.__code__.co_firstlineno
        names = _names(function.__code__)
        for name in sorted(names & function.__globals__.keys()):
            value = function.__globals__[name]
            yield name
            yield value
            if isinstance(value, ModuleType):
                yield from _of_module(value, names)


def _names(code: CodeType) -> set[str]:
    """Every global or attribute that code mentions, in the functions inside it too."""
    inner = (_names(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*inner)


def _of_module(module: ModuleType, names: set[str]) -> Iterator[object]:
    """The attributes of a module that code mentions; of another package's module those that are plain values."""
    for name in sorted(names & vars(module).keys()):
        value = vars(module)[name]
        if _is_project(module) or isinstance(value, _PLAIN):
            yield from (name, value)


def _module(value: Any) -> str:
    """The module of a function or class; the private package of a project is named after its folder, so not by it."""
    name = str(value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", ""))
    return name.partition(".")[2] if name.startswith(PROJECT) else name


def _is_project(value: Any) -> bool:
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", "")
    return str(name).startswith(PROJECT)
