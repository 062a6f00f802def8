"""Along which axis a bench times, and at which values: what the operator declares, changed by options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from audit.declaration import buffers_of
from audit.errors import PlanError
from audit.spec import AxisValue, Bench, Case, Operator, Shape

_BYTES = 8 * 2**30
"""A working set that nobody declared has fewer layers where they would take more memory than this."""
_LAYERS = 16


def bench_along(operator: Operator, shape: Shape, axes: Mapping[str, Sequence[AxisValue]]) -> Bench:
    """The bench of a shape with the values that `--axis` gives: an axis with several values is timed at each.

    An operator that declares no bench is timed along its first integer axis, at the value of its default case. Raises
    PlanError where no axis can be timed along, or several have several values.
    """
    declared = operator.bench or _undeclared(operator, shape)
    several = [name for name, values in axes.items() if len({*values}) > 1]
    if len(several) > 1:
        raise PlanError(f"--axis: expected several values of one axis, but got them of {' and '.join(several)}")
    if several and several[0] != declared.axis:  # the hooks are for the declared axis
        declared = replace(declared, axis=several[0], values=(), at=None, moved=None)
    fixed = {name: values[0] for name, values in axes.items() if name != declared.axis}
    values = tuple(map(_whole(declared.axis), axes.get(declared.axis, declared.values)))
    others = {name: value for name, value in {**declared.axes, **fixed}.items() if name != declared.axis}
    return replace(declared, axes=others, values=tuple(sorted({*values})))


def working_sets(operator: Operator, bench: Bench) -> dict[int, int]:
    """Value to time at -> value for which its working set is made."""
    if bench.at is None:
        return {value: value for value in bench.values}
    declared = operator.bench.values if operator.bench else ()
    greatest = max(*declared, *bench.values)
    return dict.fromkeys(bench.values, greatest)


def case_at(operator: Operator, shape: Shape, bench: Bench, value: int, seed: int = 0) -> Case:
    """The case of one layer where the bench's axis has a value."""
    return operator.case(shape, {**bench.axes, bench.axis: value}, seed=seed)


def bytes_of_all(operator: Operator, case: Case) -> int:
    """The bytes that one layer moves at least where nobody says so: each input once, each output once."""
    passes = {"in": 1, "out": 1, "inout": 2}
    return sum(passes.get(buffer.role, 0) * buffer.nbytes(case) for buffer in buffers_of(operator, case))


def output_of(operator: Operator, bench: Bench, case: Case) -> str:
    """The name of the output whose error is measured."""
    outputs = [buffer.name for buffer in buffers_of(operator, case) if buffer.role in ("out", "inout")]
    if bench.output and bench.output not in outputs:
        raise PlanError(f"operator {operator.name}: bench.output: expected one of {outputs}, but got {bench.output!r}")
    return bench.output or next(iter(outputs), "")


def _undeclared(operator: Operator, shape: Shape) -> Bench:
    case = operator.case(shape, {})
    for axis in operator.axes:
        value = case.axes[axis.name]
        if isinstance(value, int):
            size = sum(buffer.nbytes(case) for buffer in buffers_of(operator, case))
            layers = max(1, min(_LAYERS, _BYTES // max(1, 3 * size)))
            return Bench(axis.name, (value,), layers=layers)
    raise PlanError(f"operator {operator.name}: expected an axis with integers to time along, but it declares none")


def _whole(axis: str) -> Callable[[AxisValue], int]:
    def whole(value: AxisValue) -> int:
        if not isinstance(value, int):
            raise PlanError(f"--axis {axis}: expected integers to time at, but got {value!r}")
        return value

    return whole
