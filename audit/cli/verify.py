"""`audit verify`: is evidence still what it was, and still about what stands here?"""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from audit.cli.main import FINDINGS, INCONCLUSIVE, PASS
from audit.gate.formats.text import printable
from audit.project import find as find_project
from audit.records.verify import Verified, find, verify

_WORD = {"pass": "ok", "fail": "FAIL", "inconclusive": "inconclusive"}


@click.command(name="verify")
@click.argument("paths", type=click.Path(path_type=Path, exists=True), nargs=-1, required=True)
@click.option("--project", "folder", type=click.Path(path_type=Path), default=Path(), help="The project's folder.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
def command(paths: tuple[Path, ...], folder: Path, as_json: bool) -> None:
    """Verify each folder of evidence at or below PATHS: whole, unaltered, in agreement with itself, and of the sources
    and captures that the project has now.

    Exit 0 if all of it is, 1 if something was altered or contradicts itself, 3 if something is stale (told: which
    files) or not whole.
    """
    project = find_project(folder)
    looked = [verify(home, project) for path in paths for home in find(path)]
    if as_json:
        click.echo(
            msgspec.json.encode({"verdict": _verdict(looked), "evidence": [_json(one) for one in looked]}).decode()
        )
    else:
        for one in looked:
            click.echo(f"{_WORD[one.verdict]:12} {one.path}" + ("" if one.faults else f": {one.told()}"))
            for fault in one.faults:
                click.echo(f"{'':13}{fault.kind}: {printable(fault.what)}")
    raise click.exceptions.Exit({"pass": PASS, "fail": FINDINGS, "inconclusive": INCONCLUSIVE}[_verdict(looked)])


def _verdict(looked: list[Verified]) -> str:
    verdicts = {one.verdict for one in looked}
    return next(verdict for verdict in ("fail", "inconclusive", "pass") if verdict in verdicts)


def _json(one: Verified) -> dict[str, object]:
    return {"path": str(one.path), "verdict": one.verdict, "faults": one.faults, "stale": one.stale}
