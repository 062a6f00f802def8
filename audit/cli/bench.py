"""`audit bench`: time variants in pairs on a GPU, each beside its parent and beside itself."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from audit import plan as planning
from audit.backends import cuda
from audit.bench import curve
from audit.bench.axis import bench_along
from audit.bench.run import bench
from audit.bench.text import bench_table
from audit.cli import options
from audit.cli.exit_codes import INCONCLUSIVE, PASS
from audit.cli.record_paths import page_name, record_paths
from audit.cli.shapes import chosen_shape, require_variants
from audit.cli.terminal import echo, echo_json
from audit.project import find_project
from audit.records.bench import CURVE, BenchRecord, draft
from audit.records.folder import add_pages, encode
from audit.report import pages


@click.command(name="bench")
@options.SHAPE
@options.CONTEXTS
@click.option(
    "--axis",
    "axes",
    multiple=True,
    metavar="NAME=VALUE",
    help="Give an axis another value; an axis with several values is timed at each (default: the operator's list).",
)
@options.VARIANTS
@click.option("--peers/--no-peers", default=True, help="Time other implementations too, where they are installed.")
@click.option("--freeze", is_flag=True, help="Keep these times as the curve that later runs are compared with.")
@click.option(
    "--time-limit", metavar="SECONDS", default=1200.0, show_default=True, help="Stop all of it after this long."
)
@options.PROJECT
@options.OUT
@options.JSON
def command(
    shape: str | None,
    contexts: tuple[int, ...],
    axes: tuple[str, ...],
    variants: tuple[str, ...],
    peers: bool,
    freeze: bool,
    time_limit: float,
    project_folder: Path,
    out: Path | None,
    as_json: bool,
) -> None:
    """Time each variant beside its parent and beside itself on a GPU, over many layers in one captured graph.

    Each variant is compared first, in this very build: one that differs in a byte is not timed, and the exit code is 3.
    Times are reported, not judged.
    """
    planning.checked_time_limit(time_limit)
    project = find_project(project_folder)
    name = chosen_shape(project, shape)
    require_variants(project, name, variants)
    operator, fixed = project.shape(name)
    declared = bench_along(operator, fixed, planning.chosen_axes(contexts, axes))
    cuda.require_device()
    planned = planning.planned_variants(operator, variants, full=True)
    partial = draft(out or project.own_runs(), name)
    record = bench(
        project,
        name,
        planned,
        declared,
        partial.folder,
        peers=peers,
        started=partial.started,
        command=shlex.join(["audit", *sys.argv[1:]]),
        time_limit=time_limit,
        say=lambda line: echo(line, err=True),
    )
    frozen = curve.find_curve(project.reports, record)
    compared = curve.compare_with_curve(frozen, record) if frozen else None
    beside = {CURVE: encode(frozen)} if frozen else {}
    path = partial.finish(record, beside)
    add_pages(path, lambda: pages(record, beside, project))
    if as_json:
        echo_json({"evidence": str(path), "page": page_name(path), "skipped": record.skipped})
    else:
        echo(f"{bench_table(record, compared)}\n{record_paths(path)}")
    if freeze:
        echo(f"curve    {curve.freeze_curve(project.reports, curve.curve_of(record))}", err=as_json)
    raise click.exceptions.Exit(INCONCLUSIVE if _differs(record) else PASS)


def _differs(record: BenchRecord) -> bool:
    return any(checked.refused for checked in record.checked) or not record.points
