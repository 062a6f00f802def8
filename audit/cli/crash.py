"""An exception that nothing expected: whether the audited project or this tool raised it, and its exit code."""

from __future__ import annotations

import traceback

from audit.cli.exit_codes import INCONCLUSIVE, USAGE
from audit.environment_reads import PROJECT
from audit.errors import SHORTAGES


def describe_crash(error: BaseException) -> tuple[str, int]:
    """A sentence about the exception, and the exit code: usage where the project's own code raised it, inconclusive
    where this tool did. Python's own code, 1, would accuse a kernel."""
    what = f"{type(error).__name__}: {error}"
    for frame, line in reversed([*traceback.walk_tb(error.__traceback__)]):
        module = str(frame.f_globals.get("__name__", ""))
        if module.startswith(PROJECT):
            return f"{frame.f_code.co_filename}:{line}: this line of the project raised {what}; mend it", USAGE
        if module.partition(".")[0] == "audit" and module != "audit.hooks":  # it raises on the project's behalf
            break
    return f"{what}: a bug in kernel-audit; nothing was judged. Report it with the lines above", INCONCLUSIVE


def describe_shortage(error: BaseException) -> str | None:
    """A sentence about an error by which the machine says that it has no more memory or room; None for any other."""
    if isinstance(error, MemoryError):
        return "the machine has no more memory; nothing was judged. Choose fewer or smaller cases"
    if isinstance(error, OSError) and error.errno in SHORTAGES:
        path = f"{error.filename}: " if error.filename else ""
        return f"{path}{error.strerror}; nothing was judged. Free what is short and run the command again"
    return None
