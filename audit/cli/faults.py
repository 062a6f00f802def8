"""`audit faults`: plant every fault of the catalogue and see it caught."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from audit import faults
from audit.cli.main import FINDINGS, INCONCLUSIVE, PASS
from audit.errors import PlanError, ProjectError
from audit.project import find_project


@click.command(name="faults")
@click.argument("names", nargs=-1)
@click.option("--third", type=int, help="Every third fault only, beginning at this number modulo 3.")
@click.option("--project", "folder", type=click.Path(path_type=Path), default=Path(), help="The project's folder.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
def command(names: tuple[str, ...], third: int | None, folder: Path, as_json: bool) -> None:
    """Plant each fault (or those of NAMES) in a copy of the project, audit it, and print the matrix fault x check.

    Exit 0 if each is caught by the check that its file names and its unpatched twin passes; else 1; 3 if there is none.
    """
    project = find_project(folder)
    if project.settings.faults is None:
        raise ProjectError(f'{project.root}: expected `faults = "FOLDER"` in [tool.kernel-audit]')
    chosen = faults.load_faults(project.root / project.settings.faults)
    known = [fault.name for fault in chosen]
    if unknown := [name for name in names if name not in known]:
        raise PlanError(f"expected names of {known}, but got {unknown}")
    if names:
        chosen = [fault for fault in chosen if fault.name in names]
    if third is not None:
        chosen = faults.third(chosen, third)
    trials = faults.try_all(project, chosen, _say)
    counted = faults.summary(trials)
    if as_json:
        click.echo(msgspec.json.encode({**counted, "trials": trials}).decode())
    elif trials:
        click.echo(faults.matrix(trials))
        click.echo(f"{counted['caught']} of {counted['tried']} caught by the check that is named, twins clean")
    raise click.exceptions.Exit(
        INCONCLUSIVE if not trials else PASS if counted["caught"] == counted["tried"] else FINDINGS
    )


def _say(trial: faults.Trial) -> None:
    state = "caught" if trial.caught else "NOT CAUGHT"
    click.echo(f"{state} {trial.fault.name} ({trial.fault.check}) {trial.seconds} s", err=True)
