"""The group of commands, and the one place where errors become exit codes."""

from __future__ import annotations

import importlib
import os
import sys
from typing import NoReturn

import click

from audit import __version__
from audit.errors import AuditError

# Before numpy is loaded: cases run side by side on all cores, and threads inside each product only get in their way.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

PASS, FINDINGS, USAGE, INCONCLUSIVE = 0, 1, 2, 3

_COMMANDS = {
    "run": "Audit every planned case of a shape.",
    "sanitize": "Look for races, stray accesses, and what nobody wrote.",
    "bench": "Time variants in pairs on a GPU.",
    "list": "Show shapes, variants, default plans and captures.",
    "report": "Render evidence as one HTML page.",
    "diff": "What changed from one evidence to another.",
    "verify": "Is evidence whole, unaltered, and of today's sources?",
    "retain": "Keep evidence, small enough for a repository.",
    "gate": "One verdict by the project's policy, for CI.",
    "capture": "Record inputs from a live model.",
    "faults": "Plant every known fault and see it caught.",
    "freeze": "Keep a built variant, to compare with later.",
    "doctor": "Say what this machine can run, and what is missing.",
}


class Commands(click.Group):
    """A group that knows its commands by name and imports one only to call it."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The names of all commands."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import one command."""
        if cmd_name not in _COMMANDS:
            return None
        command = importlib.import_module(f"audit.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The list in `--help`, written without importing any command."""
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="audit")
def cli() -> None:
    """Check that a GPU kernel still computes the same thing: the same bytes as its parent, an error that the
    arithmetic permits, nothing touched that must not be.

    Exit codes: 0 pass, 1 findings, 2 usage or configuration, 3 inconclusive (something planned was not shown).
    """


def main() -> NoReturn:
    """Entry point of the command `audit`."""
    try:
        code = cli.main(standalone_mode=False)  # click returns the code of its own Exit here
    except AuditError as error:
        click.echo(f"audit: {error}", err=True)
        sys.exit(USAGE)
    except click.ClickException as error:
        error.show()
        sys.exit(USAGE)
    except (click.Abort, KeyboardInterrupt):
        click.echo("audit: interrupted; no evidence was written", err=True)
        sys.exit(INCONCLUSIVE)
    sys.exit(code if isinstance(code, int) else PASS)
