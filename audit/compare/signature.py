"""The kernels of a CUDA source and their parameters, read from the text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

import msgspec

from audit.compile.lexer import Token, tokens
from audit.errors import PlanError

_KERNEL = "__global__"
_ATTRIBUTES = ("__launch_bounds__", "__cluster_dims__", "__maxnreg__", "__attribute__", "__align__", "alignas")
_QUALIFIERS = frozenset(("const", "volatile", "__restrict__", "__restrict", "restrict", "__grid_constant__", "struct"))
_OPENING, _CLOSING = "([{<", ")]}>"


class Parameter(msgspec.Struct, frozen=True):
    """One parameter: `type` is that of the value, or of what a pointer points to, without qualifiers."""

    name: str
    type: str
    pointer: bool
    const: bool  # what a pointer points to


class Kernel(msgspec.Struct, frozen=True):
    """One kernel, by its name without template arguments."""

    name: str
    parameters: tuple[Parameter, ...]
    template: bool


def kernels_in(source: str) -> tuple[Kernel, ...]:
    """The kernels that a source defines or declares, each name once. What a macro assembles is not seen."""
    words = list(tokens(source))
    marks = {_KERNEL, *_macros(source, words)}
    found: dict[str, Kernel] = {}
    for index, word in enumerate(words):
        if word.kind != "name" or word.text not in marks:
            continue
        opening = _parameters_from(words, index + 1)
        if opening is None:
            continue
        close = _matching(words, opening)
        parameters = tuple(
            _parameter(part, position) for position, part in enumerate(_parts(words[opening + 1 : close]), 1)
        )
        name = words[opening - 1].text
        found.setdefault(name, Kernel(name, parameters, _is_template(words, index)))
    return tuple(found.values())


def kernel_named(source: str, entry: str, file: str) -> Kernel:
    """The kernel that an entry, such as `softmax` or `splits<6, 256>`, names. Without one, the only kernel there is.

    Raises PlanError where the source has no such kernel, or more than one to choose from.
    """
    kernels = {kernel.name: kernel for kernel in kernels_in(source)}
    if not entry and len(kernels) == 1:
        return next(iter(kernels.values()))
    name = entry.partition("<")[0].rpartition("::")[2].strip()
    if name not in kernels:
        listed = ", ".join(kernels) or "none"
        wanted = f"a kernel of {file}" if kernels else f"{file} to define a kernel (__global__)"
        raise PlanError(f"--entry: expected {wanted} ({listed}), but got {entry or 'nothing'}; name it with --entry")
    return kernels[name]


def _macros(source: str, words: Sequence[Token]) -> Iterator[str]:
    """The names of macros that stand for `__global__`, with or without attributes behind it."""
    for word in words:
        if word.kind == "directive" and _KERNEL in word.text:
            parts = list(tokens(source, word.start + 1, word.end))
            if len(parts) > 2 and parts[0].text == "define" and not any(part.text == "{" for part in parts):
                yield parts[1].text


def _parameters_from(words: Sequence[Token], index: int) -> int | None:
    """The index of the parenthesis behind the kernel's name; None where no declaration follows."""
    while index < len(words):
        word = words[index]
        if word.text in (";", "{", "}"):
            return None
        if word.text == "(":
            if words[index - 1].text not in _ATTRIBUTES:
                return index if words[index - 1].kind == "name" else None
            index = _matching(words, index)
        index += 1
    return None


def _is_template(words: Sequence[Token], index: int) -> bool:
    before = takewhile(lambda word: word.text not in (";", "}", "{") and word.kind != "directive", words[index::-1])
    return any(word.text == "template" for word in before)


def _parts(words: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """The words between commas that no bracket encloses."""
    depth, start = 0, 0
    for index, word in enumerate(words):
        depth += (word.text in _OPENING) - (word.text in _CLOSING)
        if word.text == "," and depth == 0:
            yield words[start:index]
            start = index + 1
    if words[start:]:
        yield words[start:]


def _parameter(words: Sequence[Token], position: int) -> Parameter:
    words = list(takewhile(lambda word: word.text != "=", words))
    pointer = next((index for index, word in enumerate(words) if word.text in ("*", "[")), None)
    names = [word for word in words if word.kind == "name" and word.text not in _QUALIFIERS]
    unnamed = len(names) < 2 and not (pointer is not None and words[-1].kind == "name")
    name = f"argument {position}" if unnamed else names[-1].text
    type_words = [word.text for word in words if word.text not in _QUALIFIERS and word.text not in ("*", "&", "[", "]")]
    kept = type_words if unnamed else type_words[: len(type_words) - 1 - type_words[::-1].index(name)]
    before = words if pointer is None else words[:pointer]
    return Parameter(name, " ".join(kept), pointer is not None, any(word.text == "const" for word in before))


def _matching(words: Sequence[Token], opening: int) -> int:
    depth = 0
    for index in range(opening, len(words)):
        depth += (words[index].text == "(") - (words[index].text == ")")
        if depth == 0:
            return index
    return len(words)
