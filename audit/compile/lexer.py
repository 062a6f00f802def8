"""C++ source as tokens: just enough to find declarations and ignore comments and strings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

_TOKEN = re.compile(
    r"""
      (?P<blank>(?:\\\r?\n|[ \t\r\f\v]|//(?:\\\r?\n|[^\n])*|/\*.*?\*/)+)
    | (?P<newline>\n)
    | (?P<string>(?:u8|[uUL])?R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)"
        |(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"
        |(?:u8|[uUL])?'(?:\\.|[^'\\\n])*')
    | (?P<number>\.?\d(?:'[\w]|[eEpP][+-]|[\w.])*)
    | (?P<name>[^\W\d]\w*)
    | (?P<mark>.)
    """,
    re.VERBOSE | re.DOTALL,
)


class Token(msgspec.Struct, frozen=True):
    """`kind` is name, number, string, mark, or directive (a whole preprocessor line, its text included)."""

    kind: str
    text: str
    start: int
    end: int


def tokens(source: str, start: int = 0, end: int | None = None) -> Iterator[Token]:
    """The tokens of `source[start:end]`, without comments and white space. A directive is one token."""
    stop = len(source) if end is None else end
    position, line_is_empty = start, start == 0 or source[start - 1] == "\n"
    while position < stop:
        match = _TOKEN.match(source, position, stop)
        assert match is not None  # `mark` matches any character
        kind = match.lastgroup or "mark"
        if kind == "mark" and match.group() == "#" and line_is_empty:
            last = _directive_end(source, position, stop)
            yield Token("directive", source[position:last], position, last)
            position = last
            continue
        if kind == "newline":
            line_is_empty = True
        elif kind != "blank":
            line_is_empty = False
            yield Token(kind, match.group(), position, match.end())
        position = match.end()


def _directive_end(source: str, start: int, stop: int) -> int:
    """The end of a directive: the first newline that is neither continued nor inside a comment."""
    position = start
    while position < stop:
        match = _TOKEN.match(source, position, stop)
        if match is None or match.lastgroup == "newline":
            return position
        position = match.end()
    return stop


def matching(words: Sequence[Token], at: int) -> int:
    """The index of the bracket that closes the one at `at`; the last index where none does."""
    depth = 0
    for index in range(at, len(words)):
        depth += (words[index].text in ("(", "[", "{")) - (words[index].text in (")", "]", "}"))
        if depth == 0:
            return index
    return len(words) - 1


def line_of(source: str, position: int) -> int:
    """The line, from 1, of a position."""
    return source.count("\n", 0, position) + 1
