"""Every command that a page names exists, and takes the options that the page gives it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from importlib import import_module

import click
import pytest

from audit import pytest_plugin

from .pages import PAGES

_SPAN = re.compile(r"`([^`\n]+)`|^(?:\$ |- run: |[ ]*)((?:audit|pytest) [^`\n]*)$", re.MULTILINE)
_AUDIT = re.compile(r"\baudit [a-z].*")


def commands() -> list[str]:
    """Every `audit ...` of a code span, of a line in a block, or behind `&&`."""
    found = set()
    for page in PAGES:
        for span, line in _SPAN.findall(page.read_text()):
            found |= {part.strip() for part in (span or line).split("&&") if _AUDIT.fullmatch(part.strip())}
    return sorted(found)


@pytest.mark.parametrize("command", commands())
def test_every_command_that_is_named_exists(command: str) -> None:
    _, name, *words = shlex.split(command.replace("...", ""), comments=True)
    known: click.Command = import_module(f"audit.cli.{name}").command
    options = {option for parameter in known.params for option in parameter.opts}
    assert {word.partition("=")[0] for word in words if word.startswith("-")} <= options | {"--help"}


def test_every_command_is_named() -> None:
    from audit.cli.main import cli

    named = {command.split()[1] for command in commands()}
    assert named >= set(cli.list_commands(click.Context(cli)))


def test_options_of_the_pytest_plugin_exist() -> None:
    spans = {option for page in PAGES for option in re.findall(r"--audit[a-z-]*", page.read_text())}
    parser = pytest.Parser(_ispytest=True)
    pytest_plugin.pytest_addoption(parser)
    known = {name for group in parser._groups for option in group.options for name in option.names()}
    assert {"--audit", "--audit-shape"} <= spans <= known


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion_is_there_as_documented(shell: str) -> None:
    page = next(page for page in PAGES if page.name == "command-line.md").read_text()
    assert f"_AUDIT_COMPLETE={shell}_source audit" in page
    program = "import sys; sys.argv = ['audit']; from audit.cli import main; main()"
    environment = {**os.environ, "_AUDIT_COMPLETE": f"{shell}_source"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)
    if "not supported" in done.stderr:  # of an old bash
        pytest.skip(done.stderr)
    assert "_AUDIT_COMPLETE" in done.stdout, done.stderr
