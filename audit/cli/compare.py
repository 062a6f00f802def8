"""`audit compare`: two kernels on the same inputs, without a project."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from audit import plan as planning
from audit.backends import cuda
from audit.checks.result import worst
from audit.cli import options
from audit.cli.exit_codes import CODES
from audit.cli.progress import Progress
from audit.cli.record_paths import page_name, record_paths
from audit.cli.terminal import echo, echo_json
from audit.compare.operator import compared
from audit.compare.order import comparison
from audit.compare.output import comparison_json
from audit.compare.text import describe_comparison
from audit.errors import ToolMissing
from audit.plan import Backend
from audit.project import Project, Settings
from audit.records.run import RunRecord
from audit.records.sanitize import SanitizeRecord
from audit.report import pages
from audit.run import run
from audit.sanitize.device.engine import DeviceEngine
from audit.sanitize.engine import Engine
from audit.sanitize.host.engine import HostEngine
from audit.sanitize.plan import make_sanitize_plan
from audit.sanitize.session import sanitize

_SEEDS = (1, 2, 3)
_CANARY_LIMIT = 60.0


@click.command(name="compare")
@click.argument("old", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.argument("new", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--entry", default="", metavar="KERNEL", help="Compare this kernel, such as softmax or `split<6, 256>`.")
@click.option(
    "--rename",
    "renames",
    multiple=True,
    metavar="NEW=OLD",
    help="Match a parameter of NEW with one of OLD that has another name.",
)
@click.option("--new-entry", metavar="KERNEL", help="Take this kernel of NEW, where its name is another one.")
@click.option(
    "--inputs",
    "hooks",
    required=True,
    metavar="FILE.py:FUNCTION",
    help="Take the arguments from this function: a dict of arrays and scalars by parameter name.",
)
@click.option(
    "--output",
    "outputs",
    multiple=True,
    metavar="NAME=SIZE",
    help="Give the size of a buffer that is only written: y=7,33, y=rows,n, or y=x.",
)
@click.option(
    "--workspace", "workspaces", multiple=True, metavar="NAME=SIZE", help="Give the size of a buffer of scratch memory."
)
@click.option(
    "--grid",
    metavar="N[,N,N]",
    help="Launch this many blocks: integers, integer inputs such as rows, or rows*n/128, rounded up.",
)
@click.option("--block", metavar="N[,N,N]", help="Launch this many threads a block.")
@click.option("--shared", default="", metavar="BYTES", help="Give each block this much dynamic shared memory.")
@click.option("--new-grid", metavar="N[,N,N]", help="Launch this many blocks of NEW instead.")
@click.option("--new-block", metavar="N[,N,N]", help="Launch this many threads a block of NEW instead.")
@click.option("--new-shared", metavar="BYTES", help="Give each block of NEW this much instead.")
@click.option("--define", "defines", multiple=True, metavar="NAME=VALUE", help="Define a macro in both sources.")
@click.option("--new-define", "new_defines", multiple=True, metavar="NAME=VALUE", help="Define a macro in NEW.")
@click.option(
    "--seed",
    "seeds",
    type=int,
    multiple=True,
    metavar="N",
    help="Run a case with this seed (default: 1, 2 and 3, where the function takes a generator).",
)
@click.option(
    "--device",
    type=click.Choice(["host", "cuda"]),
    help="Run on this CPU or on a CUDA GPU (default: the GPU where there is one).",
)
@click.option(
    "--relation",
    metavar="RELATION",
    help="Use another relation than equal bytes: ulps=N, within=ATOL,RTOL, no-worse=FACTOR or unrelated.",
)
@click.option("--sanitize", "sanitized", is_flag=True, help="Run the sanitizers too.")
@click.option(
    "--time-limit", metavar="SECONDS", default=120.0, show_default=True, help="Stop a kernel after this long in a case."
)
@options.OUT
@options.JSON
def command(**options: Any) -> None:
    """Compare two kernels on the same inputs: every byte that they leave, and how far each is from FP64.

    Parameters are read from the sources. The function's file may also define reference(inputs), outputs(inputs) and
    launch(inputs); `docs/compare.md` has an example. Nothing else is needed, and no project.
    """
    with contextlib.redirect_stdout(sys.stderr):  # what the user's file prints is no part of the answer
        session, record, folder = _compared(options)
    verdict = worst([record.summary.verdict, *([session.summary.verdict] if session else [])])
    if options["as_json"]:
        echo_json({**comparison_json(record, session, verdict), "evidence": str(folder), "page": page_name(folder)})
    else:
        echo(f"{describe_comparison(record, session, verdict)}\n{record_paths(folder)}")
    raise click.exceptions.Exit(CODES[verdict])


def _compared(options: Mapping[str, Any]) -> tuple[SanitizeRecord | None, RunRecord, Path]:
    """Run both kernels, and the sanitizers before them if they are asked for."""
    order = comparison(options)
    runs = options["out"] or Path("runs").resolve()
    operator = compared(order)
    project = Project.of(order.root, Settings(reports=str(runs / "sanitizers")), operator, order.hooks.file)
    backend, arch = _machine(options["device"])
    seeds = options["seeds"] or (_SEEDS if order.hooks.draws else _SEEDS[:1])
    selection = planning.Selection(seeds=seeds)
    plan = planning.make_plan(
        project, operator.name, selection, arch=arch, time_limit=options["time_limit"], backend=backend
    )
    words = shlex.join(["audit", *sys.argv[1:]])
    session = (
        _sanitize(project, operator.name, backend, arch, runs / "sanitizers", words) if options["sanitized"] else None
    )
    with Progress(plan.shape, plan.audits) as progress:
        record, folder = run(project, plan, runs, words, on_audit=progress.advance)
    return session, record, folder


def _machine(device: Backend | None) -> tuple[Backend, str]:
    if device == "host":
        return "host", "sm_90"
    try:
        return "cuda", cuda.require_device().arch
    except ToolMissing:
        if device == "cuda":
            raise
        return "host", "sm_90"


def _sanitize(project: Project, shape: str, backend: Backend, arch: str, runs: Path, words: str) -> SanitizeRecord:
    plan = make_sanitize_plan(project, shape, backend=backend, time_limit=180.0)
    engine: Engine = DeviceEngine(None, _CANARY_LIMIT) if backend == "cuda" else HostEngine(arch, _CANARY_LIMIT)
    with Progress(shape, plan.checks) as progress:
        return sanitize(project, plan, engine, runs, words, pages, on_check=progress.advance)[0]
