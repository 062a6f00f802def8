"""Leaves out the host code of CUDA sources: launchers, `main`, handles, wrappers, and what only they use.

A GPU runs none of it, and a compiler without CUDA's host interface cannot read it. What stays is what device code
reaches: functions and variables with a device qualifier, and the types, constants, aliases and macros that they name,
directly or through one another. A class keeps its data and its device functions. Left-out text leaves its line breaks
and its preprocessor lines, so that every line keeps its number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from audit.compile.declarations import Declaration, Unbalanced, declarations
from audit.compile.lexer import Token, tokens

_DEVICE = frozenset(("__global__", "__device__", "__constant__", "__shared__", "__managed__"))
_CONSTANT = frozenset(("constexpr", "consteval", "const"))
_NAMESPACES = frozenset(("std", "nvcuda", "cooperative_groups", "cuda", "literals"))
_WORD = re.compile(r"[^\W\d]\w*")


def without_host_code(files: Mapping[str, str], entries: Iterable[str] = ()) -> dict[str, str]:
    """The texts of one program's files by name, without host code.

    What `entries` name stays too: `splits<kRows>` needs its constant. A file whose braces do not match stays whole.
    """
    parsed: dict[str, tuple[Declaration, ...]] = {}
    whole = {word for entry in entries for word in _WORD.findall(entry)}
    for name, text in files.items():
        try:
            parsed[name] = declarations(text)
        except Unbalanced:
            whole.update(_WORD.findall(text))
    found = [one for declared in parsed.values() for one in declared]
    selection = _Selection(found, _macros(files.values()), whole, _declared_namespaces(files.values()))
    return {
        name: _without(text, selection.left_out(parsed[name])) if name in parsed else text
        for name, text in files.items()
    }


class _Selection:
    """Which declarations device code reaches."""

    def __init__(
        self,
        found: list[Declaration],
        macros: Mapping[str, frozenset[str]],
        wanted: set[str],
        namespaces: frozenset[str],
    ) -> None:
        self._device = _DEVICE | _naming(macros, _DEVICE)
        self._constant = _CONSTANT | _naming(macros, _CONSTANT - {"const"})
        self._device_functions = {
            name for one in _all(found) if one.kind == "function" and self._is_device(one) for name in one.names
        } - {""}
        self._namespaces = _NAMESPACES | namespaces
        by_name: dict[str, list[Declaration]] = {}
        for one in found:
            for name in one.names if self._may_stay(one) else ():
                by_name.setdefault(name, []).append(one)
        self._kept: set[int] = set()
        self._reached: set[str] = set()
        pending = [*wanted]
        for one in found:
            if self._is_root(one):
                pending += self._keep(one)
        while pending:
            name = pending.pop()
            if name in self._reached:
                continue
            self._reached.add(name)
            pending += macros.get(name, ())
            for one in by_name.get(name, ()):
                if id(one) not in self._kept:
                    pending += self._keep(one)

    def left_out(self, found: Iterable[Declaration]) -> Iterator[Declaration]:
        """What goes, in order: whole declarations, and host functions of classes that stay."""
        for one in found:
            if id(one) in self._kept or self._is_harmless(one):
                yield from self._host_members(one)
            else:
                yield one

    def _keep(self, one: Declaration) -> Iterator[str]:
        """The names that a declaration needs."""
        self._kept.add(id(one))
        hidden = {id(word) for member in self._host_members(one) for word in member.words}
        for word in one.words:
            if word.kind == "name" and id(word) not in hidden:
                yield word.text

    def _host_members(self, one: Declaration) -> Iterator[Declaration]:
        for member in one.members:
            if member.kind == "type":
                yield from self._host_members(member)
            elif member.kind == "function" and not (
                self._is_device(member) or member.defaulted or not self._constant.isdisjoint(_leading(member))
            ):
                yield member

    def _is_device(self, one: Declaration) -> bool:
        return not self._device.isdisjoint(one.qualifiers())

    def _is_root(self, one: Declaration) -> bool:
        if one.kind in ("function", "macro"):
            return self._is_device(one) or (one.kind == "function" and one.names[0] in self._device_functions)
        return one.kind == "variable" and self._is_device(one)

    def _may_stay(self, one: Declaration) -> bool:
        """Whether a declaration stays if device code names it."""
        if one.kind in ("function", "variable"):
            words = one.qualifiers() if one.kind == "variable" else _leading(one)
            return self._is_root(one) or not self._constant.isdisjoint(words)
        return one.kind in ("type", "alias")

    def _is_harmless(self, one: Declaration) -> bool:
        """Whether a declaration that nobody names stays all the same."""
        if one.kind == "using namespace":
            return one.names[0] in self._namespaces
        if one.kind == "assertion":
            named = {word.text for word in one.words if word.kind == "name"}
            return named <= self._reached | {"static_assert", "sizeof", "alignof", "std", "true", "false"}
        return False


def _leading(function: Declaration) -> frozenset[str]:
    """The words in front of a function's parameters: `const float*` there is no constant."""
    words: list[str] = []
    for word in function.words[: function.head]:
        if word.text == "(":
            break
        words.append(word.text)
    return frozenset(words) - {"const"}


def _all(found: Iterable[Declaration]) -> Iterator[Declaration]:
    for one in found:
        yield one
        yield from _all(one.members)


def _declared_namespaces(texts: Iterable[str]) -> frozenset[str]:
    """Those that the files open. An alias counts where what it stands for does not come from elsewhere."""
    return frozenset(
        name for text in texts for name in re.findall(r"(?<!using )\bnamespace\s+(\w+)\s*(?:::\w+)*\s*{", text)
    )


def _macros(texts: Iterable[str]) -> dict[str, frozenset[str]]:
    """The names in the body of each macro, by the macro's name."""
    macros: dict[str, frozenset[str]] = {}
    for text in texts:
        for directive in (word for word in tokens(text) if word.kind == "directive"):
            words = [word for word in tokens(text, directive.start + 1, directive.end) if word.kind == "name"]
            if len(words) >= 2 and words[0].text == "define":
                names = frozenset(word.text for word in words[2:])
                macros[words[1].text] = macros.get(words[1].text, frozenset()) | names
    return macros


def _naming(macros: Mapping[str, frozenset[str]], words: frozenset[str]) -> frozenset[str]:
    """The macros whose bodies name one of `words`, directly or through another macro."""
    found: frozenset[str] = frozenset()
    while True:
        more = frozenset(name for name, body in macros.items() if not body.isdisjoint(words | found))
        if more == found:
            return found
        found = more


def _without(text: str, left_out: Iterable[Declaration]) -> str:
    parts, position = [], 0
    for one in left_out:
        parts += [text[position : one.start], _remains(text, one.words)]
        position = one.end
    return "".join((*parts, text[position:]))


def _remains(text: str, words: Iterable[Token]) -> str:
    """The line breaks and the preprocessor lines among the tokens."""
    parts, position = [], -1
    for word in words:
        if position >= 0:
            parts.append("\n" * text.count("\n", position, word.start))
        parts.append(word.text if word.kind == "directive" else "\n" * word.text.count("\n"))
        position = word.end
    return "".join(parts)
