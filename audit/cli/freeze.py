"""`audit freeze`: keep a variant's program, so that it can be a parent when its source is gone."""

from __future__ import annotations

from pathlib import Path

import click

from audit import plan as planning
from audit.cli import completion, options
from audit.cli.shapes import chosen_shape, require_variants
from audit.cli.terminal import echo
from audit.compile.frozen import freeze_build
from audit.compile.host import build_host
from audit.compile.source_words import nvcc_words
from audit.declaration import launches_of
from audit.errors import PlanError
from audit.project import find_project
from audit.records.folder import require_outside
from audit.spec import Binary, Source


@click.command(name="freeze")
@click.argument("folder", type=click.Path(path_type=Path))
@options.SHAPE
@click.option(
    "--variant",
    metavar="NAME",
    required=True,
    shell_complete=completion.variants,
    help="Keep the program of this variant.",
)
@click.option(
    "--arch",
    metavar="ARCH",
    default="sm_90",
    show_default=True,
    help="Model the tensor cores of this architecture.",
)
@options.PROJECT
def command(folder: Path, shape: str | None, variant: str, arch: str, project_folder: Path) -> None:
    """Build a variant with every kernel that a shape's full plan launches, and copy the program into FOLDER.

    A project then names it as `Variant(..., code=Binary("FOLDER"))`.
    """
    require_outside(folder, "another folder")
    project = find_project(project_folder)
    name = chosen_shape(project, shape)
    require_variants(project, name, (variant,))
    plan = planning.make_plan(project, name, planning.Selection(full=True), arch=arch, time_limit=1)
    chosen = project.operators[plan.operator].variant(variant)
    if not isinstance(chosen.code, Source):
        kind = "the frozen program" if isinstance(chosen.code, Binary) else "the compiled GPU code"
        raise PlanError(
            f"--variant: expected a variant with a source, but {variant} is {kind} {chosen.code.path}; "
            "copy that instead"
        )
    entries = tuple(dict.fromkeys(launch.entry for case in plan.cases for launch in launches_of(chosen, case)))
    source = project.root / chosen.code.path
    code = chosen.code
    build = build_host(
        project.root, source, entries, arch=arch, defines=code.defines, words=nvcc_words(code), also=code.also
    )
    freeze_build(build, folder)
    echo(f"{folder}: {variant} with {len(entries)} kernels")
