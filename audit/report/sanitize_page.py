"""One session of sanitizers as one offline HTML page: the verdict, the findings, then what each tool proved."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from audit.checks.result import Verdict, worst
from audit.project import Project
from audit.records.folder import REPORT
from audit.records.sanitize import KIND, SanitizeRecord, Side, ToolCheck, ToolFinding
from audit.report.point import NamedPoint, Point
from audit.report.template import template

_ORDER = {"fail": 0, "inconclusive": 1, "pass": 2}
_NO_FILES: Mapping[str, bytes] = {}
_MARKS = {"pass": "✓", "fail": "✗", "inconclusive": "?"}


def pages(record: SanitizeRecord, files: Mapping[str, bytes], _project: Project | None) -> dict[str, bytes]:
    """The page of a session, by name."""
    return {REPORT: render_sanitize(record, files).encode()}


def points(record: SanitizeRecord) -> Iterator[NamedPoint]:
    """What two sessions can be compared by."""
    for one in record.checked:
        yield ("tool", f"{one.tool}, {one.variant}, {one.case}"), Point.of(one.verdict)
    for canary in record.canaries:
        good = canary.found and canary.twin_clean
        yield ("canary", f"{canary.tool}, {canary.name}"), Point.of("pass" if good else "inconclusive")


def render_sanitize(evidence: SanitizeRecord, files: Mapping[str, bytes] = _NO_FILES) -> str:
    """The page for one session. Everything from the evidence is escaped."""
    return template("sanitize.html.j2").render(
        evidence=evidence,
        record_sha256=KIND.digest(evidence, files),
        summary=evidence.summary,
        troubled=sorted(
            (one for one in evidence.checked if one.verdict != "pass"), key=lambda one: _ORDER[one.verdict]
        ),
        suppressed=[(one, finding) for one in evidence.checked for finding in one.findings if finding.suppressed],
        sections=_sections(evidence),
        matrix=_matrix(evidence),
        reproduce=lambda one: _reproduce(evidence, one),
        open_findings=_open,
        side_text=_side_text,
        marks=_MARKS,
    )


def _sections(evidence: SanitizeRecord) -> dict[str, str]:
    """Anchor -> title of every section that has something in it, in the order of the page."""
    sections = {
        "findings": ("Findings", evidence.summary.verdict != "pass"),
        "matrix": ("Variants × tools", evidence.plan.variants),
        "tools": ("Tools", evidence.tools),
        "canaries": ("Canaries", evidence.canaries),
        "suppressions": ("Suppressions", evidence.suppressions),
        "checked": ("Everything", evidence.checked),
        "identity": ("Identity", evidence.builds),
    }
    return {anchor: title for anchor, (title, has_content) in sections.items() if has_content}


def _matrix(evidence: SanitizeRecord) -> list[tuple[str, list[tuple[Verdict | str, str]]]]:
    """A row for each variant, a cell for each tool: its verdict over all cases and a sentence; `absent` did not run."""
    rows = []
    for variant in evidence.plan.variants:
        cells: list[tuple[Verdict | str, str]] = []
        for tool in evidence.plan.tools:
            mine = [one for one in evidence.checked if (one.variant, one.tool) == (variant, tool)]
            if not mine:
                cells.append(("absent", "did not run"))
                continue
            launches = sum(one.launches for one in mine)
            seconds = sum(one.seconds for one in mine)
            counts = f"{_many(len(mine), 'case')}, {_many(launches, 'launch', 'es')}, {seconds:.1f} s"
            cells.append((worst([one.verdict for one in mine]), counts))
        rows.append((variant, cells))
    return rows


def _many(number: int, noun: str, ending: str = "s") -> str:
    return f"{number} {noun}{'' if number == 1 else ending}"


def _reproduce(evidence: SanitizeRecord, one: ToolCheck) -> str:
    plan = evidence.plan
    words = ["audit", "sanitize", "--shape", plan.shape, "--tool", one.tool, "--variant", one.variant]
    return shlex.join([*words, "--case", one.case, *(["--device", "cuda"] if plan.backend == "cuda" else [])])


def _open(one: ToolCheck) -> list[ToolFinding]:
    return [finding for finding in one.findings if not finding.suppressed]


def _side_text(side: Side) -> str:
    where = f"{side.file}:{side.line}" if side.line else side.file or "no line reported"
    who = " ".join(f"{what} {span}" for what, span in (("threads", side.threads), ("blocks", side.blocks)) if span)
    return f"{side.what} at {where}" + (f", {side.function}" if side.function else "") + (f", {who}" if who else "")
