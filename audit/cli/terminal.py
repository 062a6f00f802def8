"""Printing, the one way out of every command: escaped, and with verdict words in colour on a terminal.

Text is plain in a pipe, in a file and where NO_COLOR is set.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

import click

from audit.printable import printable, printable_json, without_commands

_COLOURS = {
    "pass": "green", "ok": "green", "better": "green", "caught": "green",
    "fail": "red", "FAIL": "red", "error": "red", "MISSING": "red", "worse": "red", "NOT CAUGHT": "red",
    "inconclusive": "yellow", "warn": "yellow", "warning": "yellow", "absent": "yellow",
}  # fmt: skip
_WORD = re.compile(rf"^({'|'.join(_COLOURS)})(?=[ :]|$)", re.MULTILINE)


def echo(text: str, *, err: bool = False) -> None:
    """Print text, with a verdict word that begins a line in its colour.

    Names in records may be anybody's, so what could move the cursor or command GitHub's runner is escaped.
    """
    click.echo(coloured(printable(text)), err=err)  # which strips colours where there is no terminal


def echo_json(value: object) -> None:
    """Print a value as one line of JSON on stdout, escaped likewise."""
    import msgspec  # not at the top: completion of commands imports this module

    click.echo(printable_json(msgspec.json.encode(value)))


def echo_document(text: str) -> None:
    """Print a document whose format has escaped its texts; none of its lines is a command of a runner."""
    click.echo(without_commands(text))


def echo_commands(lines: Iterable[str]) -> None:
    """Print commands for GitHub's runner, which `audit.gate.formats.github` made."""
    for line in lines:
        click.echo(line)


def coloured(text: str) -> str:
    """The text with its verdict words in colour, unless NO_COLOR is set (https://no-color.org)."""
    if os.environ.get("NO_COLOR"):
        return text
    return _WORD.sub(lambda found: click.style(found[1], fg=_COLOURS[found[1]], bold=True), text)
