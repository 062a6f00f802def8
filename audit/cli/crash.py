"""An exception that nothing expected: whether the audited project or this tool raised it, and its exit code."""

from __future__ import annotations

import traceback

from audit.cli.exit_codes import INCONCLUSIVE, USAGE

_PROJECT = "_audited_"  # begins the names of a project's modules: `audit.project` loads them so


def describe_crash(error: Exception) -> tuple[str, int]:
    """A sentence about the exception, and the exit code: usage where the project's own code raised it, inconclusive
    where this tool did. Python's own code, 1, would accuse a kernel."""
    what = f"{type(error).__name__}: {error}"
    for frame, line in reversed([*traceback.walk_tb(error.__traceback__)]):
        module = str(frame.f_globals.get("__name__", ""))
        if module.startswith(_PROJECT):
            return f"{frame.f_code.co_filename}:{line}: this line of the project raised {what}; mend it", USAGE
        if module.partition(".")[0] == "audit":
            break
    return f"{what}: a bug in kernel-audit; nothing was judged. Report it with the lines above", INCONCLUSIVE
