"""The plan of a shape whose project declares no lines for it, and the plan that `Families` stands for.

The default case runs with every input family that its size permits, since a family is one more step of a case. For axes
that declare values or a range, a few further cases have sizes at which kernels go wrong: one element, a warp, a last
block that is partial.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from audit.declaration import buffers_of, launches_of
from audit.errors import AuditError
from audit.families import BY_NAME_ONLY, FAMILIES
from audit.spec import Axis, AxisValue, Case, Families, Line, Operator, Shape

SECONDS = 5.0
"""What the references of all families of a case may take in a default plan."""
_WORK = 1 << 24
"""Elements, over all steps of a case that are families, that take about a second on a CPU."""
_PREFERRED = (33, 1, 257, 31, 1025, 65, 2, 129, 32, 127, 63, 255, 1023)
_MOST_SIZES, _MOST_CASES = 3, 6
_DEFAULT = Families()


def declared_lines(operator: Operator, shape: Shape) -> Sequence[Line] | None:
    """The lines that the project declares for a shape; None where it declares none."""
    if isinstance(operator.plan, Families):
        return lines(operator, shape)
    return operator.plan.get(shape.name, operator.plan.get(""))


def lines(operator: Operator, shape: Shape) -> list[Line]:
    """The default case with its families, and a line for each further size."""
    chosen = operator.plan if isinstance(operator.plan, Families) else None
    case = operator.case(shape, {}, seed=1)
    further = names(chosen) if chosen else ()
    sized = [Line(axes, families=further) for axes in _sizes(operator, shape, case, chosen or _DEFAULT)]
    return [Line(families=further if chosen else families_of(operator, shape, case)), *sized]


def names(families: Families) -> tuple[str, ...]:
    """The families that a `Families` means, in order."""
    usual = [name for name in FAMILIES if name not in BY_NAME_ONLY]
    draws = [f"seed{number}" for number in range(2, families.seeds + 1)]
    wanted = [*families.names, *draws] if families.names else [*usual[:3], *draws, *usual[3:]]
    return tuple(dict.fromkeys(name for name in wanted if name not in families.without))


def families_of(operator: Operator, shape: Shape, case: Case) -> tuple[str, ...]:
    """The families of a generated case that no line describes; none where the project has lines for its shape."""
    if isinstance(operator.plan, Families):
        return names(operator.plan)
    if declared_lines(operator, shape) is not None:
        return ()
    return names(_DEFAULT)[: affordable(operator, case)]


def reduction(operator: Operator, case: Case) -> str:
    """Why a case has fewer families than the default; empty where it has all, or none by intention."""
    all_names = names(_DEFAULT)
    count = affordable(operator, case)
    if count >= len(all_names) or case.probe or case.capture:
        return ""
    return f"the case is large: it runs {count} of {len(all_names)} input families; --family names others"


def affordable(operator: Operator, case: Case) -> int:
    """How many families a case may have: by the elements of its buffers, or the product of its axes where that is
    more, as it is for a product of matrices."""
    try:
        elements = sum(math.prod(buffer.shape(case)) for buffer in buffers_of(operator, case))
    except AuditError:
        return 0  # whoever runs the case sees the error
    sizes = [value for value in case.axes.values() if isinstance(value, int) and value > 0]
    return int(_WORK // max(1, elements, math.prod(sizes)))


def _sizes(operator: Operator, shape: Shape, case: Case, families: Families) -> Iterator[Mapping[str, AxisValue]]:
    """The axis values of each further case."""
    count = 0
    for axis in operator.axes:
        if axis.name in shape.fixed or families.sizes is False:
            continue
        if isinstance(families.sizes, Mapping):
            wanted, most = list(families.sizes.get(axis.name, ())), math.inf
        else:
            wanted, most = list(_of(axis)), float(_MOST_SIZES)
        found = 0
        for value in wanted:
            if value == case.axes[axis.name] or found >= most or (count >= _MOST_CASES and most < math.inf):
                continue
            if isinstance(families.sizes, Mapping) or _runs(operator, shape, {axis.name: value}):
                found, count = found + 1, count + 1
                yield {axis.name: value}


def _of(axis: Axis) -> Iterator[AxisValue]:
    """The values of an axis that are worth a case, the most useful first; none where it declares neither values nor a
    range."""
    if axis.values:
        yield from dict.fromkeys((axis.values[-1], axis.values[0], *axis.values))
        return
    if axis.at_least is None and axis.at_most is None and axis.multiple_of is None:
        return
    step = axis.multiple_of or 1
    least = max(1, axis.at_least or 1)
    candidates = [-(-least // step) * step, *(size * step if step > 1 else size for size in _PREFERRED)]
    for size in dict.fromkeys(candidates):
        if size >= least and (axis.at_most is None or size <= axis.at_most):
            yield size


def _runs(operator: Operator, shape: Shape, axes: Mapping[str, AxisValue]) -> bool:
    """Whether the declaration resolves at these values, and the case is no larger than a few seconds allow."""
    try:
        case = operator.case(shape, axes, seed=1)
        for variant in operator.variants:
            launches_of(variant, case)
        return affordable(operator, case) > 0
    except AuditError:
        return False
