"""`audit retain`: keep records, small enough for a repository."""

from __future__ import annotations

from pathlib import Path

import click

from audit.cli import options
from audit.cli.exit_codes import FINDINGS, PASS
from audit.cli.terminal import echo
from audit.project import find_project
from audit.records.retain import retain
from audit.records.verify import find_records, verify


@click.command(name="retain")
@click.argument("paths", type=click.Path(path_type=Path, exists=True), nargs=-1, required=True)
@click.option(
    "--into",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    required=True,
    help="Copy the records into this folder.",
)
@options.PROJECT
def command(paths: tuple[Path, ...], into: Path, project_folder: Path) -> None:
    """Copy each record at or below PATHS into a folder, compressed.

    A record that was altered or contradicts itself is refused, and the exit code is 1. A record of a failed run is
    kept. The originals stay.
    """
    project = find_project(project_folder)
    refused = False
    for home in (home for path in paths for home in find_records(path)):
        verification = verify(home, project)
        if verification.sound:
            echo(str(retain(home, into)))
        else:
            refused = True
            echo(f"not kept: {home}: {verification.describe()}", err=True)
    raise click.exceptions.Exit(FINDINGS if refused else PASS)
