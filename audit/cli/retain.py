"""`audit retain`: keep evidence, small enough for a repository."""

from __future__ import annotations

from pathlib import Path

import click

from audit.cli.main import FINDINGS
from audit.gate.formats.text import printable
from audit.project import find as find_project
from audit.records.retain import retain
from audit.records.verify import find, verify


@click.command(name="retain")
@click.argument("paths", type=click.Path(path_type=Path, exists=True), nargs=-1, required=True)
@click.option("--into", type=click.Path(path_type=Path), required=True, help="The folder that keeps it.")
@click.option("--project", "folder", type=click.Path(path_type=Path), default=Path(), help="The project's folder.")
def command(paths: tuple[Path, ...], into: Path, folder: Path) -> None:
    """Copy each folder of evidence at or below PATHS into a folder that keeps it, its records compressed.

    What was altered or contradicts itself is not kept, and the exit code is 1; failed evidence is. The originals stay.
    """
    project = find_project(folder)
    refused = False
    for home in (home for path in paths for home in find(path)):
        looked = verify(home, project)
        if looked.sound:
            click.echo(retain(home, into))
        else:
            refused = True
            click.echo(f"not kept: {home}: {printable(looked.told())}", err=True)
    raise click.exceptions.Exit(FINDINGS if refused else 0)
