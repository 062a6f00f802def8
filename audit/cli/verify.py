"""`audit verify`: are records complete, unaltered, and of the sources that the project has now?"""

from __future__ import annotations

from pathlib import Path

import click

from audit.checks.result import worst
from audit.cli import options
from audit.cli.compared_project import is_comparison, project_of_comparison
from audit.cli.exit_codes import CODES
from audit.cli.terminal import echo, echo_json
from audit.errors import EvidenceError, ProjectError
from audit.project import Project, Settings, find_project
from audit.records.kinds import load_record
from audit.records.signature import require_signers
from audit.records.verify import Verification, find_records, verify

_WORD = {"pass": "ok", "fail": "FAIL", "inconclusive": "inconclusive"}


@click.command(name="verify")
@click.argument("paths", type=click.Path(path_type=Path, exists=True), nargs=-1, required=True)
@click.option(
    "--signed-by",
    "signers",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Require a signature by a signer in this file, one a line: `name ssh-ed25519 AAAA...`.",
)
@options.PROJECT
@options.JSON
def command(paths: tuple[Path, ...], signers: Path | None, project_folder: Path, as_json: bool) -> None:
    """Check each record at or below PATHS: complete, unaltered, in agreement with itself, and of the sources and
    captures that the project has now.

    Exit 0 if all records are, 1 if one was altered, contradicts itself or has a wrong signature, 3 if one is
    incomplete, stale (the changed files are named) or, with --signed-by, not signed.
    """
    if signers is not None:
        require_signers(signers)
    homes = [home for path in paths for home in find_records(path)]
    verifications = [verify(home, _project(home, project_folder), signers) for home in homes]
    verdict = worst([one.verdict for one in verifications])
    if as_json:
        found = {"verdict": verdict, "evidence": [_json(one) for one in verifications]}
        echo_json(found)
    else:
        for one in verifications:
            echo(_text(one))
    raise click.exceptions.Exit(CODES[verdict])


def _project(home: Path, folder: Path) -> Project:
    """The project in the folder; a comparison has one of its own, which its record names."""
    try:
        record = load_record(home)
    except EvidenceError:  # `verify` says what is wrong with it, and needs no project to see it
        record = None
    if record is not None and is_comparison(record):
        return project_of_comparison(record, home, folder)
    try:
        return find_project(folder)
    except ProjectError:
        if record is not None:
            raise
        return Project(folder.resolve(), Settings())


def _text(one: Verification) -> str:
    lines = [f"{_WORD[one.verdict]:12} {one.path}" + ("" if one.flaws else f": {one.describe()}")]
    lines += [f"{'':13}signed by {one.signer}"] if one.signer else []
    lines += [f"{'':13}{flaw.kind}: {flaw.what}" for flaw in one.flaws]
    return "\n".join(lines)


def _json(one: Verification) -> dict[str, object]:
    return {"path": str(one.path), "verdict": one.verdict, "flaws": one.flaws, "stale": one.stale, "signer": one.signer}
