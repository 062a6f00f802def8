"""The exit codes of all commands, and the code of each verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from audit.checks.result import Verdict

PASS, FINDINGS, USAGE, INCONCLUSIVE = 0, 1, 2, 3

CODES: dict[Verdict, int] = {"pass": PASS, "fail": FINDINGS, "inconclusive": INCONCLUSIVE}
