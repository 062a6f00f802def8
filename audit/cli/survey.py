"""`audit survey`: every shape of a project, in one record."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import click

from audit.backends import cuda
from audit.cli import options
from audit.cli.exit_codes import CODES
from audit.cli.progress import Progress
from audit.cli.record_paths import page_name, record_paths
from audit.cli.terminal import echo, echo_json
from audit.plan import Backend
from audit.project import find_project
from audit.records.survey import SurveyRecord
from audit.sanitize.device.engine import DeviceEngine
from audit.sanitize.engine import Engine
from audit.sanitize.host.engine import HostEngine
from audit.survey import OneSession, SurveyOrder, survey

_SHOWN = 20
_CANARY_LIMIT = 60.0  # seconds


@click.command(name="survey")
@click.option("--sanitize", "sanitized", is_flag=True, help="Run the sanitizers too.")
@click.option(
    "--jobs", type=click.IntRange(1), metavar="N", help="Run this many shapes at a time (default: half the cores)."
)
@click.option(
    "--time-limit",
    metavar="SECONDS",
    type=float,
    default=600.0,
    show_default=True,
    help="Stop the run of a shape after this long.",
)
@options.DEVICE
@options.PROJECT
@options.OUT
@options.JSON
def command(
    sanitized: bool,
    jobs: int | None,
    time_limit: float,
    device: Backend,
    project_folder: Path,
    out: Path | None,
    as_json: bool,
) -> None:
    """Run every shape of a project and keep one record of all: a line a variant, with what did not pass.

    The records of the single runs are not kept; `audit run --shape NAME` makes one. The exit code is that of the worst
    verdict.
    """
    project = find_project(project_folder)
    found = cuda.require_device().described() if device == "cuda" else None
    shapes = tuple(project.shapes())
    words = shlex.join(["audit", *sys.argv[1:]])
    engine: Engine | None = None
    if sanitized:
        made: Engine = DeviceEngine(None, _CANARY_LIMIT) if device == "cuda" else HostEngine("sm_90", _CANARY_LIMIT)
        engine = OneSession(made)
    at_once = jobs or max(1, (os.cpu_count() or 1) // 2)
    order = SurveyOrder(project, shapes, device, engine, at_once, time_limit, found, words)
    with Progress(project.root.name, len(shapes)) as progress:
        record, folder = survey(order, out or project.own_runs(), lambda one: progress.count(one.verdict, one.shape))
    if as_json:
        echo_json({"verdict": record.summary.verdict, "evidence": str(folder), "page": page_name(folder)})
    else:
        echo(f"{_text(record)}\n{record_paths(folder)}")
    raise click.exceptions.Exit(CODES[record.summary.verdict])


def _text(record: SurveyRecord) -> str:
    lines = []
    for shape in record.shapes:
        if shape.refusal:
            lines.append(f"{shape.verdict:12} {shape.shape}: {shape.refusal}")
        for variant in shape.variants:
            if variant.objections:
                first = variant.objections[0]
                lines.append(f"{variant.verdict:12} {shape.shape}: {variant.name}: {first.source}: {first.detail}")
    hidden = len(lines) - _SHOWN
    summary = record.summary
    return "\n".join(
        [
            *lines[:_SHOWN],
            *([f"... and {hidden} more; the page has them all"] if hidden > 0 else []),
            f"{summary.verdict}: {summary.passed} shapes passed, {summary.failed} with findings, "
            f"{summary.inconclusive} inconclusive, of {summary.planned} planned, in {summary.seconds} s",
        ]
    )
