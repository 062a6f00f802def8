"""`audit gate`: one verdict by the project's policy."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import click

from audit.cli import completion, options
from audit.cli.exit_codes import CODES
from audit.cli.suggestion import expected_one_of
from audit.cli.terminal import echo, echo_commands, echo_document
from audit.errors import EvidenceError, ProjectError
from audit.gate.formats import FORMATS
from audit.gate.formats.github import commands
from audit.gate.formats.html import html, links_from
from audit.gate.formats.text import text
from audit.gate.policy import EVERYDAY, policy_names
from audit.gate.run import gate
from audit.gate.verdict import Gate
from audit.project import Project, find_project
from audit.records.folder import require_writable, write_output

_STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
_EXAMPLE = f"""\b
The least that a policy needs in pyproject.toml; docs/gate.md has all keys:
  [[tool.kernel-audit.gate.{EVERYDAY}.audits]]
  shapes = ["softmax"]    # audited here, each time that the gate runs"""


@click.command(name="gate", epilog=_EXAMPLE)
@click.option(
    "--policy",
    metavar="NAME",
    default=EVERYDAY,
    show_default=True,
    shell_complete=completion.policies,
    help="Judge by this table of [tool.kernel-audit.gate].",
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(list(FORMATS)),
    default="text",
    show_default=True,
    help="Write the verdict in this format.",
)
@click.option("--verbose", "-v", is_flag=True, help="List the conditions that hold, too (text only).")
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the verdict into this file, not on stdout.",
)
@click.option(
    "--also", multiple=True, metavar="FORMAT=FILE", help="Write the same verdict in another format into a file."
)
@click.option(
    "--evidence",
    "given",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Judge this record, or all records of this folder, in place of running anything.",
)
@click.option("--no-run", is_flag=True, help="Run nothing; judge what is retained.")
@options.PROJECT
@options.OUT
def command(
    policy: str,
    kind: str,
    verbose: bool,
    output: Path | None,
    also: tuple[str, ...],
    given: tuple[Path, ...],
    no_run: bool,
    project_folder: Path,
    out: Path | None,
) -> None:
    """Run what the policy asks for and can run here, verify retained evidence for the rest, and give one verdict.

    The text lists each condition that does not hold: measured, required, where to look. A page of the verdict is
    written beside the records of the runs. With --format github the summary goes to $GITHUB_STEP_SUMMARY where that is
    set, and annotations go to stdout.
    """
    others = [_other(word) for word in also]
    for file in (*(file for _, file in others), *((output,) if output else ())):
        require_writable(file)
    project = find_project(project_folder)
    policies = policy_names(project)
    if policies and policy not in policies:
        raise ProjectError(f"--policy: {expected_one_of(policies, policy)}")
    verdict = gate(
        project,
        policy,
        given=given,
        may_run=not no_run,
        runs=out,
        command=shlex.join(["audit", *sys.argv[1:]]),
        log=lambda line: echo(line, err=True),
    )
    for each, file in others:
        write_output(file, _ended(_render(verdict, each, project, file, verbose=verbose)).encode())
    _print(verdict, kind, project, output, verbose=verbose)
    raise click.exceptions.Exit(CODES[verdict.verdict])


def _print(verdict: Gate, kind: str, project: Project, output: Path | None, *, verbose: bool) -> None:
    rendered = _render(verdict, kind, project, output, verbose=verbose)
    step_summary = os.environ.get(_STEP_SUMMARY)
    if output is not None:
        write_output(output, _ended(rendered).encode())
    elif kind == "github" and step_summary:
        _append(Path(step_summary), rendered)
    elif kind == "text":
        echo(rendered)
    else:
        echo_document(rendered)
    if kind == "github":
        echo_commands(commands(verdict))
    if kind == "github" or output is not None:
        echo(verdict.headline, err=True)


def _render(verdict: Gate, kind: str, project: Project, file: Path | None, *, verbose: bool) -> str:
    """The verdict in one format. A page links to those of records where it is known where it will stand."""
    if kind == "text":
        return text(verdict, verbose=verbose)
    if kind == "html" and file is not None:
        return html(verdict, links_from(file.resolve().parent, project.root))
    return FORMATS[kind](verdict)


def _other(word: str) -> tuple[str, Path]:
    kind, equals, file = word.partition("=")
    if not equals or not file:
        raise click.UsageError(f"--also: expected FORMAT=FILE with a format of {', '.join(FORMATS)}, but got {word!r}")
    if kind not in FORMATS:
        raise click.UsageError(f"--also: FORMAT: {expected_one_of(FORMATS, kind)}")
    return kind, Path(file)


def _append(file: Path, content: str) -> None:
    """To the job's own file, which other steps write too."""
    require_writable(file)
    try:
        with file.open("a", encoding="utf-8") as stream:
            stream.write(_ended(content))
    except OSError as error:
        raise EvidenceError(f"${_STEP_SUMMARY}: {file} cannot be written ({error.strerror})") from None


def _ended(content: str) -> str:
    return content if content.endswith("\n") else f"{content}\n"
