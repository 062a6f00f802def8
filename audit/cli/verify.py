"""`audit verify`: are records complete, unaltered, and of the sources that the project has now?"""

from __future__ import annotations

from pathlib import Path

import click

from audit.checks.result import worst
from audit.cli import options
from audit.cli.exit_codes import CODES
from audit.cli.terminal import echo, echo_json
from audit.project import find_project
from audit.records.verify import Verification, find_records, verify

_WORD = {"pass": "ok", "fail": "FAIL", "inconclusive": "inconclusive"}


@click.command(name="verify")
@click.argument("paths", type=click.Path(path_type=Path, exists=True), nargs=-1, required=True)
@options.PROJECT
@options.JSON
def command(paths: tuple[Path, ...], project_folder: Path, as_json: bool) -> None:
    """Check each record at or below PATHS: complete, unaltered, in agreement with itself, and of the sources and
    captures that the project has now.

    Exit 0 if all records are, 1 if one was altered or contradicts itself, 3 if one is incomplete or stale (the changed
    files are named).
    """
    project = find_project(project_folder)
    verifications = [verify(home, project) for path in paths for home in find_records(path)]
    verdict = worst([one.verdict for one in verifications])
    if as_json:
        found = {"verdict": verdict, "evidence": [_json(one) for one in verifications]}
        echo_json(found)
    else:
        for one in verifications:
            echo(_text(one))
    raise click.exceptions.Exit(CODES[verdict])


def _text(one: Verification) -> str:
    lines = [f"{_WORD[one.verdict]:12} {one.path}" + ("" if one.flaws else f": {one.told()}")]
    lines += [f"{'':13}{flaw.kind}: {flaw.what}" for flaw in one.flaws]
    return "\n".join(lines)


def _json(one: Verification) -> dict[str, object]:
    return {"path": str(one.path), "verdict": one.verdict, "flaws": one.flaws, "stale": one.stale}
