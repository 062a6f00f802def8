"""The verdict for a terminal: what does not hold, a count of the rest, the verdict last."""

from __future__ import annotations

from audit.gate.verdict import Condition, Gate, GateFinding, worst_first
from audit.printable import printable

_SHOWN = 20


def text(gate: Gate, *, verbose: bool = False) -> str:
    """One line a condition that does not hold, its reason below it; then open findings and the verdict.

    `verbose` lists the conditions that hold, too, and below each finding the entry of the baseline that accepts it.
    An open finding is one that nothing accepts.
    """
    listed = [one for one in worst_first(gate.conditions) if verbose or one.verdict != "pass"]
    lines = [line for one in listed for line in _condition(one)]
    if held := len(gate.conditions) - len(listed):
        lines.append(
            f"{held} conditions hold; --verbose lists them" if held > 1 else "1 condition holds; --verbose shows it"
        )
    findings = [found for found in gate.found if not found.accepted]
    lines += [line for found in findings[:_SHOWN] for line in _finding(found, verbose=verbose)]
    if len(findings) > _SHOWN:
        lines.append(f"... and {len(findings) - _SHOWN} more findings; --format json lists all")
    lines.append(gate.headline)
    return "\n".join(map(printable, lines))


def _condition(one: Condition) -> list[str]:
    lines = [f"{one.verdict:12} {one.name}: {one.measured} (required: {one.required})"]
    if one.verdict != "pass":
        lines += [f"{'':13}{part}" for part in (one.detail, one.path) if part]
    return lines


def _finding(found: GateFinding, *, verbose: bool) -> list[str]:
    where = next((f"{at.file}:{at.line}" if at.line else at.file for at in found.lines), "")
    return [f"{found.level:12} {found.rule}: {found.message}", f"{'':13}{where} fingerprint {found.fingerprint}"] + (
        found.entry.splitlines() if verbose else []
    )
