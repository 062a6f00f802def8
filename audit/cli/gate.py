"""`audit gate`: one verdict by the project's policy."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import click

from audit.cli.main import FINDINGS, INCONCLUSIVE, PASS
from audit.errors import EvidenceError
from audit.gate.formats import FORMATS
from audit.gate.formats.github import commands
from audit.gate.policy import EVERYDAY
from audit.gate.run import gate
from audit.gate.verdict import Gate
from audit.project import find_project

_EXIT = {"pass": PASS, "fail": FINDINGS, "inconclusive": INCONCLUSIVE}
_STEP_SUMMARY = "GITHUB_STEP_SUMMARY"


@click.command(name="gate")
@click.option("--policy", default=EVERYDAY, show_default=True, help="Which table of [tool.kernel-audit.gate].")
@click.option("--format", "kind", type=click.Choice(list(FORMATS)), default="text", show_default=True)
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Write the verdict there, not on stdout.")
@click.option("--also", multiple=True, metavar="FORMAT=FILE", help="The same verdict in another format, into a file.")
@click.option(
    "--evidence",
    "given",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Judge this evidence (a folder, or one of folders) in place of running anything.",
)
@click.option("--no-run", is_flag=True, help="Run nothing; judge what is retained.")
@click.option("--project", "folder", type=click.Path(path_type=Path), default=Path(), help="The project's folder.")
@click.option("--out", type=click.Path(path_type=Path), default=None, help="Where new evidence goes (default: runs).")
def command(
    policy: str,
    kind: str,
    output: Path | None,
    also: tuple[str, ...],
    given: tuple[Path, ...],
    no_run: bool,
    folder: Path,
    out: Path | None,
) -> None:
    """Run what the policy asks for and can run here, verify retained evidence for the rest, and give one verdict with
    every condition: measured, required, where to look.

    With --format github the summary goes to $GITHUB_STEP_SUMMARY where that is set, and annotations to stdout.
    """
    others = [_other(word) for word in also]
    verdict = gate(
        find_project(folder),
        policy,
        given=given,
        may_run=not no_run,
        runs=out,
        command=shlex.join(["audit", *sys.argv[1:]]),
        say=lambda line: click.echo(line, err=True),
    )
    for each, file in others:
        _write(file, FORMATS[each](verdict))
    _tell(verdict, kind, output)
    raise click.exceptions.Exit(_EXIT[verdict.verdict])


def _tell(verdict: Gate, kind: str, output: Path | None) -> None:
    step_summary = os.environ.get(_STEP_SUMMARY)
    if output is not None:
        _write(output, FORMATS[kind](verdict))
    elif kind == "github" and step_summary:
        _write(Path(step_summary), FORMATS[kind](verdict), append=True)
    else:
        click.echo(FORMATS[kind](verdict))
    if kind == "github":
        for line in commands(verdict):
            click.echo(line)
    if kind == "github" or output is not None:
        click.echo(verdict.told, err=True)


def _other(word: str) -> tuple[str, Path]:
    kind, equals, file = word.partition("=")
    if kind not in FORMATS or not equals or not file:
        raise click.UsageError(f"--also: expected FORMAT=FILE with a format of {', '.join(FORMATS)}, but got {word!r}")
    return kind, Path(file)


def _write(file: Path, content: str, *, append: bool = False) -> None:
    try:
        with file.open("a" if append else "w", encoding="utf-8") as stream:
            stream.write(content if content.endswith("\n") else f"{content}\n")
    except OSError as error:
        raise EvidenceError(f"{file}: the verdict cannot be written there ({error.strerror})") from None
