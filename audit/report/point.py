"""One thing that two records of a kind can be compared by."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from audit.checks.result import Verdict

_BADNESS = {"pass": 0.0, "inconclusive": 1.0, "absent": 1.0, "fail": 2.0}


class Point(msgspec.Struct, frozen=True):
    """A text, and where it is a number its bounds. Less is better."""

    text: str
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, verdict: Verdict | None) -> Point:
        """The point of a verdict; None where nothing ran."""
        badness = _BADNESS[verdict or "absent"]
        return cls(verdict or "did not run", badness, badness)


def badness(state: str) -> float:
    """Where a state stands between pass (0) and fail (2)."""
    return _BADNESS[state]


NamedPoint: TypeAlias = tuple[tuple[str, str], Point]
"""((group, name), point)."""
