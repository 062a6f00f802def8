"""`__constant__` variables that a source leaves to its host code: nothing but zeros until somebody fills them."""

from __future__ import annotations

import re
from collections.abc import Iterable

_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_DECLARED = re.compile(r"(\bextern\s[\w\s]*)?\b__constant__\b([^;{}=()]*)([;={(])")
_NAME = re.compile(r"(\w+)\s*(?:\[[^\]]*\]\s*)*$")


def unset_constants(texts: Iterable[str]) -> tuple[str, ...]:
    """The names of the `__constant__` variables without an initialiser, in order. `extern` declares none."""
    found = []
    for text in texts:
        for match in _DECLARED.finditer(_COMMENTS.sub(" ", text)):
            extern, before, end = match.groups()
            name = _NAME.search(before.strip())
            if end == ";" and name and not extern:
                found.append(name[1])
    return tuple(dict.fromkeys(found))
