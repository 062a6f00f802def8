"""The verdict for GitHub Actions: a step summary in Markdown, and annotations of source lines."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from audit.gate.verdict import Condition, Gate, GateFinding, worst_first
from audit.printable import printable

LIMIT = 2**20
"""Bytes of a step summary; GitHub refuses a longer one."""
ANNOTATIONS = 10
"""Of one kind in one step; GitHub drops the others."""
_SIGN = {"pass": "✅", "warn": "⚠️", "inconclusive": "❔", "fail": "❌"}
_CELL = 500
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~-])")


def summary(gate: Gate) -> str:
    """Markdown below the limit: the verdict, every condition, the findings. What has no room is counted."""
    conditions = worst_first(gate.conditions)
    open_ = [found for found in gate.found if not found.accepted]
    head = [
        f"## {_SIGN[gate.verdict]} kernel-audit: {_escaped(gate.headline)}",
        "",
        "| | condition | measured | required | why | evidence |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    body = [*(_row(condition) for condition in conditions)]
    if open_:
        body += ["", "### Findings", ""]
        body += [f"- {_escaped(found.rule)}: {_escaped(found.message)} `{found.fingerprint}`" for found in open_]
    return "\n".join([*head, *_fitting(body, LIMIT - len("\n".join(head).encode()) - 200)]) + "\n"


def commands(gate: Gate) -> list[str]:
    """Workflow commands, at most ten: failed conditions by their findings' lines; then conditions without any."""
    lines = [_command(found) for found in gate.found if not found.accepted and found.level == "error"]
    lines += [
        f"::error title={_property(condition.name)}::{_data(_sentence(condition))}"
        for condition in worst_first(gate.conditions)
        if condition.verdict in ("fail", "inconclusive")
    ]
    return list(dict.fromkeys(lines))[:ANNOTATIONS]


def _command(found: GateFinding) -> str:
    line = found.lines[0] if found.lines else None
    where = f"file={_property(line.file)},line={max(line.line, 1)}," if line else ""
    return f"::error {where}title={_property(found.rule)}::{_data(found.message)}"


def _sentence(condition: Condition) -> str:
    why = f". {condition.detail}" if condition.detail else ""
    return f"{condition.verdict}: {condition.measured}; required: {condition.required}{why}"


def _row(condition: Condition) -> str:
    cells = (condition.name, condition.measured, condition.required, condition.detail, condition.path)
    return f"| {_SIGN[condition.verdict]} | {' | '.join(_escaped(cell) for cell in cells)} |"


def _fitting(lines: list[str], room: int) -> Iterator[str]:
    for number, line in enumerate(lines):
        room -= len(line.encode()) + 1
        if room < 0:
            yield f"\n… and {len(lines) - number} more lines, for which a step summary has no room"
            return
        yield line


def _escaped(text: str) -> str:
    """One line of Markdown that shows the text as it is."""
    text = printable(text)
    short = text if len(text) <= _CELL else text[:_CELL] + "…"
    return _SPECIAL.sub(r"\\\1", html.escape(" ".join(short.split()), quote=False))


def _data(text: str) -> str:
    return printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
