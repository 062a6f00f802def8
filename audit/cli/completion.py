"""What a shell completes: the project's own shapes, variants and policies, and nothing outside of a project.

`shapes`, `variants` and `policies` have the signature of click's `shell_complete`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from pathlib import Path

import click

from audit.cli.shapes import ALL
from audit.errors import AuditError
from audit.gate.policy import policy_names
from audit.project import Project, find_project


def shapes(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """The shapes of the project."""
    return _matching(ctx, incomplete, lambda project: project.shapes())


def shapes_or_all(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """The shapes of the project, and the word for all of them."""
    return _matching(ctx, incomplete, lambda project: [*project.shapes(), ALL])


def variants(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """The variants of the operator whose shape is given; without a shape, those of all operators."""

    def names(project: Project) -> Iterable[str]:
        shape = project.shapes().get(ctx.params.get("shape") or "")
        operators = [shape[0]] if shape else project.operators.values()
        return dict.fromkeys(variant.name for operator in operators for variant in operator.variants)

    return _matching(ctx, incomplete, names)


def policies(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """The gate's policies of the project."""
    return _matching(ctx, incomplete, policy_names)


def _matching(ctx: click.Context, incomplete: str, names: Callable[[Project], Iterable[str]]) -> list[str]:
    """Those names that begin with what is typed; none where the project cannot be loaded."""
    try:
        with redirect_stdout(sys.stderr):  # stdout is the shell's; a project's module may print when it is loaded
            found = [*names(find_project(ctx.params.get("project_folder") or Path()))]
    except AuditError:
        return []
    return [name for name in found if name.startswith(incomplete)]
