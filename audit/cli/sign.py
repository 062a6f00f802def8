"""`audit sign`: sign records with a key file."""

from __future__ import annotations

from pathlib import Path

import click

from audit.cli import options
from audit.cli.exit_codes import FINDINGS, PASS
from audit.cli.terminal import echo
from audit.project import find_project
from audit.records.signature import is_signed, sign
from audit.records.verify import find_records, verify


@click.command(name="sign")
@click.argument("paths", type=click.Path(path_type=Path, exists=True), nargs=-1, required=True)
@click.option(
    "--key",
    metavar="FILE",
    type=click.Path(path_type=Path),
    required=True,
    help="Sign with this private SSH key (`ssh-keygen -t ed25519 -f FILE` makes one).",
)
@options.PROJECT
def command(paths: tuple[Path, ...], key: Path, project_folder: Path) -> None:
    """Sign each record at or below PATHS with a key file.

    The signature is written beside the record's statement, which contains the digests of its files. `audit verify
    --signed-by` checks it. A record that has a signature keeps it. One that is altered, incomplete or contradicts
    itself is not signed, and the exit code is 1.
    """
    project = find_project(project_folder)
    refused = False
    for home in (home for path in paths for home in find_records(path)):
        verification = verify(home, project)
        if not verification.sound:
            refused = True
            echo(f"not signed: {home}: {verification.describe()}", err=True)
        elif is_signed(home):
            echo(f"has a signature: {home}", err=True)
        else:
            echo(str(sign(home, key)))
    raise click.exceptions.Exit(FINDINGS if refused else PASS)
