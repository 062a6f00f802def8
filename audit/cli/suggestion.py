"""The one sentence for an unexpected word: what was expected, what came, which one is close."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def expected_one_of(known: Iterable[str], came: str) -> str:
    """`expected one of run, report, but got 'rum'; did you mean 'run'?`"""
    names = list(known)
    close = get_close_matches(came, names, n=1)
    question = f"; did you mean {close[0]!r}?" if close else ""
    return f"expected one of {', '.join(names)}, but got {came!r}{question}"
