"""Printing: verdict words in colour on a terminal, plain text in a pipe, in a file and where NO_COLOR is set."""

from __future__ import annotations

import os
import re

import click

from audit.gate.formats.text import printable

_COLOURS = {
    "pass": "green", "ok": "green", "better": "green", "caught": "green",
    "fail": "red", "FAIL": "red", "error": "red", "MISSING": "red", "worse": "red", "NOT CAUGHT": "red",
    "inconclusive": "yellow", "warn": "yellow", "warning": "yellow", "absent": "yellow",
}  # fmt: skip
_WORD = re.compile(rf"^({'|'.join(_COLOURS)})(?=[ :]|$)", re.MULTILINE)


def echo(text: str, *, err: bool = False) -> None:
    """Print text, with a verdict word that begins a line in its colour. Names in records may be anybody's, so what
    could move the cursor is replaced."""
    click.echo(coloured(printable(text)), err=err)  # which strips colours where there is no terminal


def coloured(text: str) -> str:
    """The text with its verdict words in colour, unless NO_COLOR is set (https://no-color.org)."""
    if os.environ.get("NO_COLOR"):
        return text
    return _WORD.sub(lambda found: click.style(found[1], fg=_COLOURS[found[1]], bold=True), text)
