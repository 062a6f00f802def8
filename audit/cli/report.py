"""`audit report`: evidence as one HTML page."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import click

from audit.errors import EvidenceError
from audit.evidence import store
from audit.project import find
from audit.report import render


@click.command(name="report")
@click.argument("evidence", type=click.Path(path_type=Path), required=False)
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Write the page there.")
@click.option("--open", "show", is_flag=True, help="Open the page in a browser.")
@click.option("--project", "folder", type=click.Path(path_type=Path), default=Path(), help="The project's folder.")
def command(evidence: Path | None, output: Path | None, show: bool, folder: Path) -> None:
    """Render EVIDENCE (a folder that `audit run` wrote; the newest one if omitted) as one offline HTML page.

    Without --output the page that the run itself wrote is named; with it a new one is rendered.
    """
    if evidence is None:
        project = find(folder)
        evidence = store.latest(project.root / project.settings.runs)
    record = store.load(evidence)
    home = evidence.parent if evidence.name == store.EVIDENCE else evidence
    page = output or home / store.REPORT
    if output is not None:
        try:
            output.write_text(render(record), encoding="utf-8")
        except OSError as error:
            raise EvidenceError(f"{output}: the page cannot be written there ({error.strerror})") from None
    click.echo(str(page))
    if show:
        webbrowser.open(page.resolve().as_uri())
