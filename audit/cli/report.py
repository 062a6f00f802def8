"""`audit report`: evidence of an audit, a bench or sanitizers as one HTML page; and the list of what is retained."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

import click

from audit.bench import curve
from audit.errors import EvidenceError, ProjectError
from audit.project import find
from audit.records import bench_store, packing, sanitize_store
from audit.records import folder as folders
from audit.records import run_store as store
from audit.records.bench import BenchEvidence
from audit.records.run import Evidence
from audit.records.sanitize import SanitizeEvidence
from audit.report import index, pages, render_bench, render_sanitize
from audit.report.project_context import RETAINED, Surroundings, surroundings

Record: TypeAlias = Evidence | BenchEvidence | SanitizeEvidence
_RECORDS = (store.EVIDENCE, bench_store.BENCH, sanitize_store.SANITIZE)


@click.command(name="report")
@click.argument("evidence", type=click.Path(path_type=Path), required=False)
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Write the page there.")
@click.option("--open", "show", is_flag=True, help="Open the page in a browser.")
@click.option("--index", "listing", is_flag=True, help="Write the list of all evidence in EVIDENCE (default: reports).")
@click.option("--project", "folder", type=click.Path(path_type=Path), default=Path(), help="The project's folder.")
def command(evidence: Path | None, output: Path | None, show: bool, listing: bool, folder: Path) -> None:
    """Render EVIDENCE (a folder that run, bench or sanitize wrote; the newest one if omitted) as one offline page.

    Without --output the page that the run itself wrote is named; with it a new one is rendered, and files beside it for
    tables that are too long. With --index, index.html lists the evidence that a folder holds.
    """
    if listing:
        page = _index(evidence, output, folder)
    else:
        home = home_of(evidence) if evidence else _latest(folder)
        rendered = _rendered(home, folder)
        page = output or home / folders.REPORT
        if output is not None:
            files = rendered()
            write_page(output, {output.name: files.pop(folders.REPORT), **files})
    click.echo(str(page))
    if show:
        webbrowser.open(page.resolve().as_uri())


def home_of(path: Path) -> Path:
    """The folder of evidence, where its record is named."""
    return path.parent if packing.plain(path.name) in _RECORDS else path


def load_record(home: Path) -> Record:
    """The verified record of a folder; which one lies there says which kind it is. EvidenceError for what is wrong."""
    if packing.lies(home, sanitize_store.SANITIZE):
        return sanitize_store.load(home)
    if packing.lies(home, bench_store.BENCH):
        return bench_store.load(home).evidence
    return store.load(home)


def write_page(page: Path, files: Mapping[str, bytes]) -> None:
    """Write a page and the files beside it; EvidenceError where that cannot be."""
    try:
        for name, content in files.items():
            (page.parent / name).write_bytes(content)
    except OSError as error:
        raise EvidenceError(f"{page}: the page cannot be written there ({error.strerror})") from None


def _latest(folder: Path) -> Path:
    project = find(folder)
    return folders.latest(project.root / project.settings.runs, *_RECORDS)


def _index(retained: Path | None, output: Path | None, folder: Path) -> Path:
    project = find(folder)
    retained = retained or project.root / RETAINED
    if not retained.is_dir():
        raise EvidenceError(f"{retained}: expected a folder of retained evidence; name one")
    page = output or retained / index.INDEX
    write_page(page, {page.name: index.render_index(index.entries(retained, project)).encode()})
    return page


def _around(record: Evidence, folder: Path) -> Surroundings:
    """What the project there knows beside a run; nothing where there is none: a page can be made anywhere."""
    try:
        return surroundings(find(folder), record.plan.operator)
    except ProjectError:
        return Surroundings()


def _rendered(home: Path, folder: Path) -> Callable[[], dict[str, bytes]]:
    """Verified evidence, ready to be rendered: the page, and what lies beside it."""
    record = load_record(home)
    if isinstance(record, Evidence):
        return lambda: pages(record, _around(record, folder))
    if isinstance(record, SanitizeEvidence):
        return lambda: {folders.REPORT: render_sanitize(record).encode()}
    frozen = bench_store.load(home).curve
    compared = curve.compare(frozen, record) if frozen else None
    return lambda: {folders.REPORT: render_bench(record, compared).encode()}
