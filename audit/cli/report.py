"""`audit report`: a record as one HTML page, and the list of retained records."""

from __future__ import annotations

import tempfile
import webbrowser
from pathlib import Path

import click

from audit.cli import options
from audit.cli.supervise import spare_children
from audit.cli.terminal import echo
from audit.errors import EvidenceError, ProjectError
from audit.project import Project, find_project
from audit.records.folder import REPORT, latest
from audit.records.kind import taken_as_written
from audit.records.kinds import FILES, home_of, kind_in
from audit.report import index, pages, write_page


@click.command(name="report")
@click.argument("evidence", type=click.Path(path_type=Path), required=False)
@click.option("--output", "-o", metavar="FILE", type=click.Path(path_type=Path), help="Write the page into this file.")
@click.option("--open", "show", is_flag=True, help="Open the page in a browser.")
@click.option("--index", "listing", is_flag=True, help="List all records of a folder (default: reports) on one page.")
@options.PROJECT
def command(evidence: Path | None, output: Path | None, show: bool, listing: bool, project_folder: Path) -> None:
    """Render EVIDENCE as one offline page, and print the page's path.

    EVIDENCE is a folder that run, bench or sanitize wrote (default: the newest). A retained folder keeps no page: its
    page is rendered into `runs/pages` unless --output says where. With --index, EVIDENCE is a folder of records, and
    its index.html lists them.
    """
    page = _index(evidence, output, project_folder) if listing else _page(evidence, output, project_folder)
    echo(str(page))
    if show:
        spare_children()
        webbrowser.open(page.resolve().as_uri())


def _page(evidence: Path | None, output: Path | None, folder: Path) -> Path:
    home = home_of(evidence) if evidence else latest(find_project(folder).runs, *FILES)
    record, files = kind_in(home).read(home)
    if output is None and REPORT in files:
        return home / REPORT
    project = _project(folder)
    page = output or _pages_folder(project) / home.resolve().name / REPORT
    with taken_as_written(home):
        rendered = pages(record, files, project)
    write_page(page, {page.name: rendered.pop(REPORT), **rendered})
    return page


def _index(retained: Path | None, output: Path | None, folder: Path) -> Path:
    project = find_project(folder)
    retained = retained or project.reports
    if not retained.is_dir():
        raise EvidenceError(f"{retained}: expected a folder of retained records, but it does not exist; name one")
    page = output or retained / index.INDEX
    with taken_as_written(retained):
        rendered = index.render_index(index.entries(retained, project)).encode()
    write_page(page, {page.name: rendered})
    return page


def _project(folder: Path) -> Project | None:
    """The project of that folder, if there is one: a page can be rendered without."""
    try:
        return find_project(folder)
    except ProjectError:
        return None


def _pages_folder(project: Project | None) -> Path:
    return project.runs / "pages" if project else Path(tempfile.mkdtemp(prefix="kernel-audit-"))
