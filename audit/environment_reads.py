"""The environment variables that a project's code reads, seen where `os.environ` is asked for one.

Reading all of them at once, as for the environment of a new process, counts as reading none. Neither does what a
package reads for itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from hashlib import sha256
from types import FrameType
from typing import Any

PROJECT = "_audited_"
"""Begins the names of a project's modules: `audit.project` loads them so."""
ABSENT = ""

_collected: ContextVar[dict[str, str] | None] = ContextVar("variables read while the project's code runs", default=None)
_BETWEEN = frozenset({"os", "collections.abc", "_collections_abc"})  # `os.getenv` and the like


def digest_of(name: str) -> str:
    """The digest (sha256) of a variable of this process, or ABSENT."""
    value = os.environ.get(name)
    return ABSENT if value is None else sha256(os.fsencode(value)).hexdigest()


@contextmanager
def variables_read(into: dict[str, str]) -> Iterator[None]:
    """Collect what code of a project reads in this thread: name -> digest at the first time."""
    _install()
    found: dict[str, str] = {}
    token = _collected.set(found)
    try:
        yield
    finally:
        _collected.reset(token)
        if not found.keys() >= set(os.environ):  # else it has read all of them
            for name, digest in found.items():
                into.setdefault(name, digest)


@cache
def _install() -> None:
    """`os.environ` has no audit event: what it calls to look up a name is replaced, for good."""
    kind: Any = type(os.environ)
    read = kind.__getitem__

    def read_and_note(self: Any, name: Any) -> Any:
        variables = _collected.get()
        if variables is not None and isinstance(name, str | bytes) and _asked_by_the_project():
            token = _collected.set(None)
            try:
                variables.setdefault(os.fsdecode(name), digest_of(os.fsdecode(name)))
            finally:
                _collected.reset(token)
        return read(self, name)

    kind.__getitem__ = read_and_note


def _asked_by_the_project() -> bool:
    """Whether the innermost caller that is not of the standard library's own mappings is code of a project."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__") in _BETWEEN:
        frame = frame.f_back
    return frame is not None and str(frame.f_globals.get("__name__", "")).startswith(PROJECT)
