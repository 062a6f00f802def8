"""The declarations of a CUDA source at namespace scope, and the members of its classes, found without a compiler.

A declaration is a run of tokens up to its `;` or the end of its body. Namespaces and `extern "C" { }` are entered;
preprocessor lines are no part of what they stand between. Macros are not expanded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from audit.compile.lexer import Token, tokens

_CLOSING = {"(": ")", "[": "]", "{": "}"}
_CLASS_KEYS = frozenset(("struct", "class", "union", "enum"))
# A parenthesis after one of these belongs to an attribute or a type, not to a function.
_ATTRIBUTES = frozenset(
    (
        *("__launch_bounds__", "__maxnreg__", "__cluster_dims__", "__block_size__"),
        *("__align__", "__builtin_align__", "alignas", "__attribute__", "__declspec"),
        *("decltype", "noexcept", "requires", "explicit", "asm", "sizeof"),
    )
)
_AFTER_A_CALL = frozenset((";", "{", "=", ",", "-", ":", "[", "(", ".", "const", "noexcept", "__attribute__"))

Kind = Literal["function", "type", "variable", "alias", "using namespace", "assertion", "macro"]


class Unbalanced(Exception):
    """The braces do not match, as where two branches of the preprocessor open the same body."""


class Declaration(msgspec.Struct, frozen=True):
    """`words` are its tokens, the first `head` of them before the body. `names` are what it declares."""

    kind: Kind
    names: tuple[str, ...]
    words: tuple[Token, ...]
    head: int
    members: tuple[Declaration, ...] = ()
    defaulted: bool = False  # a function without a body of its own: `= default`, `= delete`, `= 0`

    @property
    def start(self) -> int:
        return self.words[0].start

    @property
    def end(self) -> int:
        return self.words[-1].end

    def qualifiers(self) -> frozenset[str]:
        """The names in front of the body."""
        return frozenset(word.text for word in self.words[: self.head] if word.kind == "name")


def declarations(source: str) -> tuple[Declaration, ...]:
    """All declarations in order. Raises Unbalanced if the braces do not match."""
    return tuple(_split([*tokens(source)], in_class=False))


def _split(words: Sequence[Token], in_class: bool) -> Iterator[Declaration]:
    at, depth = 0, 0
    while at < len(words):
        text = words[at].text
        if words[at].kind == "directive" or text == ";":
            at += 1
        elif text == "}":
            depth -= 1
            at += 1
        elif in_class and text in ("public", "private", "protected") and _text(words, at + 1) == ":":
            at += 2
        elif (opened := _entered(words, at)) is not None:
            depth += 1
            at = opened + 1
        else:
            found = _Reader(words, at).read()
            yield found
            at += len(found.words)
    if depth != 0:
        raise Unbalanced


def _entered(words: Sequence[Token], at: int) -> int | None:
    """The index of the brace that opens a namespace or a linkage block."""
    start = at + (words[at].text == "inline")
    if _text(words, start) == "namespace":
        while start < len(words) and words[start].text not in ("{", ";", "="):
            start += 1
        return start if _text(words, start) == "{" else None
    if words[at].text == "extern" and _text(words, at + 1).startswith('"') and _text(words, at + 2) == "{":
        return at + 2
    return None


class _Reader:
    """Reads the declaration that begins at `first`; the fields are indices of tokens, -1 for none."""

    def __init__(self, words: Sequence[Token], first: int) -> None:
        self.words, self.first = words, first
        self.call = self.body = self.key = -1  # the parenthesis of parameters, the brace of the body, `struct`
        self.equals = self.initializing = False

    def read(self) -> Declaration:
        at = self.first
        while at < len(self.words):
            text = self.words[at].text
            if text == ";":
                return self._described(at + 1)
            if text == "}" and at > self.first:
                return self._described(at)
            if text == "}":
                break
            if text == "(" and at == self.first + 1 and _ends_a_macro(self.words, _matching(self.words, at)):
                own = self.words[self.first : _matching(self.words, at) + 1]
                return Declaration("macro", (own[0].text,), tuple(own), len(own))
            if text == "{" and self._opens_a_body(at):
                self.body = at
                return self._described(_matching(self.words, at) + 1)
            at = self._passed(at) + 1
        raise Unbalanced

    def _passed(self, at: int) -> int:
        """The last index of what begins at `at`: a token, or a whole bracket."""
        word, before = self.words[at], _text(self.words, at - 1)
        if word.text == "template" and _text(self.words, at + 1) == "<":
            return _angle(self.words, at + 1)
        if word.text == "operator" and word.kind == "name":
            return self._operator(at)
        if word.text in _CLASS_KEYS and word.kind == "name" and max(self.key, self.call) < 0 and not self.equals:
            self.key = at
        elif word.text == "(" and not self.equals and not self.initializing and before not in _ATTRIBUTES:
            self.call = at
        elif word.text == "=":
            self.equals = True
        elif word.text == ":" and self.call >= 0 and ":" not in (before, _text(self.words, at + 1)):
            self.initializing = True
        elif word.text == "{" and self.key >= 0 and self.call < 0 and not self.equals and self.body < 0:
            self.body = at
        return _matching(self.words, at) if word.text in _CLOSING else at

    def _operator(self, at: int) -> int:
        """The last token of an operator's name."""
        if _text(self.words, at + 1) == "(":
            return at + 2
        while at + 1 < len(self.words) and self.words[at + 1].text != "(":
            at += 1
        return at

    def _opens_a_body(self, at: int) -> bool:
        before = self.words[at - 1]
        is_member = self.initializing and (before.kind == "name" or before.text == ">")  # of an initializer list
        return self.call >= 0 and not self.equals and not is_member

    def _described(self, end: int) -> Declaration:
        own = tuple(self.words[self.first : end])
        texts = [word.text for word in own]
        head = (self.body if self.body >= 0 else end) - self.first
        if texts[0] == "static_assert":
            return Declaration("assertion", (), own, len(own))
        if texts[0] == "typedef" or texts[0] == "namespace" or "using" in texts[:head]:
            return self._alias(own, texts)
        defaulted = self.equals and texts[-3:-1] in (["=", "default"], ["=", "delete"], ["=", "0"])
        is_forward = self.call < 0 and not self.equals and self.key + 2 >= end - 2
        if self.key >= 0 and (self.body >= 0 or is_forward) and not (self.call >= 0 and self.body > self.call):
            return self._type(own, head, end)
        if self.call >= 0 and _text(self.words, self.call + 1) == "*" and self.body < 0:  # void (*pointer)(int);
            return Declaration("variable", tuple(_variable_names(own)), own, len(own))
        if self.call >= 0 and (not self.equals or defaulted):
            return Declaration(
                "function", (_function_name(self.words, self.first, self.call),), own, head, (), defaulted
            )
        return Declaration("variable", tuple(_variable_names(own)), own, len(own))

    def _alias(self, own: tuple[Token, ...], texts: Sequence[str]) -> Declaration:
        if texts[0] == "typedef":
            last = next((word.text for word in reversed(own) if word.kind == "name"), "")
            tag = (_type_name(self.words, self.key),) if self.key >= 0 else ()
            names = (*_variable_names(own), last, *tag, *self._enumerators())
            return Declaration("alias", names, own, len(own))
        at = texts.index("using") + 1 if "using" in texts else 1
        if "using" in texts and texts[at] == "namespace":
            return Declaration("using namespace", (texts[at + 1],), own, len(own))
        return Declaration("alias", (texts[at if "=" in texts else -2],), own, len(own))  # using A::name;

    def _type(self, own: tuple[Token, ...], head: int, end: int) -> Declaration:
        names = (_type_name(self.words, self.key), *self._enumerators())
        if self.body < 0:
            return Declaration("type", names, own, head)
        close = _matching(self.words, self.body)
        members: tuple[Declaration, ...] = ()
        if self.words[self.key].text != "enum":
            members = tuple(_split(self.words[self.body + 1 : close], in_class=True))
        objects = (word.text for word in self.words[close + 1 : end] if word.kind == "name")
        return Declaration("type", (*names, *objects), own, head, members)

    def _enumerators(self) -> tuple[str, ...]:
        if self.key < 0 or self.body < 0 or self.words[self.key].text != "enum":
            return ()
        inner = self.words[self.body : _matching(self.words, self.body)]
        return tuple(name.text for before, name in pairwise(inner) if before.text in ("{", ",") and name.kind == "name")


def _variable_names(own: Sequence[Token]) -> Iterator[str]:
    """The declared names: those outside brackets that end a declarator, and the one in `(*name)`."""
    at, initialized = 0, False
    while at < len(own):
        text = own[at].text
        initialized = initialized or text == "="
        if text == "<" and not initialized:
            at = _angle(own, at) + 1
            continue
        if text == "(" and _text(own, at + 1) == "*":
            yield _text(own, at + 2)
        if text in _CLOSING:
            at = _matching(own, at)
        elif (
            own[at].kind == "name"
            and _text(own, at + 1) in ("=", "[", ";", ",", "{", ":")
            and (_text(own, at + 1), _text(own, at + 2)) != (":", ":")
        ):
            yield text
        at += 1


def _function_name(words: Sequence[Token], first: int, call: int) -> str:
    for at in range(call - 1, max(first, call - 6) - 1, -1):
        if words[at].text == "operator" and words[at].kind == "name":
            return "".join(word.text for word in words[at:call])
    at = call - 1
    if words[at].text == ">":
        depth = 0
        while at > first:
            depth += (words[at].text == ">") - (words[at].text == "<")
            at -= 1
            if depth == 0:
                break
    return words[at].text if at >= first and words[at].kind == "name" else ""


def _type_name(words: Sequence[Token], key: int) -> str:
    at = key + 1
    while at < len(words):
        if _text(words, at) in ("class", "struct"):  # enum class
            at += 1
        elif words[at].text in _ATTRIBUTES and _text(words, at + 1) == "(":
            at = _matching(words, at + 1) + 1
        elif words[at].text == "[":
            at = _matching(words, at) + 1
        else:
            break
    name = ""
    while at < len(words) and words[at].kind == "name":  # the last of macro and name
        name = words[at].text if words[at].text != "final" else name
        at += 1
    return name


def _ends_a_macro(words: Sequence[Token], close: int) -> bool:
    """Whether the next token belongs to another declaration, as after a macro that stands alone on its line."""
    if close + 1 >= len(words):
        return True
    return words[close + 1].text not in _AFTER_A_CALL and (
        words[close + 1].kind in ("name", "directive") or words[close + 1].text == "}"
    )


def _angle(words: Sequence[Token], at: int) -> int:
    """The index of the `>` that closes the `<` at `at`."""
    depth = 0
    while at < len(words):
        text = words[at].text
        if text in _CLOSING:
            at = _matching(words, at)
        elif text == "<":
            depth += 1
        elif text == ">" and not (words[at - 1].text == "-" and words[at - 1].end == words[at].start):
            depth -= 1
            if depth == 0:
                return at
        elif text in (";", "}"):
            raise Unbalanced
        at += 1
    raise Unbalanced


def _matching(words: Sequence[Token], at: int) -> int:
    """The index of the bracket that closes the one at `at`."""
    depth = 0
    for index in range(at, len(words)):
        depth += words[index].text in _CLOSING and words[index].kind == "mark"
        depth -= words[index].text in (")", "]", "}") and words[index].kind == "mark"
        if depth == 0:
            return index
    raise Unbalanced


def _text(words: Sequence[Token], at: int) -> str:
    return words[at].text if 0 <= at < len(words) else ""
