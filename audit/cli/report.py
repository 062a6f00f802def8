"""`audit report`: evidence of an audit, a bench or sanitizers as one HTML page."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable
from pathlib import Path

import click

from audit.bench import curve
from audit.bench import store as bench_store
from audit.errors import EvidenceError
from audit.evidence import folder as folders
from audit.evidence import store
from audit.project import find
from audit.report import render, render_bench, render_sanitize
from audit.sanitize import store as sanitize_store

_RECORDS = (store.EVIDENCE, bench_store.BENCH, sanitize_store.SANITIZE)


@click.command(name="report")
@click.argument("evidence", type=click.Path(path_type=Path), required=False)
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Write the page there.")
@click.option("--open", "show", is_flag=True, help="Open the page in a browser.")
@click.option("--project", "folder", type=click.Path(path_type=Path), default=Path(), help="The project's folder.")
def command(evidence: Path | None, output: Path | None, show: bool, folder: Path) -> None:
    """Render EVIDENCE (a folder that run, bench or sanitize wrote; the newest one if omitted) as one offline page.

    Without --output the page that the run itself wrote is named; with it a new one is rendered.
    """
    if evidence is None:
        project = find(folder)
        evidence = folders.latest(project.root / project.settings.runs, *_RECORDS)
    home = evidence.parent if evidence.name in _RECORDS else evidence
    rendered = _load(home)
    page = output or home / folders.REPORT
    if output is not None:
        try:
            output.write_text(rendered(), encoding="utf-8")
        except OSError as error:
            raise EvidenceError(f"{output}: the page cannot be written there ({error.strerror})") from None
    click.echo(str(page))
    if show:
        webbrowser.open(page.resolve().as_uri())


def _load(home: Path) -> Callable[[], str]:
    """Verified evidence, ready to be rendered; which record lies there says which kind it is."""
    if (home / sanitize_store.SANITIZE).is_file():
        session = sanitize_store.load(home)
        return lambda: render_sanitize(session)
    if not (home / bench_store.BENCH).is_file():
        record = store.load(home)
        return lambda: render(record)
    bench = bench_store.load(home)
    compared = curve.compare(bench.curve, bench.evidence) if bench.curve else None
    return lambda: render_bench(bench.evidence, compared)
