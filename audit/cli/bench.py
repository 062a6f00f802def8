"""`audit bench`: time variants in pairs on a GPU, each beside its parent and beside itself."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click
import msgspec

from audit import plan as planning
from audit.backends import cuda
from audit.bench import curve
from audit.bench.run import bench
from audit.bench.text import table
from audit.cli.main import INCONCLUSIVE, PASS
from audit.errors import PlanError
from audit.project import find
from audit.records.bench import CURVE, BenchRecord, draft
from audit.records.folder import encode
from audit.report import pages


@click.command(name="bench")
@click.option("--shape", required=True, help="The shape to time, such as q6; `audit list` shows them.")
@click.option(
    "--context", "contexts", type=int, multiple=True, help="Tokens to time at (default: the operator's list)."
)
@click.option(
    "--axis", "axes", multiple=True, metavar="NAME=VALUE", help="Another value for an axis of the working set."
)
@click.option("--variant", "variants", multiple=True, help="Only this variant, and the parent it is timed beside.")
@click.option("--peers/--no-peers", default=True, help="Also other implementations, where they are installed.")
@click.option("--freeze", is_flag=True, help="Keep these times as the curve that later runs are compared with.")
@click.option("--time-limit", default=1200.0, show_default=True, help="Seconds for all of it.")
@click.option("--project", "folder", type=click.Path(path_type=Path), default=Path(), help="The project's folder.")
@click.option("--out", type=click.Path(path_type=Path), default=None, help="Where evidence goes (default: runs).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout, nothing else.")
def command(
    shape: str,
    contexts: tuple[int, ...],
    axes: tuple[str, ...],
    variants: tuple[str, ...],
    peers: bool,
    freeze: bool,
    time_limit: float,
    folder: Path,
    out: Path | None,
    as_json: bool,
) -> None:
    """Time each variant beside its parent and beside itself on a GPU, over many layers in one captured graph.

    What is timed has been compared first, in this very build: a variant of which a byte differs is left out, and
    makes the exit code 3. Times are told, not judged.
    """
    project = find(folder)
    operator, _ = project.shape(shape)
    if operator.bench is None:
        raise PlanError(f"operator {operator.name}: declares no bench (Operator.bench), so there is nothing to time")
    cuda.require_device()
    planned = planning.planned_variants(operator, variants, full=True)
    partial = draft(out or project.runs, shape)
    evidence = bench(
        project,
        shape,
        planned,
        contexts or tuple(operator.bench.contexts),
        partial.folder,
        axes=dict(planning.axis_values(axes)),
        peers=peers,
        started=partial.started,
        command=shlex.join(["audit", *sys.argv[1:]]),
        time_limit=time_limit,
        say=lambda line: click.echo(line, err=True),
    )
    frozen = curve.find(project.reports, evidence)
    compared = curve.compare(frozen, evidence) if frozen else None
    beside = {CURVE: encode(frozen)} if frozen else {}
    path = partial.finish(evidence, {**beside, **pages(evidence, beside, project)})
    if as_json:
        click.echo(msgspec.json.encode({"evidence": str(path), "skipped": evidence.skipped}).decode())
    else:
        click.echo(f"{table(evidence, compared)}\nevidence {path}\nreport   {path / 'report.html'}")
    if freeze:
        click.echo(f"curve    {curve.freeze(project.reports, curve.of(evidence))}", err=as_json)
    raise click.exceptions.Exit(INCONCLUSIVE if _differs(evidence) else PASS)


def _differs(evidence: BenchRecord) -> bool:
    return any(checked.differing for checked in evidence.checked) or not evidence.points
