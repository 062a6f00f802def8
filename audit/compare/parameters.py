"""One parameter of a kernel, from its words: its name, its type, and whether it is a pointer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias, TypeVar

import msgspec

Words: TypeAlias = tuple[str, ...]
_QUALIFIERS = frozenset(
    (
        "const", "volatile", "__restrict__", "__restrict", "restrict", "__grid_constant__", "struct", "class", "enum",
        "typename", "register", "constexpr", "inline",
    )
)  # fmt: skip
_BUILT_IN = frozenset(("int", "long", "short", "char", "unsigned", "signed", "float", "double", "bool", "void"))
_ATTRIBUTES = frozenset(("__attribute__", "alignas", "__align__", "__builtin_align__"))
_DEEPEST = 12


class Parameter(msgspec.Struct, frozen=True):
    """One parameter.

    name      as declared; `argument 3` for one without a name
    type      of the value, or of what the pointer points to, without qualifiers and namespaces
    pointers  how many stars there are
    const     whether what the pointer points to is const
    spelled   type and stars as the source has them
    """

    name: str
    type: str
    pointers: int
    const: bool
    spelled: str

    @property
    def pointer(self) -> bool:
        """Whether it takes an address."""
        return self.pointers > 0


class _Word(Protocol):
    @property
    def text(self) -> str: ...


W = TypeVar("W", bound=_Word)


def parts(words: Sequence[W]) -> Iterator[Sequence[W]]:
    """The words between commas that no bracket encloses; inside parentheses, `<` compares."""
    depth, inside, start = 0, 0, 0
    for index, word in enumerate(words):
        inside += (word.text in ("(", "[", "{")) - (word.text in (")", "]", "}"))
        if inside == 0:
            depth += (word.text == "<") - (word.text == ">")
        if word.text == "," and depth == 0 and inside == 0:
            yield words[start:index]
            start = index + 1
    if words[start:]:
        yield words[start:]


def parameter(words: Words, position: int, aliases: Mapping[str, Words]) -> Parameter:
    """The parameter that the words declare; `aliases` are other names of types, and template arguments."""
    declared = _without_attributes(words)
    end = next((at for at, word in enumerate(declared) if word == "="), len(declared))
    kind, name = _split(declared[:end])
    spelled = _spelled(kind)
    for _ in range(_DEEPEST):
        bare = [word for word in _before_stars(kind) if word not in _QUALIFIERS]
        alias = aliases.get(bare[-1]) if bare and _is_one_name(bare) else None
        if alias is None or alias == tuple(bare):
            break
        outside = ("const",) if "const" in _before_stars(kind) and "*" not in alias else ()
        kind = (*alias, *outside, *kind[_first_star(kind) :])
    before = _before_stars(kind)
    bare = [word for word in before if word not in _QUALIFIERS]
    text = bare[-1] if _is_one_name(bare) else " ".join(bare)
    return Parameter(name or f"argument {position}", text, kind.count("*"), "const" in before, spelled)


def _split(words: Words) -> tuple[Words, str]:
    """The type, an array as a pointer, and the name."""
    brackets = next((at for at, word in enumerate(words) if word == "["), len(words))
    arrays = words[brackets:].count("[")
    head = words[:brackets]
    star = max((at for at, word in enumerate(head) if word in ("*", "&")), default=-1)
    behind = [word for word in head[star + 1 :] if word not in _QUALIFIERS]
    named = bool(behind) and behind[-1].isidentifier() and behind[-1] not in _BUILT_IN
    if star < 0 and named:
        named = len(behind) > 1 and behind[-2] != ":"
    name = behind[-1] if named else ""
    kept = list(head)
    if name:
        del kept[len(kept) - 1 - kept[::-1].index(name)]
    if star >= 0:  # what is left behind the last star are qualifiers of the pointer, and unknown macros
        kept = kept[: star + 1]
    return (*kept, *("*" for _ in range(arrays))), name


def _first_star(kind: Words) -> int:
    return next((at for at, word in enumerate(kind) if word in ("*", "&")), len(kind))


def _before_stars(kind: Words) -> Words:
    return kind[: _first_star(kind)]


def _is_one_name(words: Sequence[str]) -> bool:
    """Whether the words are one name, with or without its namespaces, and not a template's."""
    return (
        bool(words)
        and all(word == ":" or word.isidentifier() for word in words)
        and (len(words) == 1 or all(words[at - 1] == ":" or word == ":" for at, word in enumerate(words) if at))
    )


def _spelled(kind: Words) -> str:
    text = ""
    for word in kind:
        if word not in ("__restrict__", "__restrict", "restrict", "struct", "class", "typename", "__grid_constant__"):
            text += f" {word}" if text and word.isidentifier() and text[-1] not in ":<" else word
    return text


def _without_attributes(words: Words) -> Words:
    kept: list[str] = []
    index = 0
    while index < len(words):
        if words[index] in _ATTRIBUTES or words[index : index + 2] == ("[", "["):
            opening = index if words[index] == "[" else index + 1
            index = _closing(words, opening)
        else:
            kept.append(words[index])
        index += 1
    return tuple(kept)


def _closing(words: Words, opening: int) -> int:
    depth = 0
    for index in range(opening, len(words)):
        depth += (words[index] in ("(", "[")) - (words[index] in (")", "]"))
        if depth == 0:
            return index
    return len(words)
