"""The verdict of a gate, the conditions that make it, and the findings behind them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Literal

import msgspec

from audit.checks.result import Verdict

SCHEMA = 1
Standing = Literal["pass", "warn", "inconclusive", "fail"]
Level = Literal["error", "warning"]


class Condition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that the policy asks for, with what was measured; `path` leads to what shows it."""

    name: str
    required: str
    measured: str
    verdict: Standing
    detail: str = ""  # sentences: what is missing, what to do
    path: str = ""  # relative to the project's folder, where it lies inside


class SourceLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of a project's file; `line` 0 is the whole file. `what` says what the line does."""

    file: str
    line: int = 0
    what: str = ""


class GateFinding(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One failed check, or one thing that a sanitizer reports. `lines`: the later access of a race first."""

    rule: str  # check/bytes, memcheck/out-of-bounds
    level: Level
    message: str
    variant: str
    case: str
    lines: tuple[SourceLine, ...] = msgspec.field(name="places")
    fingerprint: str  # the same after lines have moved, and for other threads
    evidence: str  # the folder that holds it
    accepted: str = ""  # the reason, where a baseline entry or a suppression accepts it
    found: str = ""  # what was found: the kind of failure and the source line, without what changes from run to run

    @property
    def entry(self) -> str:
        """The entry of the baseline that accepts it, but for a reason and a last day, which people write."""
        lines = {
            "fingerprint": self.fingerprint,
            "check": self.rule,
            "variant": self.variant,
            "case": self.case,
            "found": self.found,
        }
        return "\n".join(["[[accepted]]", *(f"{name} = {_quoted(text)}" for name, text in lines.items())])


def _quoted(text: str) -> str:
    """A string as TOML takes it; no character of it can end a line or hide."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(each if each.isprintable() else f"\\U{ord(each):08X}" for each in quoted)


class Gate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole verdict."""

    schema: int
    kind: Literal["gate"]
    tool: str
    policy: str
    started: str  # UTC, ISO 8601
    commit: str | None
    verdict: Verdict
    conditions: tuple[Condition, ...]
    found: tuple[GateFinding, ...]
    evidence: tuple[str, ...]  # the folder of every record that the gate read

    def count(self, standing: Standing) -> int:
        """How many conditions have this standing."""
        return sum(condition.verdict == standing for condition in self.conditions)

    @property
    def headline(self) -> str:
        """The verdict in a line."""
        number = len(self.conditions)
        counts = ((self.count("fail"), "failed"), (self.count("inconclusive"), "inconclusive"))
        words = [f"{count} {what}" for count, what in counts if count] or [f"{self.count('pass')} hold"]
        warned = self.count("warn")
        return (
            f"{self.verdict}: of {number} conditions {', '.join(words)}"
            f"{f', {warned} with a warning' if warned else ''} (policy {self.policy})"
        )


def overall(conditions: Iterable[Condition]) -> Verdict:
    """The verdict over all: a failed condition outweighs an inconclusive one; none at all is inconclusive. A warning
    passes."""
    standings = {condition.verdict for condition in conditions}
    if "fail" in standings:
        return "fail"
    return "pass" if standings and "inconclusive" not in standings else "inconclusive"


WORST_FIRST: tuple[Standing, ...] = ("fail", "inconclusive", "warn", "pass")


def worst_first(conditions: Iterable[Condition]) -> list[Condition]:
    """What failed before what is inconclusive, before warnings, before what holds; else in the order given."""
    return sorted(conditions, key=lambda condition: WORST_FIRST.index(condition.verdict))
