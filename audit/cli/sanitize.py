"""`audit sanitize`: stray accesses, races, barriers that not all reach, what nobody wrote."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click
import msgspec

from audit.cli.main import FINDINGS, INCONCLUSIVE, PASS
from audit.compile.host import check_arch
from audit.plan import Backend
from audit.project import find
from audit.records.sanitize import TOOLS, Checked, SanitizeRecord, Tool, told
from audit.report import pages
from audit.sanitize import plan as planning
from audit.sanitize.device.engine import DeviceEngine
from audit.sanitize.engine import Engine
from audit.sanitize.host.engine import HostEngine
from audit.sanitize.session import sanitize

_EXIT = {"pass": PASS, "fail": FINDINGS, "inconclusive": INCONCLUSIVE}
_SHOWN = 12
_CANARY_LIMIT = 60.0


@click.command(name="sanitize")
@click.option("--shape", required=True, help="The shape to look at, such as q6; `audit list` shows them.")
@click.option("--tool", "tools", type=click.Choice(TOOLS), multiple=True, help="Only this tool (default: all four).")
@click.option("--variant", "variants", multiple=True, help="Only this variant, and its parent.")
@click.option("--case", "cases", multiple=True, help="Only cases whose name holds this.")
@click.option(
    "--device", default="host", show_default=True, type=click.Choice(["host", "cuda"]), help="Where kernels run."
)
@click.option("--arch", default="sm_90", show_default=True, help="Whose tensor cores the host models.")
@click.option(
    "--compute-sanitizer", "executable", type=click.Path(path_type=Path), help="Which one to use with --device cuda."
)
@click.option(
    "--time-limit", default=180.0, show_default=True, help="Seconds for one tool over one variant in one case."
)
@click.option("--project", "folder", type=click.Path(path_type=Path), default=Path(), help="The project's folder.")
@click.option("--out", type=click.Path(path_type=Path), default=None, help="Where evidence goes (default: runs).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout, nothing else.")
def command(
    shape: str,
    tools: tuple[Tool, ...],
    variants: tuple[str, ...],
    cases: tuple[str, ...],
    device: Backend,
    arch: str,
    executable: Path | None,
    time_limit: float,
    folder: Path,
    out: Path | None,
    as_json: bool,
) -> None:
    """Run every variant of a shape under sanitizers, parents too, and exit by the verdict.

    A tool counts only after it has found its canaries, planted faults, and passed their clean twins, in this very
    session. On this CPU the same source runs under ThreadSanitizer, AddressSanitizer and UBSan, the accounting of
    barriers, and valgrind; with --device cuda under NVIDIA's compute-sanitizer.
    """
    check_arch(arch)
    project = find(folder)
    plan = planning.make(
        project, shape, tools=tools, variants=variants, cases=cases, backend=device, time_limit=time_limit
    )
    engine: Engine = DeviceEngine(executable, _CANARY_LIMIT) if device == "cuda" else HostEngine(arch, _CANARY_LIMIT)
    done = 0

    def on_check(checked: Checked) -> None:
        nonlocal done
        done += 1
        line = f"[{done}/{plan.checks}] {checked.verdict} {checked.tool} {checked.variant} {checked.case}"
        click.echo(f"{line} {checked.seconds} s", err=True)

    words = shlex.join(["audit", *sys.argv[1:]])
    evidence, path = sanitize(project, plan, engine, out or project.runs, words, pages, on_check=on_check)
    click.echo(_json(evidence, path) if as_json else _text(evidence, path))
    raise click.exceptions.Exit(_EXIT[evidence.summary.verdict])


def _json(evidence: SanitizeRecord, path: Path) -> str:
    """The summary, and the evidence's folder."""
    return msgspec.json.encode({**msgspec.structs.asdict(evidence.summary), "evidence": str(path)}).decode()


def _text(evidence: SanitizeRecord, path: Path) -> str:
    summary, lines = evidence.summary, []
    troubled: dict[tuple[str, str, tuple[str, ...]], list[Checked]] = {}
    for one in evidence.checked:
        if one.verdict != "pass":
            open_ = [told(finding) for finding in one.findings if not finding.suppressed]
            troubled.setdefault((one.verdict, one.tool, tuple(open_[:3]) or (one.reason,)), []).append(one)
    for (verdict, tool, said), ones in list(troubled.items())[:_SHOWN]:
        more = f" and {len(ones) - 1} more" if len(ones) > 1 else ""
        lines.append(f"{verdict:12} {tool}: {ones[0].variant}, {ones[0].case}{more}")
        lines += [f"{'':13}{words}" for words in said]
    if len(troubled) > _SHOWN:
        lines.append(f"... and {len(troubled) - _SHOWN} more; the report has them all")
    lines += [f"{'fail':12} {reason}" for reason in summary.reasons if reason.startswith("suppression ")]
    lines += [
        f"{summary.verdict}: {summary.clean} clean, {summary.failed} with findings, {summary.inconclusive} "
        f"inconclusive, of {summary.planned} planned; {summary.canaries_found} of {summary.canaries} canaries found; "
        f"{summary.launches} launches in {summary.seconds} s",
        f"evidence {path}",
        f"report   {path / 'report.html'}",
    ]
    return "\n".join(lines)
