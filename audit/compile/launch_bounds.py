"""Where a source declares `__launch_bounds__`: the check of the block's size that goes into the kernel's body.

The bounds may depend on template parameters, and a macro may hide them: `#define BOUNDS(n) __launch_bounds__(n, 2)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from audit.compile.lexer import Token, line_of, matching, tokens

_BOUNDS = "__launch_bounds__"
_OPENING, _CLOSING = ("(", "[", "{"), (")", "]", "}")


class BoundsMacro(msgspec.Struct, frozen=True):
    """A macro whose body holds launch bounds; `parameters` is None for one without parentheses."""

    name: str
    parameters: tuple[str, ...] | None
    bounds: tuple[Token, ...]


def bounds_macros(texts: Iterable[str]) -> tuple[BoundsMacro, ...]:
    """The macros of a program's files that hold launch bounds."""
    found = []
    for text in texts:
        if _BOUNDS not in text:
            continue
        for directive in (word for word in tokens(text) if word.kind == "directive" and _BOUNDS in word.text):
            words = list(tokens(text, directive.start + 1, directive.end))
            at = next((index for index, word in enumerate(words) if word.text == _BOUNDS), 0)
            if at < 2 or words[0].text != "define" or words[at + 1 : at + 2] == []:
                continue
            parameters = None
            if words[2].text == "(" and words[2].start == words[1].end:
                parameters = tuple(word.text for word in words[3 : matching(words, 2)] if word.kind == "name")
            inner = words[at + 2 : matching(words, at + 1)]
            if any(word.text == "{" for word in words[at:]):  # the macro is a whole kernel, which checks for itself
                continue
            found.append(BoundsMacro(words[1].text, parameters, tuple(inner)))
    return tuple(found)


def bounds_checks(
    source: str, quoted_name: str, words: Sequence[Token], macros: Sequence[BoundsMacro]
) -> list[tuple[int, int, str]]:
    """Insertions behind the brace of each kernel that has launch bounds. A declaration without a body gets none."""
    by_name: Mapping[str, BoundsMacro] = {macro.name: macro for macro in macros}
    edits = []
    for at, word in enumerate(words):
        if word.kind != "name" or (word.text != _BOUNDS and word.text not in by_name):
            continue
        bounds, behind = _bounds(words, at, by_name)
        brace = _body(words, behind)
        if bounds and brace is not None:
            place = f"{quoted_name}, {line_of(source, word.start)}"
            end = words[brace].end
            edits.append((end, end, f" simt::require_launch_bounds({place}, {bounds});"))
    return edits


def _bounds(words: Sequence[Token], at: int, macros: Mapping[str, BoundsMacro]) -> tuple[str, int]:
    """The bounds as one line of C++, and the index of the token behind them."""
    macro = macros.get(words[at].text)
    if macro is not None and macro.parameters is None:
        return _joined(macro.bounds), at + 1
    if at + 1 == len(words) or words[at + 1].text != "(":
        return "", at + 1
    close = matching(words, at + 1)
    inner = words[at + 2 : close]
    if macro is None:
        return _joined(inner), close + 1
    given = dict(zip(macro.parameters or (), _arguments(inner), strict=False))
    return _joined(macro.bounds, given), close + 1


def _joined(words: Sequence[Token], given: Mapping[str, str] = {}) -> str:
    """The tokens on one line; those that touch still do, as in `::`."""
    text, end = "", -1
    for word in words:
        text += ("" if word.start == end else " ") + given.get(word.text, word.text)
        end = word.end
    return text.strip()


def _arguments(words: Sequence[Token]) -> list[str]:
    """The arguments of a macro's call, which commas outside brackets separate."""
    arguments: list[list[Token]] = [[]]
    depth = 0
    for word in words:
        depth += (word.text in _OPENING) - (word.text in _CLOSING)
        if word.text == "," and depth == 0:
            arguments.append([])
        else:
            arguments[-1].append(word)
    return [f"({_joined(argument)})" for argument in arguments]


def _body(words: Sequence[Token], at: int) -> int | None:
    """The index of the brace that opens the function's body, if there is one."""
    while at < len(words) and words[at].text not in (";", "}"):
        if words[at].text == "{":
            return at
        at = matching(words, at) + 1 if words[at].text in _OPENING else at + 1
    return None
