"""Calls into the project's own code: an exception that it raises is the project's to fix.

Everything that is called through here belongs to the project. An exception anywhere else is a bug of the tool, and
shows as one. Nothing that a project does may end the tool as if it had reached its verdict: `SystemExit` and its like
become errors, and so does a call of `os._exit`.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, NoReturn, TypeVar

from audit.environment_reads import PROJECT
from audit.errors import AuditError, InputError, ProjectError
from audit.project_reads import while_a_hook_runs

if TYPE_CHECKING:
    from audit.spec import Case

T = TypeVar("T")

_leave = os._exit


class Interruption:
    """Whether a signal came. Where nobody says so (`watched` is false), any KeyboardInterrupt is the user's."""

    watched = False
    came = False


def call(case: Case, what: str, function: Callable[..., T], *args: object) -> T:
    """What the project's function returns. Whatever it raises becomes a ProjectError that names hook, file and line."""
    own = os.getpid()
    try:
        with while_a_hook_runs():
            return function(*args)
    except InputError as error:
        raise InputError(f"case {case.id}: {error}") from None
    except AuditError:
        raise
    except BaseException as error:
        if is_interruption(error):
            raise
        last = traceback.extract_tb(error.__traceback__)[-1]
        line = project_line(error) or f"{last.filename}:{last.lineno}"
        raise ProjectError(f"case {case.id}: {what} raised {type(error).__name__}: {error} ({line})") from error
    finally:
        leave_if_forked(own)


def is_interruption(error: BaseException) -> bool:
    """Whether the user interrupts the tool, and not a project that raises what looks the same."""
    return isinstance(error, KeyboardInterrupt) and (Interruption.came or not Interruption.watched)


def project_line(error: BaseException) -> str:
    """File and line of the project that was executing when the error came; empty where there is none."""
    frames = [(frame, line) for frame, line in traceback.walk_tb(error.__traceback__) if _is_project(frame)]
    return f"{frames[-1][0].f_code.co_filename}:{frames[-1][1]}" if frames else ""


def leave_if_forked(own: int) -> None:
    """End a process that the project has forked and that returns here, in the midst of the tool."""
    if os.getpid() != own:
        _leave(0)


def forbid_exit() -> None:
    """From now on `os._exit` raises SystemExit where code of a project calls it; what it forks may leave."""
    own = os.getpid()

    def leave(status: int) -> NoReturn:
        frame: FrameType | None = sys._getframe(1)
        while os.getpid() == own and frame is not None:
            if _is_project(frame):
                raise SystemExit(f"os._exit({status})")
            frame = frame.f_back
        _leave(status)

    import posix

    os._exit = posix._exit = leave


def _is_project(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith(PROJECT)
