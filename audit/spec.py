"""What a kernel promises, as data: the vocabulary in which a project declares what is to be audited.

An `Operator` says what is computed: its axes, buffers, inputs, references and bounds. A `Variant` is one
implementation of it, with its parent. A `Shape` is a named choice of axis values. A `Case` is one point of
the axes with a seed or a capture. Nothing here executes anything, and nothing knows any particular kernel.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import msgspec
import numpy as np

from audit.errors import PlanError, ProjectError

if TYPE_CHECKING:
    from audit.bounds import Bound

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Inputs: TypeAlias = Mapping[str, Array | np.generic]
"""Arrays fill the `in` buffers of the same name; numpy scalars are launch arguments."""
AxisValue: TypeAlias = int | float | str
Role = Literal["in", "out", "workspace"]
Status = Literal["control", "admitted", "experimental", "closed"]

DTYPES: Mapping[str, np.dtype[Any]] = {
    "f64": np.dtype("<f8"),
    "f32": np.dtype("<f4"),
    "f16": np.dtype("<f2"),
    "e4m3": np.dtype("u1"),
    "u8": np.dtype("u1"),
    "i32": np.dtype("<i4"),
    "u32": np.dtype("<u4"),
    "i64": np.dtype("<i8"),
    "u64": np.dtype("<u8"),
}


class Axis(msgspec.Struct, frozen=True):
    """One dimension along which cases differ. `at_most` and `at_least` bound integers; `values` lists choices."""

    name: str
    default: AxisValue
    values: tuple[AxisValue, ...] = ()
    at_least: int | None = None
    at_most: int | None = None

    def admit(self, value: AxisValue) -> None:
        """Raise PlanError unless the value is one that the operator promises to handle."""
        if self.values and value not in self.values:
            raise PlanError(f"axis {self.name}: expected one of {list(self.values)}, but got {value!r}")
        if self.at_least is None and self.at_most is None:
            return
        low = -math.inf if self.at_least is None else self.at_least
        high = math.inf if self.at_most is None else self.at_most
        if not isinstance(value, int) or value < low:
            raise PlanError(f"axis {self.name}: expected an integer of at least {low:,}, but got {value!r}")
        if value > high:
            raise PlanError(f"axis {self.name}: expected an integer of at most {high:,}, but got {value!r}")


class Shape(msgspec.Struct, frozen=True):
    """A named choice of axis values, such as q6: rows=6; what `audit run --shape` takes."""

    name: str
    fixed: dict[str, AxisValue] = {}


class Case(msgspec.Struct, frozen=True):
    """One audit case: a shape at given axis values, with generated inputs (seed) or captured ones."""

    shape: str
    operator: str
    axes: dict[str, AxisValue]
    seed: int = 0
    capture: str | None = None

    def __getattr__(self, name: str) -> Any:
        """Axis values read as attributes: `case.rows`."""
        try:
            return self.axes[name]
        except KeyError:
            raise AttributeError(
                f"case {self.id}: expected one of the axes {sorted(self.axes)}, but got {name!r}"
            ) from None

    @property
    def id(self) -> str:
        """The stable name of the case: shape, origin of the inputs, axis values."""
        values = ",".join(f"{name}={value}" for name, value in self.axes.items())
        return f"{self.shape}/{self.capture or f'seed{self.seed}'}/{values}"

    def rng(self) -> np.random.Generator:
        """A generator seeded by the whole identity of the case, so that no case depends on another."""
        digest = hashlib.sha256(self.id.encode()).digest()
        return np.random.default_rng(int.from_bytes(digest[:16], "little"))


class Buffer(msgspec.Struct, frozen=True):
    """One array in device memory.

    `dims` names the dimensions, in C order: each word is an axis of the case, or `name=size`. `offset` shifts
    the first element by that many bytes from the natural alignment. `behind` are the bytes that lie directly
    behind the data in a guarded arena: a trap for a kernel that reads one element too many.
    """

    name: str
    dtype: str
    dims: str
    role: Role
    offset: int = 0
    behind: bytes = b""

    def extents(self, case: Case) -> tuple[tuple[str, int], ...]:
        """(name, size) of each dimension; ProjectError where a size is neither given nor an axis."""
        extents = []
        for word in self.dims.split():
            name, _, size = word.partition("=")
            value = size or case.axes.get(name)
            try:
                extents.append((name, int(value)))  # type: ignore[arg-type]
            except (TypeError, ValueError):
                raise ProjectError(
                    f"buffer {self.name}: dimension {word!r} must be an integer axis of the case "
                    f"({', '.join(case.axes)}) or be written name=size"
                ) from None
        return tuple(extents)

    def dims_of(self, case: Case) -> tuple[str, ...]:
        """The names of the dimensions."""
        return tuple(name for name, _ in self.extents(case))

    def shape(self, case: Case) -> tuple[int, ...]:
        """The sizes of the dimensions."""
        return tuple(size for _, size in self.extents(case))

    def numpy_dtype(self) -> np.dtype[Any]:
        """The numpy dtype that stores an element (E4M3 as one unsigned byte)."""
        if self.dtype not in DTYPES:
            raise ProjectError(f"buffer {self.name}: expected a dtype of {list(DTYPES)}, but got {self.dtype!r}")
        return DTYPES[self.dtype]

    def nbytes(self, case: Case) -> int:
        """Size of the data in bytes."""
        return math.prod(self.shape(case)) * self.numpy_dtype().itemsize


@dataclass(frozen=True)
class At:
    """A launch argument: the address `elements` past the start of a buffer."""

    buffer: str
    elements: int


Arg: TypeAlias = str | int | float | np.generic | At
"""A buffer's or scalar input's name, a Python int (i32) or float (f32), a numpy scalar of its own type, or At."""


@dataclass(frozen=True)
class Launch:
    """One kernel launch, as pure data. `entry` is a C++ expression: `softmax` or `splits<6, 256>`."""

    entry: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int
    args: tuple[Arg, ...]


class Source(msgspec.Struct, frozen=True):
    """A CUDA C++ file, relative to the project's folder, and the macros it is built with."""

    path: str
    defines: dict[str, str] = {}


@dataclass(frozen=True)
class Variant:
    """One implementation. With a parent, every byte that the parent writes must be written alike."""

    name: str
    code: Source
    launches: Callable[[Case], Sequence[Launch]]
    parent: str | None = None
    status: Status = "experimental"
    note: str = ""


@dataclass(frozen=True)
class Reference:
    """What the result should be: `compute(case, inputs)` gives named arrays, of FP64 or better."""

    name: str
    compute: Callable[[Case, Inputs], Mapping[str, Array]]


class CapturedInputs(Protocol):
    """What an operator sees of a capture: its arrays and its scalars, by name."""

    @property
    def arrays(self) -> Mapping[str, Array]: ...
    @property
    def scales(self) -> Mapping[str, float]: ...


def live_and_restore(_case: Case, _inputs: Inputs) -> Mapping[str, Inputs]:
    """The default steps: run, then run again on freshly poisoned buffers; the bytes must be the same."""
    return {"live": {}, "restore": {}}


def written_everywhere(_case: Case, _inputs: Inputs) -> Mapping[str, Array]:
    """The default written region: every element of every output and workspace."""
    return {}


@dataclass(frozen=True)
class Operator:
    """What is computed, with its buffers and its contract.

    buffers(case)             every buffer, in any order
    inputs(case, rng)         arrays for the `in` buffers, numpy scalars for launch arguments
    from_capture(case, c)     the same, from captured arrays; needed for cases with a capture
    admit_inputs(case, x)     raises InputError where inputs leave the contract's domain
    steps(case, inputs)       step -> inputs that change; `restore` must reproduce the bytes of `live`
    written(case, inputs)     buffer -> bool mask (broadcast to the buffer) of the elements that must be
                              written; all others must keep their poison. Unnamed buffers: everywhere
    derived                   name -> f(case, inputs, outputs): values computed from the audited workspace
    measured                  output or derived name -> the reference's array that it is measured against
    bounds                    what the error against the references may be
    plan                      shape name -> axis values of each case of the default plan; "" for all others
    """

    name: str
    axes: Sequence[Axis]
    buffers: Callable[[Case], Sequence[Buffer]]
    inputs: Callable[[Case, np.random.Generator], Inputs]
    variants: Sequence[Variant]
    references: Sequence[Reference] = ()
    bounds: Sequence[Bound] = ()
    shapes: Sequence[Shape] = ()
    plan: Mapping[str, Sequence[Mapping[str, AxisValue]]] = field(default_factory=dict)
    captures: Mapping[str, Sequence[str]] = field(default_factory=dict)
    capture_axes: Callable[[CapturedInputs], Mapping[str, AxisValue]] | None = None
    from_capture: Callable[[Case, CapturedInputs], Inputs] | None = None
    admit_inputs: Callable[[Case, Inputs], None] | None = None
    steps: Callable[[Case, Inputs], Mapping[str, Inputs]] = live_and_restore
    written: Callable[[Case, Inputs], Mapping[str, Array]] = written_everywhere
    derived: Mapping[str, Callable[[Case, Inputs, Mapping[str, Array]], Array]] = field(default_factory=dict)
    measured: Mapping[str, str] = field(default_factory=dict)

    def variant(self, name: str) -> Variant:
        """The variant of that name, or PlanError."""
        for variant in self.variants:
            if variant.name == name:
                return variant
        raise PlanError(
            f"operator {self.name}: expected a variant of {[v.name for v in self.variants]}, but got {name!r}"
        )

    def case(self, shape: Shape, axes: Mapping[str, AxisValue], seed: int = 0, capture: str | None = None) -> Case:
        """A case with every axis set: the shape's values, then those given, then the defaults."""
        known = {axis.name for axis in self.axes}
        for name in (*shape.fixed, *axes):
            if name not in known:
                raise PlanError(f"operator {self.name}: expected an axis of {sorted(known)}, but got {name!r}")
            if name in axes and axes[name] != shape.fixed.get(name, axes[name]):
                raise PlanError(f"shape {shape.name} means {name}={shape.fixed[name]}, but got {name}={axes[name]}")
        values = {axis.name: axes.get(axis.name, shape.fixed.get(axis.name, axis.default)) for axis in self.axes}
        for axis in self.axes:
            axis.admit(values[axis.name])
        return Case(shape.name, self.name, values, seed, capture)
