"""What a project's code reads while it is loaded or called: files, and environment variables.

Files are seen through Python's audit event `open` (PEP 578). What native code opens is not seen. Files of Python and
its packages are left out.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from audit.environment_reads import variables_read


@dataclass(frozen=True)
class ProjectReads:
    """The absolute paths of files, and variable -> digest at its first reading (`audit.environment_reads`)."""

    files: set[str] = field(default_factory=set)
    variables: dict[str, str] = field(default_factory=dict)


_case: ContextVar[ProjectReads | None] = ContextVar("what the project reads in a case", default=None)
_collected: ContextVar[set[str] | None] = ContextVar("where the event goes while the project's code runs", default=None)
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_VIRTUAL = ("/proc/", "/sys/", "/dev/")


@contextmanager
def collected_in_a_case() -> Iterator[ProjectReads]:
    """What the hooks of a project read, as far as they are called in this block."""
    reads = ProjectReads()
    token = _case.set(reads)
    try:
        yield reads
    finally:
        _case.reset(token)


@contextmanager
def while_a_hook_runs() -> Iterator[None]:
    """Collect what the project's code in this block reads for the case, if there is one."""
    if (reads := _case.get()) is None:
        yield
        return
    with read_by_the_project(reads):
        yield


@contextmanager
def read_by_the_project(into: ProjectReads) -> Iterator[None]:
    """Collect what this thread reads."""
    _install()
    token = _collected.set(into.files)
    try:
        with variables_read(into.variables):
            yield
    finally:
        _collected.reset(token)


@cache
def _install() -> None:
    sys.addaudithook(_on_event)


def _on_event(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "open" or (files := _collected.get()) is None:
        return
    path, mode, flags = arguments
    reads = not set(mode) & set("wax+") if isinstance(mode, str) else not flags & _WRITES
    if reads and isinstance(path, str | bytes | os.PathLike):
        name = os.path.realpath(os.fsdecode(path))
        if not name.startswith((*_VIRTUAL, *_installed())):
            files.add(name)


def _installed() -> tuple[str, ...]:
    """The folders of Python, of this tool, and of every entry of `sys.path` that packages are installed in."""
    return (*_python(), *(folder for entry in sys.path if (folder := _packages_in(entry))))


@cache
def _python() -> tuple[str, ...]:
    folders = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    own = str(Path(__file__).resolve().parent)
    return tuple(f"{os.path.realpath(folder)}{os.sep}" for folder in (*folders, own))


@cache
def _packages_in(entry: str) -> str:
    """An entry of `sys.path` with a slash behind, if pip installed packages there; else nothing."""
    folder = Path(entry)
    return f"{os.path.realpath(folder)}{os.sep}" if entry and any(folder.glob("*.dist-info")) else ""
