"""`audit sanitize`: stray accesses, races, barriers that some threads never reach, memory that nothing wrote."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from audit.checks.result import worst
from audit.cli import options
from audit.cli.exit_codes import CODES
from audit.cli.progress import Progress
from audit.cli.record_paths import page_name, record_paths
from audit.cli.shapes import chosen_shapes, require_variants
from audit.cli.terminal import echo, echo_json
from audit.compile.host import check_arch
from audit.plan import Backend, chosen_axes
from audit.project import find_project
from audit.records.sanitize import TOOLS, SanitizeRecord, Tool, ToolCheck, describe_finding
from audit.report import pages
from audit.sanitize import plan as planning
from audit.sanitize.device.engine import DeviceEngine
from audit.sanitize.engine import Engine
from audit.sanitize.host.engine import HostEngine
from audit.sanitize.session import sanitize

_SHOWN = 12
_CANARY_LIMIT = 60.0  # seconds


@click.command(name="sanitize")
@options.SHAPE_OR_ALL
@click.option(
    "--tool", "tools", type=click.Choice(TOOLS), multiple=True, help="Run only this tool (default: all four)."
)
@options.VARIANTS
@options.CONTEXTS
@options.AXES
@options.SEEDS
@click.option("--case", "cases", metavar="TEXT", multiple=True, help="Run only cases whose name contains TEXT.")
@options.DEVICE
@click.option(
    "--arch",
    metavar="ARCH",
    default="sm_90",
    show_default=True,
    help="Model the tensor cores of this architecture on the host.",
)
@click.option(
    "--compute-sanitizer",
    "executable",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Use this compute-sanitizer with --device cuda.",
)
@click.option(
    "--time-limit",
    metavar="SECONDS",
    default=180.0,
    show_default=True,
    help="Stop a tool after this long over one variant in one case.",
)
@options.PROJECT
@options.OUT
@options.JSON_LINES
def command(
    shape: str | None,
    tools: tuple[Tool, ...],
    variants: tuple[str, ...],
    contexts: tuple[int, ...],
    axes: tuple[str, ...],
    seeds: tuple[int, ...],
    cases: tuple[str, ...],
    device: Backend,
    arch: str,
    executable: Path | None,
    time_limit: float,
    project_folder: Path,
    out: Path | None,
    as_json: bool,
) -> None:
    """Run every variant of a shape under sanitizers, parents too, and exit by the verdict.

    A tool counts only after it has found its canaries, which are planted faults, and passed their clean twins, in this
    very session. On this CPU the same source runs under ThreadSanitizer, AddressSanitizer and UBSan, the accounting of
    barriers, and valgrind; with --device cuda it runs under NVIDIA's compute-sanitizer. With --shape all, each shape
    has a record of its own, and the worst verdict is the exit code.
    """
    check_arch(arch)
    project = find_project(project_folder)
    shapes = chosen_shapes(project, shape)
    for name in shapes:
        require_variants(project, name, variants)
    plans = [
        planning.make_sanitize_plan(
            project,
            name,
            tools=tools,
            variants=variants,
            cases=cases,
            axes=chosen_axes(contexts, axes),
            seeds=seeds,
            backend=device,
            time_limit=time_limit,
        )
        for name in shapes
    ]
    words = shlex.join(["audit", *sys.argv[1:]])
    verdicts = []
    for plan in plans:
        engine: Engine = (
            DeviceEngine(executable, _CANARY_LIMIT) if device == "cuda" else HostEngine(arch, _CANARY_LIMIT)
        )
        with Progress(plan.shape, plan.checks) as progress:
            record, folder = sanitize(
                project, plan, engine, out or project.own_runs(), words, pages, on_check=progress.advance
            )
        if as_json:
            echo_json(_json(record, folder))
        else:
            echo(f"shape {plan.shape}\n{_text(record, folder)}\n" if len(plans) > 1 else _text(record, folder))
        verdicts.append(record.summary.verdict)
    raise click.exceptions.Exit(CODES[worst(verdicts)])


def _json(record: SanitizeRecord, folder: Path) -> dict[str, object]:
    """The shape, the summary, every finding, and where the record and its page lie."""
    return {
        "shape": record.plan.shape,
        **msgspec.structs.asdict(record.summary),
        "findings": [finding for one in record.checked for finding in _findings(one)],
        "evidence": str(folder),
        "page": page_name(folder),
    }


def _findings(checked: ToolCheck) -> Iterator[dict[str, object]]:
    """What a tool found in one variant and case, with the keys of `audit run --json`; its reason where it found nothing
    and did not pass. A suppressed finding is left out."""
    if checked.verdict == "pass":
        return
    run = {
        "check": checked.tool,
        "variant": checked.variant,
        "case": checked.case,
        "steps": [],
        "verdict": checked.verdict,
    }
    found = [finding for finding in checked.findings if not finding.suppressed]
    for finding in found:
        where = [f"{side.file}:{side.line}" for side in finding.sides if side.line]
        yield {
            **run,
            "detail": describe_finding(finding),
            "measured": str(finding.count),
            "limit": "0",
            "where": " and ".join(where),
        }
    if not found:
        yield {**run, "detail": checked.reason, "measured": None, "limit": None, "where": ""}


def _text(record: SanitizeRecord, folder: Path) -> str:
    summary, lines = record.summary, []
    alike: dict[tuple[str, str, tuple[str, ...]], list[ToolCheck]] = {}
    for one in record.checked:
        if one.verdict != "pass":
            reported = [describe_finding(finding) for finding in one.findings if not finding.suppressed]
            alike.setdefault((one.verdict, one.tool, tuple(reported[:3]) or (one.reason,)), []).append(one)
    for (verdict, tool, sentences), ones in list(alike.items())[:_SHOWN]:
        more = f" and {len(ones) - 1} more" if len(ones) > 1 else ""
        lines.append(f"{verdict:12} {tool}: {ones[0].variant}, {ones[0].case}{more}")
        lines += [f"{'':13}{sentence}" for sentence in sentences]
    if len(alike) > _SHOWN:
        lines.append(f"... and {len(alike) - _SHOWN} more; the report has them all")
    lines += [f"{'fail':12} {reason}" for reason in summary.reasons if reason.startswith("suppression ")]
    lines += [
        f"{summary.verdict}: {summary.clean} clean, {summary.failed} with findings, {summary.inconclusive} "
        f"inconclusive, of {summary.planned} planned; {summary.canaries_found} of {summary.canaries} canaries found; "
        f"{summary.launches} launches in {summary.seconds} s",
        record_paths(folder),
    ]
    return "\n".join(lines)
