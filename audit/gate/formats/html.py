"""The verdict as one offline HTML page: what does not hold first, with where to look; the rest folded."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import msgspec

from audit.gate.verdict import Gate, worst_first
from audit.records.folder import REPORT
from audit.report.template import template

_MARKS = {"pass": "✓", "warn": "!", "inconclusive": "?", "fail": "✗"}
_COLOURS = {"warn": "inconclusive"}  # the page's style has colours for verdicts; a warning is not one
_MOST_FINDINGS = 500

Link = Callable[[str], str]


class _Destination(msgspec.Struct, frozen=True):
    """Where to look: a path, the URL of a record's page where it can be reached, else the command that renders it."""

    path: str
    url: str = ""
    command: str = ""


def html(gate: Gate, link: Link = lambda _page: "") -> str:
    """The page. `link` gives the URL of a record's page (a path of the project) as seen from where this page will
    stand, empty where it cannot be reached."""
    conditions = worst_first(gate.conditions)
    findings = [found for found in gate.found if not found.accepted]

    def destination(path: str) -> _Destination:
        folder = path.removesuffix(f"/{REPORT}")
        if folder not in gate.evidence:
            return _Destination(path)
        if url := link(f"{folder}/{REPORT}"):
            return _Destination(folder, url)
        return _Destination(folder, command=shlex.join(["audit", "report", folder]))

    return template("gate.html.j2").render(
        gate=gate,
        failing=[one for one in conditions if one.verdict != "pass"],
        holding=[one for one in conditions if one.verdict == "pass"],
        findings=findings[:_MOST_FINDINGS],
        more_findings=max(0, len(findings) - _MOST_FINDINGS),
        accepted=[found for found in gate.found if found.accepted],
        destination=destination,
        marks=_MARKS,
        colour=lambda standing: _COLOURS.get(standing, standing),
    )


def links_from(folder: Path, root: Path) -> Link:
    """Links from a page in `folder` to pages of records of the project at `root`, where these exist."""

    def link(page: str) -> str:
        file = root / page
        return quote(os.path.relpath(file, folder)) if file.is_file() else ""

    return link
