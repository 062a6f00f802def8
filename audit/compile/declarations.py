"""The declarations of a CUDA source at namespace scope, and the members of its classes, found without a compiler.

A declaration is a run of tokens up to its `;` or the end of its body. Namespaces and `extern "C" { }` are entered;
preprocessor lines are no part of what they stand between. Macros are not expanded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from audit.compile.lexer import Token, tokens

_CLOSING = {"(": ")", "[": "]", "{": "}"}
_CLASS_KEYS = frozenset(("struct", "class", "union", "enum"))
# A parenthesis after one of these belongs to an attribute or a type, not to a function.
_ATTRIBUTES = frozenset(
    ("__launch_bounds__", "__align__", "alignas", "__attribute__", "__declspec", "decltype", "noexcept", "requires")
    + ("__cluster_dims__", "__block_size__", "__maxnreg__", "explicit", "asm", "sizeof", "__builtin_align__")
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
            found = _declaration(words, at, in_class)
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


def _declaration(words: Sequence[Token], first: int, in_class: bool) -> Declaration:
    """The declaration that begins at `first`."""
    at, call, body = first, -1, -1
    equals = initializing = False
    key = -1
    while at < len(words):
        word = words[at]
        text = word.text
        if text == ";":
            return _described(words, first, at + 1, call, body, key, equals)
        if text == "}":
            if at == first:
                raise Unbalanced
            return _described(words, first, at, call, body, key, equals)
        if text == "template" and _text(words, at + 1) == "<":
            at = _angle(words, at + 1)
        elif text in _CLASS_KEYS and word.kind == "name" and key < 0 and call < 0 and not equals:
            key = at
        elif text == "operator" and word.kind == "name":
            at += 1
            while at + 1 < len(words) and not (words[at].text != "(" and words[at + 1].text == "("):
                if words[at].text == "(" and _text(words, at + 1) == ")" and _text(words, at + 2) == "(":
                    at += 1
                    break
                at += 1
        elif text == "(":
            close = _matching(words, at)
            if not equals and not initializing and _text(words, at - 1) not in _ATTRIBUTES:
                call = at
            if at == first + 1 and _ends_a_macro(words, close):
                return Declaration("macro", (words[first].text,), tuple(words[first : close + 1]), close + 1 - first)
            at = close
        elif text == "[":
            at = _matching(words, at)
        elif text == "=":
            equals = True
        elif text == ":" and call >= 0 and _text(words, at - 1) != ":" and _text(words, at + 1) != ":":
            initializing = True
        elif text == "{":
            close = _matching(words, at)
            is_type = key >= 0 and call < 0 and not equals
            member = initializing and at > first and (words[at - 1].kind == "name" or words[at - 1].text == ">")
            if call >= 0 and not equals and not is_type and not member:
                return _described(words, first, close + 1, call, at, key, equals)
            if is_type and body < 0:
                body = at
            at = close
        at += 1
    raise Unbalanced


def _described(
    words: Sequence[Token], first: int, end: int, call: int, body: int, key: int, equals: bool
) -> Declaration:
    own = tuple(words[first:end])
    head = (body if body >= 0 else end) - first
    texts = [word.text for word in own]
    opening = texts[0]
    if opening == "static_assert":
        return Declaration("assertion", (), own, len(own))
    if "using" in texts[:head] and texts[texts.index("using") + 1 : texts.index("using") + 2] == ["namespace"]:
        return Declaration("using namespace", tuple(texts[texts.index("namespace") + 1 :][:1]), own, len(own))
    if opening == "namespace" or "using" in texts[:head]:
        named = texts.index("using") + 1 if opening != "namespace" else 1
        if "=" not in texts:
            named = len(own) - 2  # using A::name;
        return Declaration("alias", (texts[named],), own, len(own))
    if opening == "typedef":
        pointed = [own[i + 2].text for i in range(len(own) - 2) if texts[i] == "(" and texts[i + 1] == "*"]
        plain = next((word.text for word in reversed(own) if word.kind == "name"), "")
        tag = (_type_name(words, key),) if key >= 0 else ()
        return Declaration("alias", (*pointed, plain, *tag, *_enumerators(words, key, body)), own, len(own))
    defaulted = equals and call >= 0 and texts[-3:-1] in (["=", "default"], ["=", "delete"], ["=", "0"])
    if key >= 0 and (body >= 0 or (call < 0 and not equals and key + 2 >= first + len(own) - 2)):
        members: tuple[Declaration, ...] = ()
        if body >= 0 and words[key].text != "enum":
            members = tuple(_split(words[body + 1 : _matching(words, body)], in_class=True))
        names = (_type_name(words, key), *_enumerators(words, key, body))
        after = words[_matching(words, body) + 1 : end] if body >= 0 else ()
        return Declaration("type", (*names, *(word.text for word in after if word.kind == "name")), own, head, members)
    if call >= 0 and (not equals or defaulted):
        if _text(words, call + 1) == "*" and body < 0:  # void (*pointer)(int);
            return Declaration("variable", (_text(words, call + 2),), own, len(own))
        return Declaration("function", (_function_name(words, first, call),), own, head, (), defaulted)
    names_of = [
        own[i].text
        for i in range(len(own) - 1)
        if own[i].kind == "name" and texts[i + 1] in ("=", "[", ";", ",", "{", ":")
    ]
    return Declaration("variable", tuple(names_of), own, len(own))


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


def _enumerators(words: Sequence[Token], key: int, body: int) -> tuple[str, ...]:
    if key < 0 or body < 0 or words[key].text != "enum":
        return ()
    inner = words[body : _matching(words, body)]
    return tuple(
        inner[i + 1].text for i in range(len(inner) - 1) if inner[i].text in ("{", ",") and inner[i + 1].kind == "name"
    )


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
