"""Which shapes `--shape` means, and whether `--variant` names variants of them."""

from __future__ import annotations

from collections.abc import Sequence

from audit.cli.suggestion import expected_one_of
from audit.errors import PlanError
from audit.project import Project

ALL = "all"


def chosen_shape(project: Project, name: str | None) -> str:
    """The shape of that name; without a name the project's only one. PlanError lists the shapes."""
    shapes = list(project.shapes())
    if name is None:
        if len(shapes) > 1:
            raise PlanError(f"--shape: expected one of {', '.join(shapes)}, but none was given; name one")
        return shapes[0]
    if name not in shapes:
        raise PlanError(f"--shape: {expected_one_of(shapes, name)}")
    return name


def chosen_shapes(project: Project, name: str | None) -> tuple[str, ...]:
    """The same for a command that takes `all`, which means every shape unless the project has one of that name."""
    shapes = list(project.shapes())
    if name == ALL and ALL not in shapes:
        return tuple(shapes)
    if name is None and len(shapes) > 1:
        raise PlanError(
            f"--shape: expected one of {', '.join(shapes)}, or `{ALL}` for each of them, but none was given"
        )
    return (chosen_shape(project, name),)


def require_variants(project: Project, shape: str, names: Sequence[str]) -> None:
    """PlanError for a name that is no variant of the shape's operator."""
    operator = project.shape(shape)[0]
    known = [variant.name for variant in operator.variants]
    for name in names:
        if name not in known:
            raise PlanError(f"--variant (operator {operator.name}): {expected_one_of(known, name)}")
