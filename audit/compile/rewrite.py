"""Rewrites a CUDA source, line for line, to C++ that the host's compiler accepts.

Inline assembly becomes a compile error that names it, unless the preprocessor removes it. Headers of CUDA that
`audit/simt` lacks, and headers of other libraries that are not installed, are left out: where device code uses what
they declare, the compiler says so, and `LEFT_OUT` says which header it was. A kernel with `__launch_bounds__` checks
its block's size. Beyond that `__shared__` declarations change:

`__shared__ T a[2], *b;` becomes typedefs, one static description of each object, and references into the block's heap.
The description's address is the object's identity; a template has one for each instantiation. The new text is on the
declaration's first line, followed by the old text's line breaks, so that line numbers stay the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NoReturn

from audit.compile.launch_bounds import BoundsMacro, bounds_checks
from audit.compile.lexer import Token, line_of, matching, tokens
from audit.compile.sources import is_provided
from audit.errors import CompileError

_OPENING, _CLOSING = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}
_ALIGNMENTS = ("alignas", "__align__", "__attribute__")
_STORAGE = ("extern", "static", "__shared__")
_ASSEMBLY = ("asm", "__asm__", "__asm")
_QUALIFIERS = ("volatile", "__volatile__", "inline", "__inline__", "goto")
# Headers of CUDA and its libraries. A host build must never use those of an installed toolkit.
_CUDA_HEADER = re.compile(
    r"(cuda|cub|thrust|nv|cutlass|cute|cooperative_groups|crt)/.+"
    r"|(cuda|curand|cublas|cufft|cusparse|texture_|surface_|mma)\w*\.h(pp)?"
)
_ADVICE = "is not supported on the CPU; guard it with #ifdef __CUDACC__ and provide an alternative for the CPU"


LEFT_OUT = "is not here for the CPU and was left out"


@lru_cache(maxsize=256)  # every variant and case rewrites the same texts
def rewrite(source: str, name: str, foreign: frozenset[str] = frozenset(), macros: tuple[BoundsMacro, ...] = ()) -> str:
    """The source for the host, below a `#line` that names it; `name` is its path in messages.

    `foreign` are its quoted includes that are no file of the project, `macros` those of the whole program that hold
    launch bounds. Raises CompileError for a `__shared__` that is
    not a declaration inside a function.
    """
    words = list(tokens(source))
    edits = _edits(source, name, words, count=0, inside=False)
    edits += _assembly(source, words)
    edits += bounds_checks(source, quoted(name), words, macros)
    for token in (word for word in words if word.kind == "directive"):
        edits += _include(token, source, name, foreign)
        if any(word in token.text for word in ("__shared__", "asm", "__launch_bounds__")):
            body = list(tokens(source, *_macro_body(source, token, name)))
            edits += _edits(source, name, body, count=len(edits), inside=True)
            edits += _assembly(source, body)
            edits += bounds_checks(source, quoted(name), body, macros)
    text, position = [f"#line 1 {quoted(name)}\n"], 0
    for start, end, replacement in sorted(edits):
        text += [source[position:start], replacement]
        position = end
    return "".join((*text, source[position:]))


def _assembly(source: str, words: Sequence[Token]) -> list[tuple[int, int, str]]:
    """Turns each `asm ("instructions" ...)` into an error. One without instructions is a compiler barrier and stays."""
    edits: list[tuple[int, int, str]] = []
    for index, word in enumerate(words):
        if word.text not in _ASSEMBLY or word.kind != "name":
            continue
        opening = index + 1
        while opening < len(words) and words[opening].text in _QUALIFIERS:
            opening += 1
        if opening == len(words) or words[opening].text != "(":
            continue
        close = matching(words, opening)
        shown = ""
        for part in words[opening + 1 : close]:
            if part.kind != "string":
                shown += "" if part.text == ":" else " ..."  # a macro may stand for instructions
                break
            shown += re.sub(r'^\w*"|"$', " ", part.text.replace("\\n", " ").replace("\\t", " "))
        if shown.strip():
            end = words[close].end
            message = f"inline assembly, `{' '.join(shown.split())[:40]}`, {_ADVICE}"
            edits.append(
                (word.start, end, f"static_assert(false, {quoted(message)})" + _breaks(source[word.start : end]))
            )
    return edits


def _include(directive: Token, source: str, name: str, foreign: frozenset[str]) -> list[tuple[int, int, str]]:
    match = re.match(r"#\s*include\s*(?:<\s*([^>]+?)\s*>|\"([^\"]+)\")", directive.text)
    if match is None or (match[2] and match[2] not in foreign):
        return []
    header = match[1] or match[2]
    if is_provided(header):
        return []
    note = f"#pragma GCC warning {quoted(f'<{header}> {LEFT_OUT}')}"
    if _CUDA_HEADER.fullmatch(header):
        return [(directive.start, directive.end, note + _breaks(directive.text))]
    if match[2] or "." not in header:  # an error of the compiler's, and a header that every compiler has
        return []
    here = line_of(source, directive.start)
    text = f"#if __has_include(<{header}>)\n{directive.text}\n#else\n#line {here} {quoted(name)}\n{note}\n#endif\n"
    return [(directive.start, directive.end, f"{text}#line {line_of(source, directive.end)} {quoted(name)}\n")]


def _macro_body(source: str, token: Token, name: str) -> tuple[int, int]:
    words = list(tokens(source, token.start + 1, token.end))
    if len(words) < 2 or words[0].text != "define":
        return token.end, token.end
    body = words[2:]
    # A macro's parameters follow its name without a blank.
    if body and body[0].text == "(" and body[0].start == words[1].end:
        body = body[next(i for i, word in enumerate(body) if word.text == ")") + 1 :]
    if "__shared__" in token.text and body and all(word.text in _STORAGE for word in body):
        _refuse(source, token.start, name, "a macro hides __shared__; write __shared__ in the variable's declaration")
    return (body[0].start, token.end) if body else (token.end, token.end)


def _edits(source: str, name: str, words: list[Token], count: int, inside: bool) -> list[tuple[int, int, str]]:
    edits: list[tuple[int, int, str]] = []
    scopes: list[bool] = [True] if inside else []  # for each open brace: whether it belongs to a function or a class
    begin = 0  # the first token of the current declaration
    index = 0
    while index < len(words):
        word = words[index]
        if word.text == "__shared__" and word.kind == "name":
            if not any(scopes):
                _refuse(source, word.start, name, "a __shared__ variable outside a function; declare it in the kernel")
            end = _end_of_declaration(words, index)
            edits.append(_edit(source, name, words[begin:end], count + len(edits)))
            begin = index = min(end + 1, len(words))
            continue
        if word.text == "{":
            heads = [other.text for other in words[begin:index]]
            scopes.append(not ("namespace" in heads[:2] or heads == ["extern", '"C"']))
        elif word.text == "}" and len(scopes) > inside:
            scopes.pop()
        if word.kind == "directive" or word.text in ("{", "}", ";") or (word.text == ":" and _is_label(words, index)):
            begin = index + 1
        index += 1
    return edits


def _is_label(words: list[Token], index: int) -> bool:
    return all(word.text != ":" for word in (*words[max(0, index - 1) : index], *words[index + 1 : index + 2]))


def _end_of_declaration(words: list[Token], index: int) -> int:
    """The index of the `;`, or the number of tokens in a macro without one."""
    depth = 0
    while index < len(words):
        text = words[index].text
        depth += (text in _OPENING) - (text in _CLOSING)
        if text == ";" and depth == 0:
            return index
        index += 1
    return index


def _edit(source: str, name: str, words: list[Token], count: int) -> tuple[int, int, str]:
    start, end = words[0].start, words[-1].end
    for word in words:
        if word.kind == "directive":
            _refuse(
                source,
                word.start,
                name,
                "a preprocessor line inside a __shared__ declaration; write one declaration for each branch",
            )
    old = source[start:end]
    source_line = f"{quoted(name)}, {line_of(source, start)}"
    dynamic = any(word.text == "extern" for word in words)
    alignments, rest = _take_alignments(source, [word for word in words if word.text not in _STORAGE])
    declarators = _declarators(source, rest, name)
    tag = f"simt{count}"
    types = "typedef " + _text(rest, {word.start: f"{word.text}_{tag}_type" for word in declarators})
    parts = [types]
    for declared in declarators:
        variable = declared.text
        kind, strict = f"{variable}_{tag}_type", f"alignof({variable}_{tag}_type)"
        if alignments:
            parts.append(f"struct {variable}_{tag}_align {{ {' '.join(alignments)} char bytes; }}")
            strict = f"simt::stricter({strict}, alignof({variable}_{tag}_align))"
        if dynamic:
            address = f"simt::dynamic_shared({strict})"
        else:
            described = f'{{sizeof({kind}), {strict}, "{variable}", {source_line}}}'
            parts.append(f"static constexpr simt::SharedObject {variable}_{tag}_object{described}")
            address = f"simt::shared_object({variable}_{tag}_object)"
        parts.append(f"{kind}& {variable} = *static_cast<{kind}*>({address})")
    return start, end, "; ".join(parts) + _breaks(old)


def _breaks(text: str) -> str:
    """The line breaks of `text`; inside a macro each keeps its backslash."""
    lines = text.split("\n")[:-1]
    return "".join(("\\" if line.rstrip("\r").endswith("\\") else "") + "\n" for line in lines)


def _take_alignments(source: str, words: list[Token]) -> tuple[list[str], list[Token]]:
    taken: list[str] = []
    rest: list[Token] = []
    index = 0
    while index < len(words):
        if words[index].text in _ALIGNMENTS and index + 1 < len(words) and words[index + 1].text == "(":
            close = matching(words, index + 1)
            taken.append(" ".join(source[words[index].start : words[close].end].replace("\\\n", " ").split()))
            index = close + 1
        else:
            rest.append(words[index])
            index += 1
    return taken, rest


def _declarators(source: str, words: list[Token], name: str) -> list[Token]:
    """The tokens of the declared names."""
    names: list[Token] = []
    part: list[Token] = []  # the names of this declarator outside brackets
    grouped: list[Token] = []  # the names inside `(*name)`
    angles = index = 0
    while index <= len(words):
        text = words[index].text if index < len(words) else ","
        if text == "," and angles == 0:
            if not part and not grouped:
                _refuse(
                    source, words[0].start if words else 0, name, "a __shared__ declaration without a name; add one"
                )
            names.append((grouped or part)[-1])
            part, grouped = [], []
        elif text == "=" and angles == 0:
            _refuse(
                source,
                words[index].start,
                name,
                "a __shared__ variable with an initializer, which CUDA forbids; assign it in the kernel",
            )
        elif text == "<" and part:
            angles += 1
        elif text == ">" and angles > 0:
            angles -= 1
        elif text in _OPENING:
            close = matching(words, index)
            if text == "(" and index + 1 < close and words[index + 1].text in ("*", "&"):
                grouped = [word for word in words[index:close] if word.kind == "name"]
            index = close
        elif index < len(words) and words[index].kind == "name" and angles == 0:
            part.append(words[index])
        index += 1
    return names


def _text(words: list[Token], renamed: dict[int, str]) -> str:
    """The tokens on one line, some of them renamed. Adjacent tokens stay adjacent, as in `::`."""
    text, end = "", words[0].start if words else 0
    for word in words:
        text += ("" if word.start == end else " ") + renamed.get(word.start, word.text)
        end = word.end
    return text


def quoted(text: str) -> str:
    """A C++ string literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _refuse(source: str, position: int, name: str, what: str) -> NoReturn:
    raise CompileError(f"{name}:{line_of(source, position)}: {what}")
