"""The verdict of the gate for people and for other programs: one file a format."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from audit.gate.formats.github import summary
from audit.gate.formats.html import html
from audit.gate.formats.junit import junit
from audit.gate.formats.sarif import sarif
from audit.gate.formats.text import text
from audit.gate.verdict import Gate
from audit.printable import printable_json

__all__ = ["FORMATS", "as_json"]


def as_json(gate: Gate) -> str:
    """The whole verdict as one JSON object."""
    return printable_json(msgspec.json.format(msgspec.json.encode(gate), indent=1))


FORMATS: Mapping[str, Callable[[Gate], str]] = {
    "text": text,
    "html": html,
    "json": as_json,
    "junit": junit,
    "sarif": sarif,
    "github": summary,
}
