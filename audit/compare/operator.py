"""An operator of two kernels: what `audit compare` runs, in the words of a declaration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from audit.compare.arguments import Room, buffers_for, extents, fitted, scalar_for
from audit.compare.hooks import Hooks, Values
from audit.compare.signature import Kernel, kernel_named
from audit.errors import PlanError, ProjectError
from audit.formats import decode_e4m3
from audit.spec import Arg, Array, Buffer, Case, Inputs, Launch, Operator, Reference, Source, Variant

OLD, NEW = "old", "new"


class Side(msgspec.Struct, frozen=True):
    """One of the two kernels: where it is, and how it is launched. Words are as the command line gives them."""

    name: str
    path: str  # relative to the root
    entry: str
    grid: tuple[str, ...] = ()
    block: tuple[str, ...] = ()
    shared: str = ""
    defines: dict[str, str] = {}


class Comparison(msgspec.Struct, frozen=True):
    """Everything that `audit compare` is given."""

    root: Path
    old: Side
    new: Side
    hooks: Hooks
    outputs: dict[str, Room] = {}
    workspaces: dict[str, Room] = {}


def compared(order: Comparison) -> Operator:
    """The operator, whose variant `new` has the parent `old`.

    Raises PlanError that names everything that the sources and the user's file do not say.
    """
    kernels = {side.name: _kernel(order, side) for side in (order.old, order.new)}
    made: dict[str, Values] = {}

    def values(case: Case) -> Values:
        if case.id not in made:
            made[case.id] = order.hooks.make(case.rng())
        return made[case.id]

    def buffers(case: Case) -> list[Buffer]:
        return _buffers(order, kernels, values(case))[0]

    def inputs(case: Case, _rng: np.random.Generator) -> Inputs:
        given, arrays = values(case), {}
        for buffer in buffers(case):
            if buffer.role in ("in", "inout"):
                arrays[buffer.name] = fitted(buffer, given[buffer.name])
        return arrays

    operator = Operator(
        _operator_name(kernels),
        axes=(),
        buffers=buffers,
        inputs=inputs,
        variants=[
            _variant(order, order.old, kernels[OLD], values, None),
            _variant(order, order.new, kernels[NEW], values, OLD),
        ],
        references=_references(order, buffers, values),
    )
    sample = values(Case(operator.name, operator.name, {}, seed=1))
    _require_everything(order, kernels, sample)
    if operator.references:
        written = [one.name for one in _buffers(order, kernels, sample)[0] if one.role in ("out", "inout")]
        return _measuring(operator, written)
    return operator


def _operator_name(kernels: Mapping[str, Kernel]) -> str:
    return kernels[NEW].name


def _measuring(operator: Operator, names: Sequence[str]) -> Operator:
    from dataclasses import replace

    return replace(operator, measured={name: name for name in names})


def _kernel(order: Comparison, side: Side) -> Kernel:
    path = order.root / side.path
    try:
        text = path.read_bytes().decode("utf-8-sig", errors="replace")
    except OSError as error:
        raise ProjectError(f"{path}: cannot be read ({error.strerror})") from None
    return kernel_named(text, side.entry, side.path)


def _buffers(order: Comparison, kernels: Mapping[str, Kernel], values: Values) -> tuple[list[Buffer], list[str]]:
    outputs = {**_told(order.hooks, values), **order.outputs}
    return buffers_for(list(kernels.values()), values, outputs, order.workspaces)


def _told(hooks: Hooks, values: Values) -> dict[str, Room]:
    """The sizes that outputs() returns: an array or a shape by name."""
    found = hooks.outputs(values) if hooks.outputs else {}
    return {
        name: Room(name, tuple(int(size) for size in (one if isinstance(one, tuple) else np.shape(one))) or (1,))
        for name, one in found.items()
    }


def _require_everything(order: Comparison, kernels: Mapping[str, Kernel], values: Values) -> None:
    missing = _buffers(order, kernels, values)[1]
    for side in (order.old, order.new):
        for one in kernels[side.name].parameters:
            if not one.pointer and one.name not in values:
                missing.append(f"what is {one.name} ({one.type})? return a value from inputs()")
            elif not one.pointer and scalar_for(one, values[one.name]) is None:
                missing.append(f"{one.name}: a {one.type} cannot be passed by value; give a number")
        launch = _launch_values(order, side, values)
        for key in ("grid", "block"):
            if not getattr(side, key) and key not in launch:
                option = f"--{'new-' if side.name == NEW and order.hooks.new_launch else ''}{key}"
                missing.append(f"how is {side.name} launched? {option} N[,N,N], or launch() in {order.hooks.file.name}")
    if missing:
        listed = "".join(f"\n  {one}" for one in dict.fromkeys(missing))
        raise PlanError(f"the sources do not say everything; still needed:{listed}")


def _launch_values(order: Comparison, side: Side, values: Values) -> Values:
    hook = order.hooks.new_launch if side.name == NEW and order.hooks.new_launch else order.hooks.launch
    return hook(values) if hook else {}


def _variant(
    order: Comparison, side: Side, kernel: Kernel, values: Callable[[Case], Values], parent: str | None
) -> Variant:
    def launches(case: Case) -> list[Launch]:
        given = values(case)
        said = _launch_values(order, side, given)
        grid = extents("--grid", side.grid, given) if side.grid else _tuple(said["grid"])
        block = extents("--block", side.block, given) if side.block else _tuple(said["block"])
        shared = extents("--shared", (side.shared,), given)[0] if side.shared else int(said.get("shared_bytes", 0))
        args: list[Arg] = []
        for one in kernel.parameters:
            value = given.get(one.name)
            if one.pointer:
                args.append(None if one.name in given and value is None else one.name)
            else:
                args.append(scalar_for(one, value))
        return [Launch(side.entry or kernel.name, grid, block, shared, tuple(args))]

    return Variant(side.name, Source(side.path, side.defines), launches, parent=parent)


def _tuple(extent: Any) -> tuple[int, ...]:
    return tuple(map(int, extent)) if isinstance(extent, tuple | list) else (int(extent),)


def _references(
    order: Comparison, buffers: Callable[[Case], Sequence[Buffer]], values: Callable[[Case], Values]
) -> list[Reference]:
    reference = order.hooks.reference
    if reference is None:
        return []

    def compute(case: Case, inputs: Inputs) -> Mapping[str, Array]:
        given = dict(values(case))
        for buffer in buffers(case):
            if buffer.name in inputs:
                array = np.asarray(inputs[buffer.name])
                array = decode_e4m3(array) if buffer.dtype == "e4m3" else array
                given[buffer.name] = array.astype(np.float64) if array.dtype.kind == "f" else array
        return {name: np.asarray(array, np.float64) for name, array in reference(given).items()}

    return [Reference("fp64", compute)]
