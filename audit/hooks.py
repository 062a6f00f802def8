"""Calls into the project's own code: an exception that it raises is the project's to fix.

Only the project's functions are called through this module. An exception anywhere else is a bug of the tool and shows
as one.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import TypeVar

from audit.errors import AuditError, InputError, ProjectError
from audit.spec import Case

T = TypeVar("T")


def call(case: Case, what: str, function: Callable[..., T], *args: object) -> T:
    """Call the project's function. Any exception becomes a ProjectError that names the hook, its file and line."""
    try:
        return function(*args)
    except InputError as error:
        raise InputError(f"case {case.id}: {error}") from None
    except AuditError:
        raise
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        raise ProjectError(
            f"case {case.id}: {what} raised {type(error).__name__}: {error} ({frame.filename}:{frame.lineno})"
        ) from error
