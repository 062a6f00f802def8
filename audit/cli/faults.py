"""`audit faults`: plant every fault of the catalogue and check that it is caught."""

from __future__ import annotations

from pathlib import Path

import click

from audit import faults
from audit.cli import options
from audit.cli.exit_codes import FINDINGS, INCONCLUSIVE, PASS
from audit.cli.suggestion import expected_one_of
from audit.cli.terminal import echo, echo_json
from audit.errors import PlanError, ProjectError
from audit.project import find_project


@click.command(name="faults")
@click.argument("names", nargs=-1)
@click.option("--third", metavar="N", type=int, help="Try only every third fault, beginning at N modulo 3.")
@options.PROJECT
@options.JSON
def command(names: tuple[str, ...], third: int | None, project_folder: Path, as_json: bool) -> None:
    """Plant each fault (or those of NAMES) in a copy of the project, audit it, and print the matrix fault x check.

    Exit 0 if each fault is caught by the check that its file names and its unpatched twin passes, 1 if one is not, 3 if
    there are no faults.
    """
    project = find_project(project_folder)
    if project.settings.faults is None:
        raise ProjectError(
            f"{project.root / 'pyproject.toml'}: [tool.kernel-audit]: expected a folder of planted faults, but no key "
            f'`faults` is there; add `faults = "FOLDER"`'
        )
    chosen = faults.load_faults(project.root / project.settings.faults)
    known = [fault.name for fault in chosen]
    for name in names:
        if name not in known:
            raise PlanError(f"NAMES: {expected_one_of(known, name)}")
    if names:
        chosen = [fault for fault in chosen if fault.name in names]
    if third is not None:
        chosen = faults.third(chosen, third)
    trials = faults.try_all(project, chosen, _report)
    counted = faults.trial_counts(trials)
    if as_json:
        echo_json({**counted, "trials": trials})
    elif trials:
        echo(faults.trial_matrix(trials))
        echo(f"{counted['caught']} of {counted['tried']} faults caught by the check that each names, twins clean")
    raise click.exceptions.Exit(
        INCONCLUSIVE if not trials else PASS if counted["caught"] == counted["tried"] else FINDINGS
    )


def _report(trial: faults.Trial) -> None:
    state = "caught" if trial.caught else "NOT CAUGHT"
    echo(f"{state} {trial.fault.name} ({trial.fault.check}) {trial.seconds} s", err=True)
