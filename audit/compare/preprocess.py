"""The tokens of a source as a compiler would see them: its own includes, conditions and macros are resolved.

Headers in angle brackets are not read, so a macro that one defines stays a name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from audit.compare.condition import holds
from audit.compile.lexer import Token, tokens
from audit.errors import ProjectError

_PREDEFINED: Mapping[str, str] = {"__CUDACC__": "1", "__NVCC__": "1", "__cplusplus": "201703", "__CUDA_ARCH__": "900"}
_NEVER = frozenset(("__global__", "__device__", "__restrict__", "__launch_bounds__"))
"""Words of CUDA, which a source may define for other compilers."""
_MOST_FILES, _DEEPEST, _MOST_BYTES = 200, 20, 16 * 2**20


class Macro(msgspec.Struct, frozen=True):
    """A macro: its parameters, None for one without parentheses, and its body."""

    parameters: tuple[str, ...] | None
    body: tuple[Token, ...]


class Preprocessed(msgspec.Struct, frozen=True):
    """The tokens without directives, and the files that they come from, the source first."""

    tokens: tuple[Token, ...]
    files: tuple[Path, ...]


def preprocess(source: Path, defines: Mapping[str, str]) -> Preprocessed:
    """The tokens of a source and of the files that it includes with quotes. Raises ProjectError for one unreadable."""
    given = {**_PREDEFINED, **{name: value or "1" for name, value in defines.items()}}
    reader = _Reader({name: Macro(None, tuple(tokens(value))) for name, value in given.items()})
    found = tuple(reader.read(source.resolve()))
    return Preprocessed(found, tuple(reader.files))


class _Reader:
    def __init__(self, macros: dict[str, Macro]) -> None:
        self.macros = macros
        self.files: dict[Path, None] = {}

    def read(self, path: Path) -> Iterator[Token]:
        """The tokens of a file and of what it includes; of each file once."""
        if path in self.files or len(self.files) >= _MOST_FILES:
            return
        self.files[path] = None
        listed = list(tokens(_text(path)))
        taken: list[tuple[bool, bool]] = []  # of each open condition: whether its branch counts, whether one did
        plain: list[Token] = []
        for token in listed:
            if token.kind != "directive":
                if all(counts for counts, _ in taken):
                    plain.append(token)
                continue
            yield from expanded(plain, self.macros)
            plain = []
            words = list(tokens(token.text, 1))
            if words and not self._condition(words, taken) and all(counts for counts, _ in taken):
                yield from self._directive(path, words)
        yield from expanded(plain, self.macros)

    def _condition(self, words: Sequence[Token], taken: list[tuple[bool, bool]]) -> bool:
        """Whether the directive opens, changes or closes a condition."""
        kind, rest = words[0].text, words[1:]
        if kind in ("ifdef", "ifndef"):
            counts = (bool(rest) and rest[0].text in self.macros) == (kind == "ifdef")
            taken.append((counts, counts))
        elif kind == "if":
            counts = self._holds(rest) is not False  # an unknown condition counts, and so does what is beside it
            taken.append((counts, self._holds(rest) is True))
        elif kind in ("elif", "elifdef", "elifndef", "else") and taken:
            _, done = taken.pop()
            known = True if kind == "else" else self._holds(rest) if kind == "elif" else None
            taken.append((not done and known is not False, done or known is True))
        elif kind == "endif" and taken:
            taken.pop()
        else:
            return False
        return True

    def _holds(self, words: Sequence[Token]) -> bool | None:
        asked, index = [], 0
        while index < len(words):  # `defined X` and `defined(X)`, before macros are expanded
            if words[index].text == "defined":
                opened = words[index + 1 : index + 2] and words[index + 1].text == "("
                name = words[index + 2 if opened else index + 1 :][:1]
                asked.append(_number("1" if name and name[0].text in self.macros else "0"))
                index += 4 if opened else 2
            else:
                asked.append(words[index])
                index += 1
        return holds([word.text for word in expanded(asked, self.macros)])

    def _directive(self, path: Path, words: Sequence[Token]) -> Iterator[Token]:
        kind, rest = words[0].text, words[1:]
        if kind == "include" and rest and rest[0].kind == "string":
            beside = path.parent / rest[0].text.strip('"')
            if beside.is_file():
                yield from self.read(beside.resolve())
        elif kind == "define" and rest and rest[0].text not in _NEVER:
            self.macros[rest[0].text] = _macro(rest)
        elif kind == "undef" and rest:
            self.macros.pop(rest[0].text, None)


def _text(path: Path) -> str:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ProjectError(f"{path}: cannot be read ({error.strerror})") from None
    if len(content) > _MOST_BYTES:
        raise ProjectError(f"{path}: expected a source of at most {_MOST_BYTES:,} bytes, but got {len(content):,}")
    return content.decode("utf-8-sig", errors="replace")


def _macro(words: Sequence[Token]) -> Macro:
    name, rest = words[0], words[1:]
    if rest and rest[0].text == "(" and rest[0].start == name.end:
        close = next((at for at, word in enumerate(rest) if word.text == ")"), len(rest))
        names = tuple(word.text for word in rest[1:close] if word.kind == "name")
        variadic = ("__VA_ARGS__",) if any(word.text == "." for word in rest[1:close]) else ()
        return Macro((*names, *variadic), tuple(rest[close + 1 :]))
    return Macro(None, tuple(rest))


def expanded(words: Sequence[Token], macros: Mapping[str, Macro], hidden: frozenset[str] = _NEVER) -> Iterator[Token]:
    """The tokens with their macros replaced, none inside its own expansion."""
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        macro = macros.get(word.text) if word.kind == "name" and word.text not in hidden else None
        if macro is None or len(hidden) > _DEEPEST + len(_NEVER):
            yield word
        elif macro.parameters is None:
            yield from expanded(_pasted(macro.body, {}), macros, hidden | {word.text})
        elif index < len(words) and words[index].text == "(":
            arguments, index = _arguments(words, index)
            yield from expanded(_pasted(macro.body, _bound(macro.parameters, arguments)), macros, hidden | {word.text})
        else:
            yield word


def _bound(names: Sequence[str], arguments: Sequence[Sequence[Token]]) -> dict[str, Sequence[Token]]:
    bound = dict(zip(names, arguments, strict=False))
    if names and names[-1] == "__VA_ARGS__":
        comma = Token("mark", ",", 0, 0)
        rest = arguments[len(names) - 1 :]
        bound[names[-1]] = [each for at, one in enumerate(rest) for each in ((comma, *one) if at else one)]
    return bound


def _arguments(words: Sequence[Token], opening: int) -> tuple[list[list[Token]], int]:
    """The arguments behind an opening parenthesis, and the index behind the closing one."""
    depth, found = 0, [list[Token]()]
    for index in range(opening, len(words)):
        word = words[index]
        depth += (word.text in "([{") - (word.text in ")]}") if word.kind == "mark" else 0
        if depth == 0:
            return found, index + 1
        if word.text == "," and depth == 1:
            found.append([])
        elif index > opening:
            found[-1].append(word)
    return found, len(words)


def _pasted(body: Sequence[Token], bound: Mapping[str, Sequence[Token]]) -> list[Token]:
    """A macro's body with its parameters replaced and `a ## b` joined."""
    found: list[Token] = []
    index, joined = 0, False
    while index < len(body):
        if [word.text for word in body[index : index + 2]] == ["#", "#"]:
            joined, index = True, index + 2
            continue
        part = list(bound.get(body[index].text, (body[index],)))
        if joined and found and part:
            text = found[-1].text + part[0].text
            found[-1:], part = tokens(text), part[1:]
        found += part
        index, joined = index + 1, False
    return found


def _number(text: str) -> Token:
    return Token("number", text, 0, 0)
