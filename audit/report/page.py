"""One run as one offline HTML page: the verdict first, then what failed, then everything."""

from __future__ import annotations

import shlex
from functools import cache

import jinja2
import msgspec

from audit.checks.result import Figure, Result, Verdict, worst
from audit.evidence.schema import Audit, Evidence
from audit.report import tables

_ORDER = {"fail": 0, "inconclusive": 1, "pass": 2}
_MARKS = {"pass": "✓", "fail": "✗", "inconclusive": "?", "absent": "–"}


class Failure(msgspec.Struct, frozen=True):
    """A check that did not pass for one variant in one case: the first result, all steps, how to see it again."""

    audit: Audit
    result: Result
    steps: tuple[str, ...]
    command: str


def render(evidence: Evidence) -> str:
    """The page for one run. Everything from the evidence is escaped."""
    audits = sorted(evidence.audits, key=lambda audit: _ORDER[audit.verdict])
    failures = [
        Failure(audit, results[0], tuple(r.step for r in results if r.step), reproduce(evidence, audit))
        for audit in audits
        for results in _by_check(audit)
    ]
    failures.sort(key=lambda failure: _ORDER[failure.result.verdict])
    return _template().render(
        evidence=evidence,
        summary=evidence.summary,
        audits=audits,
        failures=failures,
        matrix=tables.matrix(evidence),
        errors=tables.error_table(evidence),
        captures=tables.captures(evidence),
        check_names=tables.check_names(evidence),
        check_verdict=_check_verdict,
        marks=_MARKS,
        figure=_figure,
    )


def reproduce(evidence: Evidence, audit: Audit) -> str:
    """The command that runs exactly one case of one variant (and its parents) again."""
    case = next(case for case in evidence.plan.cases if case.id == audit.case)
    words = ["audit", "run", "--shape", case.shape, "--variant", audit.variant]
    if case.capture:
        words += ["--capture", case.capture]
    else:
        words += ["--seed", str(case.seed)]
        for name, value in case.axes.items():
            words += ["--axis", f"{name}={value}"]
    return shlex.join([*words, "--arch", evidence.plan.arch])


def _by_check(audit: Audit) -> list[list[Result]]:
    """The results that did not pass, those of one check together."""
    found: dict[tuple[str, Verdict], list[Result]] = {}
    for result in audit.results:
        if result.verdict != "pass":
            found.setdefault((result.check, result.verdict), []).append(result)
    return list(found.values())


def _check_verdict(audit: Audit, check: str) -> Verdict | str:
    mine = [result.verdict for result in audit.results if result.check.partition(":")[0] == check]
    return worst(mine) if mine else "absent"


def _figure(figure: Figure | None) -> str:
    return "" if figure is None else figure.text


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("audit.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("run.html.j2")
