"""Every help text begins with a verb and is a sentence; every verdict has an exit code."""

from __future__ import annotations

from importlib import import_module
from typing import get_args

import click
import pytest

from audit.checks.result import Verdict
from audit.cli.exit_codes import CODES
from audit.cli.main import cli

NAMES = cli.list_commands(click.Context(cli))
VERBS = {
    "Add", "Audit", "Check", "Compare", "Copy", "Generate", "Give", "Judge", "Keep", "List", "Look", "Model", "Open",
    "Plant", "Print", "Record", "Render", "Replace", "Require", "Run", "Launch", "Show", "Sign", "Stop", "Time", "Try",
    "Use", "Write", "Build", "Match", "Take", "Define",
}  # fmt: skip


def command(name: str) -> click.Command:
    found = import_module(f"audit.cli.{name}").command
    assert isinstance(found, click.Command)
    return found


def test_the_first_word_of_every_option_is_a_verb() -> None:
    seen = 0
    for name in NAMES:
        for option in command(name).params:
            if isinstance(option, click.Option):
                text = option.help or ""
                assert text.partition(" ")[0] in VERBS, (name, option.name, text)
                assert text.endswith((".", ".)")), (name, option.name, text)
                seen += 1
    assert seen > 50


@pytest.mark.parametrize("name", NAMES)
def test_the_first_word_of_every_command_is_a_verb(name: str) -> None:
    assert (command(name).help or "").partition(" ")[0] in VERBS
    listed = click.Context(cli).get_help().splitlines()
    (line,) = [line for line in listed if line.startswith(f"  {name} ")]
    assert line.split()[1] in VERBS
    assert line.endswith(".")


def test_every_verdict_has_an_exit_code_of_its_own() -> None:
    assert set(CODES) == set(get_args(Verdict))
    assert (CODES["pass"], CODES["fail"], CODES["inconclusive"]) == (0, 1, 3)
