"""The group of commands, and the one place where errors become exit codes."""

from __future__ import annotations

import importlib
import io
import os
import sys
import traceback
from typing import TYPE_CHECKING, NoReturn

import click

from audit import __version__
from audit.cli.exit_codes import INCONCLUSIVE, PASS, USAGE
from audit.cli.terminal import echo
from audit.errors import AuditError
from audit.hooks import is_interruption

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# Before numpy is loaded: cases run side by side on all cores, and threads inside each product only get in their way.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_NAME, _COMPLETION = "audit", "_AUDIT_COMPLETE"
_COMMANDS = {
    "run": "Audit every planned case of a shape.",
    "compare": "Compare two kernels on the same inputs, without a project.",
    "sanitize": "Look for races, stray accesses and uninitialised reads.",
    "survey": "Run every shape of a project and keep one record of all.",
    "bench": "Time variants in pairs on a GPU.",
    "list": "Show shapes, variants, default plans and captures.",
    "report": "Render a record as one HTML page.",
    "diff": "Show what changed between two runs.",
    "verify": "Check that records are complete, unaltered and current.",
    "sign": "Sign records with a key file.",
    "retain": "Keep records, small enough for a repository.",
    "gate": "Give one verdict by the project's policy, for CI.",
    "capture": "Record inputs from a live model.",
    "faults": "Plant every known fault and check that it is caught.",
    "freeze": "Keep a built variant, to compare with later.",
    "doctor": "Show what this machine can run, and what is missing.",
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

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first word names. UsageError with a suggestion for a word that names none."""
        if args[0] not in _COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            from audit.cli.suggestion import expected_one_of

            raise click.UsageError(f"command: {expected_one_of(_COMMANDS, args[0])}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names of commands and options, without importing any command."""
        from click.shell_completion import CompletionItem

        names = [CompletionItem(name, help=text) for name, text in _COMMANDS.items() if name.startswith(incomplete)]
        return names + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The list in `--help`, written without importing any command."""
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name=_NAME)
def cli() -> None:
    """Check that a GPU kernel still computes the same thing: the same bytes as its parent, an error that the
    arithmetic permits, no write where none belongs.

    Exit codes: 0 pass, 1 findings, 2 usage or configuration, 3 inconclusive (something planned was not shown).

    For completion in bash: eval "$(_AUDIT_COMPLETE=bash_source audit)"; zsh_source and fish_source exist too.
    """


def main() -> NoReturn:
    """The command in this very process; it exits."""
    sys.exit(command_line())


def command_line() -> int:
    """The exit code of the command that `sys.argv` gives. Nothing but its own end makes it 0."""
    try:
        code = cli.main(prog_name=_NAME, standalone_mode=False)  # click returns the code of its own Exit here
    except AuditError as error:
        return _failed(str(error), USAGE)
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)
        echo(shown.getvalue().rstrip("\n"), err=True)
        return USAGE
    except (click.Abort, KeyboardInterrupt) as error:
        cause = error.__cause__ or error  # click makes an Abort of every KeyboardInterrupt
        if isinstance(cause, KeyboardInterrupt) and not is_interruption(cause):
            return _crashed(cause)
        return _failed("interrupted; what was running left no record", INCONCLUSIVE)
    except BaseException as error:
        if not isinstance(error, SystemExit) or _COMPLETION not in os.environ:
            return _crashed(error)
        code = error.code  # click has printed what completes a word
    return code if isinstance(code, int) else PASS


def _crashed(error: BaseException) -> int:
    from audit.cli.crash import describe_crash, describe_shortage

    if shortage := describe_shortage(error):
        return _failed(shortage, INCONCLUSIVE)
    sentence, code = describe_crash(error)
    if code != USAGE:
        echo(traceback.format_exc().rstrip("\n"), err=True)
    return _failed(sentence, code)


def _failed(sentence: str, code: int) -> int:
    echo(f"{_NAME}: {sentence}", err=True)
    return code
