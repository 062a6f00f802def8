"""`audit run`: plan, run, record, report the findings."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click
import msgspec

from audit import conversions
from audit import plan as planning
from audit.backends import cuda
from audit.checks.result import worst
from audit.cli import options
from audit.cli.exit_codes import CODES
from audit.cli.progress import Progress
from audit.cli.record_paths import page_name, record_paths
from audit.cli.shapes import chosen_shapes, require_variants
from audit.cli.terminal import echo, echo_json
from audit.errors import PlanError
from audit.project import Project, find_project
from audit.records.run import CheckFinding, RunRecord, families_run, findings
from audit.report.related import RelatedVariant, related_variants
from audit.run import run
from audit.search import SearchOutcome, plan_of, search, seconds_of

_SHOWN = 12


@click.command(name="run")
@options.SHAPE_OR_ALL
@options.CONTEXTS
@options.AXES
@options.VARIANTS
@click.option(
    "--capture",
    "captures",
    metavar="NAME",
    multiple=True,
    help="Run only this capture; `all` for all, `none` for none.",
)
@click.option(
    "--probe", "probes", metavar="NAME", multiple=True, help="Run only this probe; `all` for all, `none` for none."
)
@options.SEEDS
@click.option(
    "--family",
    "families",
    metavar="NAME",
    multiple=True,
    help="Run this input family in every case, in place of those of the plan; `none` for none.",
)
@click.option(
    "--search",
    "searching",
    metavar="TIME",
    help="Look this long, such as 60s or 5m, for a case beyond the plan that fails, and make it small.",
)
@click.option(
    "--search-seed",
    metavar="N",
    type=int,
    default=0,
    show_default=True,
    help="Use this seed for what --search draws.",
)
@click.option("--against", metavar="REVISION", help="Compare each variant with itself as it was at a git revision.")
@click.option("--full", is_flag=True, help="Add the cases that the default plan leaves out.")
@options.DEVICE
@click.option(
    "--arch",
    metavar="ARCH",
    help="Model the tensor cores of this architecture on the host (default: sm_90; with --device cuda, the GPU's).",
)
@click.option(
    "--time-limit",
    metavar="SECONDS",
    default=120.0,
    show_default=True,
    help="Stop a variant after this long in a case.",
)
@options.PROJECT
@options.OUT
@options.JSON_LINES
def command(
    shape: str | None,
    contexts: tuple[int, ...],
    axes: tuple[str, ...],
    variants: tuple[str, ...],
    captures: tuple[str, ...],
    probes: tuple[str, ...],
    seeds: tuple[int, ...],
    families: tuple[str, ...],
    searching: str | None,
    search_seed: int,
    against: str | None,
    full: bool,
    device: planning.Backend,
    arch: str | None,
    time_limit: float,
    project_folder: Path,
    out: Path | None,
    as_json: bool,
) -> None:
    """Audit every planned case of a shape, write a record and a page, and exit by the verdict.

    Options narrow the default plan; a value that no planned case has adds a case. With --shape all, each shape has a
    record of its own, and the worst verdict is the exit code.
    """
    search_seconds = None if searching is None else seconds_of(searching)
    project = find_project(project_folder)
    shapes = chosen_shapes(project, shape)
    selection = planning.Selection(
        axes=planning.chosen_axes(contexts, axes),
        variants=variants,
        captures=_named(captures),
        probes=_named(probes),
        seeds=seeds,
        full=full,
        against=against,
        families=_named(families),
    )
    if device == "cuda":
        installed = cuda.require_device().arch
        if arch not in (None, installed):
            raise PlanError(f"--arch: expected {installed}, which is what the GPU has, but got {arch!r}; leave it out")
        arch = installed
    for name in shapes:
        require_variants(project, name, variants)
    plans = [
        planning.make_plan(project, name, selection, arch=arch or "sm_90", time_limit=time_limit, backend=device)
        for name in shapes
    ]
    words = shlex.join(["audit", *sys.argv[1:]])
    verdicts = []
    for plan in plans:
        with Progress(plan.shape, plan.audits) as progress:
            record, folder = run(project, plan, out or project.own_runs(), words, on_audit=progress.advance)
        described, text = _json(record, folder), _text(record, folder)
        verdicts.append(record.summary.verdict)
        if search_seconds is not None:
            outcome, beyond = _beyond(project, plan, record, search_seconds, search_seed, out, words)
            verdicts += ["fail"] if beyond else []
            described["search"] = _search_json(outcome, plan, beyond)
            text += f"\n{_search_text(outcome, plan, beyond)}"
        if as_json:
            echo_json(described)
        else:
            echo(f"shape {plan.shape}\n{text}\n" if len(plans) > 1 else text)
    raise click.exceptions.Exit(CODES[worst(verdicts)])


def _beyond(
    project: Project,
    plan: planning.Plan,
    record: RunRecord,
    seconds: float,
    seed: int,
    out: Path | None,
    words: str,
) -> tuple[SearchOutcome | None, tuple[RunRecord, Path] | None]:
    """A search after a run without findings, and the record of what it found."""
    if record.summary.verdict == "fail":
        return None, None
    outcome = search(project, plan, seconds, seed)
    if outcome.case is None:
        return outcome, None
    return outcome, run(project, plan_of(plan, outcome.case), out or project.own_runs(), words)


def _search_json(
    outcome: SearchOutcome | None, plan: planning.Plan, beyond: tuple[RunRecord, Path] | None
) -> dict[str, object] | None:
    """What a search did, and the command and the record of what it found; None where it was not begun."""
    if outcome is None:
        return None
    return {
        "tried": outcome.tried,
        "refused": outcome.refused,
        "seconds": outcome.seconds,
        "interrupted": outcome.interrupted,
        "reproduce": outcome.command(plan.shape, *_on(plan)) if beyond else None,
        "found": _json(*beyond) if beyond else None,
    }


def _search_text(outcome: SearchOutcome | None, plan: planning.Plan, beyond: tuple[RunRecord, Path] | None) -> str:
    if outcome is None:
        return "search: not begun, because the plan has findings"
    cut = ", interrupted" if outcome.interrupted else ""
    refused = f", {outcome.refused} more refused" if outcome.refused else ""
    covered = f"{outcome.tried} cases in {outcome.seconds} s{cut}: {outcome.extent}{refused}"
    if beyond is None:
        return f"search: no finding in {covered}"
    command = outcome.command(plan.shape, *_on(plan))
    return f"search: found a case that fails, after {covered}\n{_text(*beyond)}\nreproduce {command}"


def _on(plan: planning.Plan) -> tuple[str, ...]:
    return ("--device", "cuda") if plan.backend == "cuda" else ()


def _named(names: tuple[str, ...]) -> tuple[str, ...] | None:
    return tuple(name for name in names if name != "none") if names else None


def _json(record: RunRecord, folder: Path) -> dict[str, object]:
    """The shape, the summary, every finding, and where the record and its page lie."""
    return {
        "shape": record.plan.shape,
        **msgspec.structs.asdict(record.summary),
        "cases": len(record.cases),
        "families": families_run(record),
        "findings": [finding_json(each) for each in findings(record)],
        "relations": [relation_json(each) for each in related_variants(record)],
        "evidence": str(folder),
        "page": page_name(folder),
    }


def _extent(record: RunRecord) -> str:
    """How many cases and input families ran, where there are families."""
    families = families_run(record)
    if not families:
        return ""
    cases = len(record.cases)
    return f"; {cases} case{'s' if cases > 1 else ''}, {len(families)} input famil{'ies' if families[1:] else 'y'}"


def relation_json(found: RelatedVariant) -> dict[str, object]:
    """How a variant compares with its parent, where it need not leave the same bytes; errors are texts."""
    return {
        "variant": found.variant,
        "parent": found.parent,
        "relation": found.relation,
        "verdict": found.verdict,
        "words": found.sentence,
        "error": found.errors.mine.text if found.errors else None,
        "parents_error": found.errors.parents.text if found.errors else None,
    }


def finding_json(found: CheckFinding) -> dict[str, object]:
    """A finding; `measured` and `limit` are texts, since JSON has no NaN."""
    result = found.result
    return {
        "check": result.check,
        "variant": found.audit.variant,
        "case": found.audit.case,
        "steps": found.steps,
        "verdict": result.verdict,
        "detail": result.detail,
        "measured": result.measured.text if result.measured else None,
        "limit": result.limit.text if result.limit else None,
        "where": result.where,
    }


def _text(record: RunRecord, folder: Path) -> str:
    summary = record.summary
    lines = []
    found = findings(record)
    for finding in found[:_SHOWN]:
        result = finding.result
        lines.append(f"{result.verdict:12} {result.check}: {finding.scope}\n{'':13}{result.detail}")
        if result.measured and result.limit:
            where = f"; {result.where}" if result.where else ""
            lines.append(f"{'':13}measured {result.measured.text}, limit {result.limit.text}{where}")
    if len(found) > _SHOWN:
        lines.append(f"... and {len(found) - _SHOWN} more; the report has them all")
    lines += [f"{'relation':12} {each.sentence}" for each in related_variants(record)[:_SHOWN]]
    if summary.vacuous:
        lines.append(
            f"inconclusive vacuity: no check of this plan can tell a right result from {', '.join(summary.vacuous)}"
        )
    if summary.indistinguishable:
        lines.append(
            "inconclusive arguments: exchanging them changes nothing in any case of this plan; add a case in which "
            "they differ, or pass one name for both\n"
            + "\n".join(f"{'':13}{pair}" for pair in summary.indistinguishable[:_SHOWN])
        )
        if len(summary.indistinguishable) > _SHOWN:
            lines.append(f"{'':13}... and {len(summary.indistinguishable) - _SHOWN} more")
    converted = conversions.lines_of(one.converted for one in record.cases)
    if rounded := "; ".join(line for line in converted if conversions.rounds(line)):
        lines.append(f"converted    {rounded}")
    lines += [
        f"{summary.verdict}: {summary.passed} passed, {summary.failed} failed, {summary.inconclusive} inconclusive, "
        f"of {summary.planned} planned, {summary.ran} ran, in {summary.seconds} s{_extent(record)}",
        record_paths(folder),
    ]
    return "\n".join(lines)
