"""The verdict for a terminal: what does not hold first, the verdict last."""

from __future__ import annotations

from audit.gate.verdict import Gate, worst_first

_SHOWN = 20


def text(gate: Gate) -> str:
    """One line a condition, with its reason below it; then findings that nothing accepts, and the verdict."""
    lines = []
    for one in worst_first(gate.conditions):
        lines.append(f"{one.verdict:12} {one.name}: {one.measured} (required: {one.required})")
        if one.detail and one.verdict != "pass":
            lines.append(f"{'':13}{one.detail}")
        if one.path and one.verdict != "pass":
            lines.append(f"{'':13}{one.path}")
    open_ = [found for found in gate.found if not found.accepted]
    for found in open_[:_SHOWN]:
        place = next((f"{place.file}:{place.line}" if place.line else place.file for place in found.places), "")
        lines.append(f"{found.level:12} {found.rule}: {found.message}\n{'':13}{place} fingerprint {found.fingerprint}")
    if len(open_) > _SHOWN:
        lines.append(f"... and {len(open_) - _SHOWN} more findings; --format json has them all")
    lines.append(gate.told)
    return "\n".join(map(printable, lines))


def printable(text: str) -> str:
    """Without what moves a terminal's cursor or turns its text around: names in evidence may be anybody's."""
    return "".join(each if each.isprintable() or each == "\n" else "\N{REPLACEMENT CHARACTER}" for each in text)
