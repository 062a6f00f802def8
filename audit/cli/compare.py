"""`audit compare`: two kernels on the same inputs, without a project."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import click

from audit import plan as planning
from audit.backends import cuda
from audit.checks.result import worst
from audit.cli import options
from audit.cli.exit_codes import CODES
from audit.cli.progress import Progress
from audit.cli.record_paths import page_name, record_paths
from audit.cli.run import finding_json
from audit.cli.terminal import echo, echo_json
from audit.compare.arguments import rooms
from audit.compare.hooks import load_hooks
from audit.compare.operator import NEW, OLD, Comparison, Side, compared
from audit.compare.text import describe_comparison
from audit.errors import PlanError, ToolMissing
from audit.plan import Backend
from audit.project import Project, Settings
from audit.records.run import findings
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
    help="Size of a buffer that is only written: y=7,33 or y=x.",
)
@click.option(
    "--workspace", "workspaces", multiple=True, metavar="NAME=SIZE", help="Size of a buffer of scratch memory."
)
@click.option(
    "--grid", metavar="N[,N,N]", help="Blocks: integers, integer arguments such as rows, or n/128, rounded up."
)
@click.option("--block", metavar="N[,N,N]", help="Threads of a block.")
@click.option("--shared", default="", metavar="BYTES", help="Dynamic shared memory of a block.")
@click.option("--new-grid", metavar="N[,N,N]", help="Blocks of NEW, where they differ.")
@click.option("--new-block", metavar="N[,N,N]", help="Threads of a block of NEW, where they differ.")
@click.option("--new-shared", metavar="BYTES", help="Dynamic shared memory of NEW, where it differs.")
@click.option("--define", "defines", multiple=True, metavar="NAME=VALUE", help="Define a macro in both sources.")
@click.option("--new-define", "new_defines", multiple=True, metavar="NAME=VALUE", help="Define a macro in NEW.")
@click.option(
    "--seed",
    "seeds",
    type=int,
    multiple=True,
    metavar="N",
    help="Seed of a case (default: 1, 2 and 3, where the function takes a generator).",
)
@click.option(
    "--device",
    type=click.Choice(["host", "cuda"]),
    help="Run on this CPU or on a CUDA GPU (default: the GPU where there is one).",
)
@click.option("--sanitize", "sanitized", is_flag=True, help="Run the sanitizers too.")
@click.option(
    "--time-limit", metavar="SECONDS", default=120.0, show_default=True, help="Stop a kernel after this long in a case."
)
@options.OUT
@options.JSON
def command(
    old: Path,
    new: Path,
    entry: str,
    new_entry: str | None,
    hooks: str,
    outputs: tuple[str, ...],
    workspaces: tuple[str, ...],
    grid: str | None,
    block: str | None,
    shared: str,
    new_grid: str | None,
    new_block: str | None,
    new_shared: str | None,
    defines: tuple[str, ...],
    new_defines: tuple[str, ...],
    seeds: tuple[int, ...],
    device: Backend | None,
    sanitized: bool,
    time_limit: float,
    out: Path | None,
    as_json: bool,
) -> None:
    """Compare two kernels on the same inputs: every byte that they leave, and how far each is from FP64.

    Parameters are read from the sources. The function's file may also define reference(inputs), outputs(inputs) and
    launch(inputs); `docs/compare.md` has an example. Nothing else is needed, and no project.
    """
    root = Path(os.path.commonpath([path.resolve().parent for path in (old, new)]))
    old_defines = _defines("--define", defines)
    order = Comparison(
        root,
        Side(OLD, _below(root, old), entry, _words(grid), _words(block), shared, old_defines),
        Side(
            NEW,
            _below(root, new),
            new_entry or entry,
            _words(new_grid or grid),
            _words(new_block or block),
            new_shared if new_shared is not None else shared,
            {**old_defines, **_defines("--new-define", new_defines)},
        ),
        load_hooks(root, hooks),
        rooms("--output", outputs),
        rooms("--workspace", workspaces),
    )
    runs = out or Path("runs").resolve()
    operator = compared(order)
    project = Project.of(root, Settings(reports=str(runs / "sanitizers")), operator, order.hooks.file)
    backend, arch = _machine(device)
    selection = planning.Selection(seeds=seeds or (_SEEDS if order.hooks.draws else _SEEDS[:1]))
    plan = planning.make_plan(project, operator.name, selection, arch=arch, time_limit=time_limit, backend=backend)
    words = shlex.join(["audit", *sys.argv[1:]])
    session = _sanitize(project, operator.name, backend, arch, runs / "sanitizers", words) if sanitized else None
    with Progress(plan.shape, plan.audits) as progress:
        record, folder = run(project, plan, runs, words, on_audit=progress.advance)
    verdict = worst([record.summary.verdict, *([session.summary.verdict] if session else [])])
    if as_json:
        echo_json(
            {
                "verdict": verdict,
                "findings": [finding_json(each) for each in findings(record)],
                "sanitizers": session.summary if session else None,
                "evidence": str(folder),
                "page": page_name(folder),
            }
        )
    else:
        echo(f"{describe_comparison(record, session, verdict)}\n{record_paths(folder)}")
    raise click.exceptions.Exit(CODES[verdict])


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


def _below(root: Path, path: Path) -> str:
    return path.resolve().relative_to(root).as_posix()


def _words(extents: str | None) -> tuple[str, ...]:
    return tuple(extents.split(",")) if extents else ()


def _defines(option: str, words: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for word in words:
        name, _, value = word.partition("=")
        if not name.isidentifier():
            raise PlanError(f"{option}: expected NAME=VALUE, but got {word!r}")
        found[name] = value
    return found
