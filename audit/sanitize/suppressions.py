"""Findings that a project knows and accepts, for a while: `suppressions` in `[tool.kernel-audit]`.

    [[tool.kernel-audit.suppressions]]
    name = "bulk copy"
    tool = "racecheck"
    kind = "race"
    where = "kernels/rows.cuh:41"   # or the kernel: "grouped_control_splits"
    reason = "the copy is ordered by its own barrier, which racecheck does not follow"
    expires = 2027-01-31

A rule is shown in every report. One that is expired suppresses nothing, and one that matches nothing is no longer
true of the source: both are complaints, and a session with a complaint does not pass.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from typing import Any

import msgspec

from audit.errors import ProjectError
from audit.project import TABLE, Project
from audit.sanitize.schema import TOOLS, Finding, Suppression, Tool

_FIELDS = ("name", "tool", "kind", "where", "reason", "expires")
_PLACE = re.compile(r"(?P<file>.+):(?P<line>\d+)")


def declared(project: Project) -> tuple[Suppression, ...]:
    """The project's rules, or ProjectError that names the rule, the field and the fix."""
    rules = tuple(
        _rule(f"{project.root / 'pyproject.toml'}: [tool.{TABLE}] suppressions[{index}]", table)
        for index, table in enumerate(project.settings.suppressions)
    )
    names = [rule.name for rule in rules]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ProjectError(
            f"{project.root / 'pyproject.toml'}: [tool.{TABLE}] suppressions: two are named {twice!r}; rename one"
        )
    return rules


def apply(rules: Iterable[Suppression], findings: Iterable[Finding], today: date) -> tuple[Finding, ...]:
    """The findings, each with the name of the first rule that suppresses it; an expired rule suppresses nothing."""
    valid = [rule for rule in rules if not _expired(rule, today)]
    return tuple(
        msgspec.structs.replace(finding, suppressed=next((rule.name for rule in valid if matches(rule, finding)), ""))
        for finding in findings
    )


def matches(rule: Suppression, finding: Finding) -> bool:
    """Whether a rule is about a finding: its tool, its kind, and its kernel or the line of one of its sides."""
    if (rule.tool, rule.kind) != (finding.tool, finding.kind):
        return False
    if place := _PLACE.fullmatch(rule.where):
        return any((side.file, side.line) == (place["file"], int(place["line"])) for side in finding.sides)
    return rule.where in (finding.kernel, re.split(r"[<(]", finding.kernel, maxsplit=1)[0])


def counted(rules: Iterable[Suppression], findings: Iterable[Finding]) -> tuple[Suppression, ...]:
    """The rules, each with the number of findings of the whole session that it suppressed."""
    names = [finding.suppressed for finding in findings]
    return tuple(msgspec.structs.replace(rule, used=names.count(rule.name)) for rule in rules)


def complaints(
    rules: Sequence[Suppression], today: date, ran: Collection[Tool], *, narrowed: bool = False
) -> tuple[str, ...]:
    """Why counted rules make a session fail, a sentence each.

    Whether a rule is unused can only be told where its tool `ran`, over all that is planned by default: not if the
    session was `narrowed` to some variants or cases.
    """
    found = []
    for rule in rules:
        if _expired(rule, today):
            found.append(
                f"suppression {rule.name!r} expired on {rule.expires}: mend what it suppresses, or give it a new date "
                f"and reason in [tool.{TABLE}]"
            )
        elif rule.used == 0 and rule.tool in ran and not narrowed:
            found.append(
                f"suppression {rule.name!r} matched nothing ({rule.tool}, {rule.kind}, {rule.where}): remove it from "
                f"[tool.{TABLE}]"
            )
    return tuple(found)


def _expired(rule: Suppression, today: date) -> bool:
    """A rule holds through its last day."""
    return date.fromisoformat(rule.expires) < today


def _rule(place: str, table: Mapping[str, Any]) -> Suppression:
    if unknown := sorted(set(table) - set(_FIELDS)):
        raise ProjectError(f"{place}: unknown field {unknown[0]!r}; known: {', '.join(_FIELDS)}")
    texts = {}
    for field in _FIELDS:
        value = table.get(field)
        if field == "expires" and isinstance(value, date):
            value = value.isoformat()
        if not isinstance(value, str) or not value.strip():
            raise ProjectError(f"{place} {field}: expected a text that is not empty, but got {value!r}; write one")
        texts[field] = value.strip()
    if texts["tool"] not in TOOLS:
        raise ProjectError(f"{place} tool: expected one of {', '.join(TOOLS)}, but got {texts['tool']!r}")
    try:
        texts["expires"] = date.fromisoformat(texts["expires"]).isoformat()
    except ValueError:
        raise ProjectError(
            f"{place} expires: expected a date such as 2027-01-31, but got {texts['expires']!r}"
        ) from None
    return msgspec.convert(texts, Suppression)
