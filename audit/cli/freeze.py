"""`audit freeze`: keep a variant's program, so that it can be a parent when its source is gone."""

from __future__ import annotations

from pathlib import Path

import click

from audit import plan as planning
from audit.compile.frozen import freeze
from audit.compile.host import build_host
from audit.errors import PlanError
from audit.project import find
from audit.spec import Binary


@click.command(name="freeze")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--shape", required=True, help="Its default plan says which kernels the program must hold.")
@click.option("--variant", required=True, help="The variant to keep.")
@click.option("--arch", default="sm_90", show_default=True, help="Whose tensor cores the program models.")
@click.option("--project", "home", type=click.Path(path_type=Path), default=Path(), help="The project's folder.")
def command(folder: Path, shape: str, variant: str, arch: str, home: Path) -> None:
    """Build a variant with every kernel of a shape's default plan and copy the program into FOLDER.

    A project names it as `Variant(..., code=Binary("FOLDER"))`.
    """
    project = find(home)
    plan = planning.make(project, shape, planning.Selection(full=True), arch=arch, time_limit=1)
    chosen = project.operators[plan.operator].variant(variant)
    if isinstance(chosen.code, Binary):
        raise PlanError(
            f"--variant: expected one that has a source, but {variant} is {chosen.code.path}, frozen already"
        )
    entries = tuple(dict.fromkeys(launch.entry for case in plan.cases for launch in chosen.launches(case)))
    source = project.root / chosen.code.path
    freeze(build_host(project.root, source, entries, arch=arch, defines=chosen.code.defines), folder)
    click.echo(f"{folder}: {variant} with {len(entries)} kernels")
