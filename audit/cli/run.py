"""`audit run`: plan, run, record, say what was found."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click
import msgspec

from audit import plan as planning
from audit.backends import cuda
from audit.cli.main import FINDINGS, INCONCLUSIVE, PASS
from audit.cli.progress import Progress
from audit.errors import PlanError
from audit.project import find
from audit.records.run import RunRecord, findings
from audit.run import run
from audit.spec import AxisValue

_EXIT = {"pass": PASS, "fail": FINDINGS, "inconclusive": INCONCLUSIVE}
_SHOWN = 12


@click.command(name="run")
@click.option("--shape", required=True, help="The shape to audit, such as q6; `audit list` shows them.")
@click.option("--context", "contexts", type=int, multiple=True, help="Only cases with this value of the axis context.")
@click.option("--axis", "axes", multiple=True, metavar="NAME=VALUE", help="Only cases with this axis value.")
@click.option("--variant", "variants", multiple=True, help="Only this variant, and the parents it is compared with.")
@click.option("--capture", "captures", multiple=True, help="Only this capture; `all` for all, `none` for none.")
@click.option("--probe", "probes", multiple=True, help="Only this structured probe; `all` for all, `none` for none.")
@click.option("--seed", "seeds", type=int, multiple=True, help="Seeds of generated inputs (default 1).")
@click.option("--against", metavar="REVISION", help="Compare each variant with itself as it was at a git revision.")
@click.option("--full", is_flag=True, help="Also the cases that the default plan leaves out.")
@click.option(
    "--device", default="host", show_default=True, type=click.Choice(["host", "cuda"]), help="Where kernels run."
)
@click.option("--arch", help="Whose tensor cores the host models (default sm_90; with --device cuda, the GPU's).")
@click.option("--time-limit", default=120.0, show_default=True, help="Seconds for one variant in one case.")
@click.option("--project", "folder", type=click.Path(path_type=Path), default=Path(), help="The project's folder.")
@click.option("--out", type=click.Path(path_type=Path), default=None, help="Where evidence goes (default: runs).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout, nothing else.")
def command(
    shape: str,
    contexts: tuple[int, ...],
    axes: tuple[str, ...],
    variants: tuple[str, ...],
    captures: tuple[str, ...],
    probes: tuple[str, ...],
    seeds: tuple[int, ...],
    against: str | None,
    full: bool,
    device: planning.Backend,
    arch: str | None,
    time_limit: float,
    folder: Path,
    out: Path | None,
    as_json: bool,
) -> None:
    """Audit every planned case of a shape, write evidence and a report, and exit by the verdict.

    Options narrow the default plan; a value that no planned case has adds a case.
    """
    project = find(folder)
    selection = planning.Selection(
        axes=_axes(contexts, axes),
        variants=variants,
        captures=_named(captures),
        probes=_named(probes),
        seeds=seeds,
        full=full,
        against=against,
    )
    if device == "cuda":
        there = cuda.require_device().arch
        if arch not in (None, there):
            raise PlanError(f"--arch: expected {there}, which is what the GPU has, but got {arch!r}; leave it out")
        arch = there
    plan = planning.make(project, shape, selection, arch=arch or "sm_90", time_limit=time_limit, backend=device)
    words = shlex.join(["audit", *sys.argv[1:]])
    with Progress(plan.audits) as progress:
        evidence, path = run(project, plan, out or project.runs, words, on_audit=progress.advance)
    click.echo(_json(evidence, path) if as_json else _text(evidence, path))
    raise click.exceptions.Exit(_EXIT[evidence.summary.verdict])


def _named(names: tuple[str, ...]) -> tuple[str, ...] | None:
    return tuple(name for name in names if name != "none") if names else None


def _axes(contexts: tuple[int, ...], axes: tuple[str, ...]) -> dict[str, list[AxisValue]]:
    chosen: dict[str, list[AxisValue]] = {"context": list(contexts)} if contexts else {}
    for name, value in planning.axis_values(axes):
        chosen.setdefault(name, []).append(value)
    return chosen


def _json(evidence: RunRecord, path: Path) -> str:
    """verdict, planned, ran, passed, failed, inconclusive, seconds, and the evidence's folder."""
    summary = msgspec.structs.asdict(evidence.summary)
    del summary["vacuous"]
    return msgspec.json.encode({**summary, "evidence": str(path)}).decode()


def _text(evidence: RunRecord, path: Path) -> str:
    summary = evidence.summary
    lines = []
    found = findings(evidence)
    for finding in found[:_SHOWN]:
        result = finding.result
        lines.append(f"{result.verdict:12} {result.check}: {finding.place}\n{'':13}{result.detail}")
        if result.measured and result.limit:
            where = f"; {result.where}" if result.where else ""
            lines.append(f"{'':13}measured {result.measured.text}, limit {result.limit.text}{where}")
    if len(found) > _SHOWN:
        lines.append(f"... and {len(found) - _SHOWN} more; the report has them all")
    if summary.vacuous:
        lines.append(
            f"inconclusive vacuity: no check of this plan can tell a right result from {', '.join(summary.vacuous)}"
        )
    lines += [
        f"{summary.verdict}: {summary.passed} passed, {summary.failed} failed, {summary.inconclusive} inconclusive, "
        f"of {summary.planned} planned, {summary.ran} ran, in {summary.seconds} s",
        f"evidence {path}",
        f"report   {path / 'report.html'}",
    ]
    return "\n".join(lines)
