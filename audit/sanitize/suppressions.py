"""Findings that a project accepts until an expiry date: `suppressions` in `[tool.kernel-audit]`.

    [[tool.kernel-audit.suppressions]]
    name = "bulk copy"
    tool = "racecheck"
    kind = "race"
    where = "kernels/rows.cuh:41"   # or the kernel: "grouped_control_splits"
    reason = "the copy's own barrier orders it, which racecheck does not model"
    expires = 2027-01-31
    device = "cuda"                  # omit it to cover the CPU too

Every report that a rule concerns shows the rule. An expired rule suppresses nothing. A rule that matches nothing no
longer describes the source. Both are complaints, and a session with a complaint does not pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

import msgspec

from audit.compile.device_order import include_folders
from audit.compile.source_words import nvcc_words
from audit.compile.sources import project_sources
from audit.errors import AuditError, ProjectError
from audit.plan import Backend
from audit.project import TABLE, Project
from audit.records.sanitize import TOOLS, Suppression, ToolFinding, expired
from audit.spec import Operator, Source

_FIELDS = ("name", "tool", "kind", "where", "reason", "expires")
_SOURCE_LINE = re.compile(r"(?P<file>.+):(?P<line>\d+)")


def declared(project: Project) -> tuple[Suppression, ...]:
    """The project's rules. Raises ProjectError with the rule, the field and the fix."""
    rules = tuple(
        _rule(f"{project.root / 'pyproject.toml'}: [tool.{TABLE}] suppressions[{index}]", table)
        for index, table in enumerate(project.settings.suppressions)
    )
    names = [rule.name for rule in rules]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ProjectError(
            f"{project.root / 'pyproject.toml'}: [tool.{TABLE}] suppressions: expected distinct names, but two are "
            f"named {twice!r}; rename one"
        )
    return rules


def concerning(
    project: Project, rules: Iterable[Suppression], operator: str, backend: Backend
) -> tuple[Suppression, ...]:
    """The rules that concern a session of an operator on a backend. This excludes rules for the other backend and rules
    about other operators' kernels only. A rule about no known kernel concerns every session."""
    selected = []
    for rule in rules:
        operators = [each.name for each in project.operators.values() if _is_about(rule, project, each)]
        if rule.device in ("", backend) and (operator in operators or not operators):
            selected.append(rule)
    return tuple(selected)


def apply(rules: Iterable[Suppression], findings: Iterable[ToolFinding], today: date) -> tuple[ToolFinding, ...]:
    """The findings, each with the name of the first valid rule that suppresses it. Expired rules are not valid."""
    valid = [rule for rule in rules if not expired(rule, today)]
    return tuple(
        msgspec.structs.replace(finding, suppressed=next((rule.name for rule in valid if matches(rule, finding)), ""))
        for finding in findings
    )


def matches(rule: Suppression, finding: ToolFinding) -> bool:
    """Whether a rule matches a finding by tool, kind, and either its kernel or the line of one of its sides."""
    if (rule.tool, rule.kind) != (finding.tool, finding.kind):
        return False
    if line := _SOURCE_LINE.fullmatch(rule.where):
        return any((side.file, side.line) == (line["file"], int(line["line"])) for side in finding.sides)
    return rule.where in (finding.kernel, re.split(r"[<(]", finding.kernel, maxsplit=1)[0])


def _is_about(rule: Suppression, project: Project, operator: Operator) -> bool:
    """Whether an operator's variants use a rule's file, or a file of theirs names the rule's kernel."""
    line = _SOURCE_LINE.fullmatch(rule.where)
    name = re.compile(rb"\b" + re.escape(re.split(r"[<(]", rule.where, maxsplit=1)[0].encode()) + rb"\b")
    for code in (variant.code for variant in operator.variants if isinstance(variant.code, Source)):
        try:
            folders = include_folders(nvcc_words(code))
            files = project_sources(project.root, project.root / code.path, folders, code.also)
        except AuditError:  # the session reports it, if it runs that variant
            continue
        if line["file"] in files if line else any(name.search(text) for text in files.values()):
            return True
    return False


def _rule(entry: str, table: Mapping[str, Any]) -> Suppression:
    known = (*_FIELDS, "device")
    if unknown := sorted(set(table) - set(known)):
        raise ProjectError(f"{entry}: unknown field {unknown[0]!r}; known fields: {', '.join(known)}")
    texts = {}
    for field in _FIELDS:
        value = table.get(field)
        if field == "expires" and isinstance(value, date):
            value = value.isoformat()
        if not isinstance(value, str) or not value.strip():
            raise ProjectError(f"{entry} {field}: expected a non-empty text, but got {value!r}; write one")
        texts[field] = value.strip()
    if texts["tool"] not in TOOLS:
        raise ProjectError(f"{entry} tool: expected one of {', '.join(TOOLS)}, but got {texts['tool']!r}")
    try:
        texts["expires"] = date.fromisoformat(texts["expires"]).isoformat()
    except ValueError:
        raise ProjectError(
            f"{entry} expires: expected a date such as 2027-01-31, but got {texts['expires']!r}"
        ) from None
    texts["device"] = device = table.get("device", "")
    if device not in ("", "host", "cuda"):
        raise ProjectError(f"{entry} device: expected host or cuda, but got {device!r}; omit it for both")
    return msgspec.convert(texts, Suppression)
