"""The project that a record of `audit compare` is of: its two sources and its Python file, as they are now."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np

from audit.cli.compare import command
from audit.compare.hooks import split_words
from audit.compare.operator import compared
from audit.compare.order import comparison
from audit.errors import AuditError
from audit.project import Project, Settings
from audit.records.kinds import Record, kind_of
from audit.spec import Operator

_COMMAND = ["audit", "compare"]


def is_comparison(record: Record) -> bool:
    """Whether `audit compare` made the record."""
    return _words(record)[:2] == _COMMAND


def project_of_comparison(record: Record, home: Path, folder: Path) -> Project:
    """The comparison's own project, from the command in its record; its paths are relative to `folder`.

    A record may come from anywhere, so the Python file that it names is loaded from inside the folder alone, and never
    from the record's own. Otherwise, and where a file is gone or broken, the project has an operator without variants:
    its sources are compared, and the record is stale.
    """
    options = _options(_words(record)[2:])
    folder = folder.resolve()
    with contextlib.chdir(folder):
        old, new, make = (Path(one).resolve() for one in (options["old"], options["new"], _file(options)))
        try:
            if make.is_relative_to(folder) and not make.is_relative_to(home.resolve()):
                order = comparison(options)
                return Project.of(order.root, Settings(), compared(order), order.hooks.file)
        except AuditError:
            pass
    root = Path(os.path.commonpath([one.parent for one in (old, new, make)]))
    return Project.of(root, Settings(), _unresolvable(kind_of(record).headline(record).operator), make)


def _file(options: dict[str, Any]) -> Path:
    return split_words(options["hooks"])[0]


def _unresolvable(name: str) -> Operator:
    return Operator(
        name, axes=(), buffers=lambda _: (), inputs=lambda _, rng: {"x": np.float32(rng.random())}, variants=()
    )


def _words(record: Record) -> list[str]:
    try:
        return shlex.split(record.command)
    except ValueError:  # a quote without its end
        return []


def _options(words: list[str]) -> dict[str, Any]:
    """The options of a command line as text, without any look at its files; what cannot be read is empty."""
    found: Mapping[str, Any] = {}
    with contextlib.suppress(click.ClickException):
        found = command.make_parser(click.Context(command)).parse_args(list(words))[0]
    return {str(one.name): _plain(one, found.get(str(one.name))) for one in command.params}


def _plain(one: click.Parameter, value: object) -> Any:
    """A value as the command gets it, but paths and numbers stay text. Absent values are of click's own types."""
    if one.multiple:
        return tuple(value) if isinstance(value, list | tuple) else ()
    needed = one.name in ("old", "new", "hooks", "entry", "shared")
    return value if isinstance(value, str) else "" if needed else None
