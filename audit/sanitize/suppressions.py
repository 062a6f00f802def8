"""Findings that a project knows and accepts, for a while: `suppressions` in `[tool.kernel-audit]`.

    [[tool.kernel-audit.suppressions]]
    name = "bulk copy"
    tool = "racecheck"
    kind = "race"
    where = "kernels/rows.cuh:41"   # or the kernel: "grouped_control_splits"
    reason = "the copy is ordered by its own barrier, which racecheck does not follow"
    expires = 2027-01-31
    device = "cuda"                  # left out: on a CPU too

A rule is shown in every report that it concerns. One that is expired suppresses nothing, and one that matches nothing
is no longer true of the source: both are complaints, and a session with a complaint does not pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

import msgspec

from audit.compile.sources import project_sources
from audit.errors import AuditError, ProjectError
from audit.plan import Backend
from audit.project import TABLE, Project
from audit.records.sanitize import TOOLS, Finding, Suppression, expired
from audit.spec import Operator, Source

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


def concerning(
    project: Project, rules: Iterable[Suppression], operator: str, backend: Backend
) -> tuple[Suppression, ...]:
    """The rules that a session of an operator on a backend answers for: not those of the other backend, nor those that
    lie in other operators' kernels alone. One that lies in no kernel at all concerns every session."""
    found = []
    for rule in rules:
        homes = [one.name for one in project.operators.values() if _lies_in(rule, project, one)]
        if rule.device in ("", backend) and (operator in homes or not homes):
            found.append(rule)
    return tuple(found)


def apply(rules: Iterable[Suppression], findings: Iterable[Finding], today: date) -> tuple[Finding, ...]:
    """The findings, each with the name of the first rule that suppresses it; an expired rule suppresses nothing."""
    valid = [rule for rule in rules if not expired(rule, today)]
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


def _lies_in(rule: Suppression, project: Project, operator: Operator) -> bool:
    """Whether a rule's file belongs to an operator's variants, or its kernel is named in one that does."""
    place = _PLACE.fullmatch(rule.where)
    name = re.compile(rb"\b" + re.escape(re.split(r"[<(]", rule.where, maxsplit=1)[0].encode()) + rb"\b")
    for path in {variant.code.path for variant in operator.variants if isinstance(variant.code, Source)}:
        try:
            files = project_sources(project.root, project.root / path)
        except AuditError:  # the session tells of it, if it is to run that variant
            continue
        if place["file"] in files if place else any(name.search(text) for text in files.values()):
            return True
    return False


def _rule(place: str, table: Mapping[str, Any]) -> Suppression:
    known = (*_FIELDS, "device")
    if unknown := sorted(set(table) - set(known)):
        raise ProjectError(f"{place}: unknown field {unknown[0]!r}; known: {', '.join(known)}")
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
    texts["device"] = device = table.get("device", "")
    if device not in ("", "host", "cuda"):
        raise ProjectError(f"{place} device: expected host or cuda, but got {device!r}; leave it out for both")
    return msgspec.convert(texts, Suppression)
