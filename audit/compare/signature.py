"""The kernels that a source defines, and the one that is compared: its parameters with their types resolved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from audit.compare.parameters import Parameter, Words, parameter, parts
from audit.compare.preprocess import Preprocessed
from audit.compile.lexer import Token, tokens
from audit.errors import PlanError

_KERNEL = "__global__"
_ATTRIBUTES = frozenset(
    ("__launch_bounds__", "__cluster_dims__", "__block_size__", "__maxnreg__", "__attribute__", "__align__", "alignas")
)
_MOST_LISTED = 12


class TemplateParameter(msgspec.Struct, frozen=True):
    """One parameter of a template, with its default if it has one."""

    name: str
    kind: str  # as written: `typename`, `int`
    default: Words | None
    pack: bool = False


class KernelDeclaration(msgspec.Struct, frozen=True):
    """One kernel as its source declares it: the scope that it lies in, and the words of each parameter."""

    scope: str
    name: str
    template: tuple[TemplateParameter, ...] | None
    declared: tuple[Words, ...]
    defined: bool

    @property
    def qualified(self) -> str:
        """The name with its namespaces."""
        return f"{self.scope}::{self.name}" if self.scope else self.name

    def __str__(self) -> str:
        head = f"<{', '.join(f'{one.kind} {one.name}' for one in self.template)}>" if self.template else ""
        return f"{self.qualified}{head}({', '.join(' '.join(words) for words in self.declared)})"


class Signature(msgspec.Struct, frozen=True):
    """The kernel that is compared.

    entry       how a launch names it: with its namespaces and template arguments
    name        its bare name
    parameters  in order
    """

    entry: str
    name: str
    parameters: tuple[Parameter, ...]


class Declarations(msgspec.Struct, frozen=True):
    """What a source declares: kernels, and types under another name."""

    kernels: tuple[KernelDeclaration, ...]
    aliases: Mapping[str, Words]


def signature_of(source: Preprocessed, entry: str, file: str, option: str = "--entry") -> Signature:
    """The kernel that an entry, such as `softmax` or `splits<6, 256>`, names. Without one, the only kernel there is.

    Raises PlanError where the source has no such kernel, more than one, or where template arguments are missing.
    """
    found = declared_kernels(source.tokens)
    name, given = _name_and_arguments(entry)
    kernel = _chosen(found.kernels, name, file, option)
    bound, arguments = _bound(kernel, given, option)
    parameters = tuple(
        parameter(words, position, {**found.aliases, **bound}) for position, words in enumerate(kernel.declared, 1)
    )
    return Signature(f"{kernel.qualified}{arguments}", kernel.name, parameters)


def declared_kernels(words: Sequence[Token]) -> Declarations:
    """All kernels in the order of the source, each once, a definition before its forward declaration."""
    kernels: dict[tuple[object, ...], KernelDeclaration] = {}
    aliases: dict[str, Words] = {}
    for kernel in _walk(words, aliases):
        types = tuple(parameter(each, 0, {}).spelled for each in kernel.declared)
        key = (kernel.qualified, len(kernel.template or ()), kernel.template is None, types)
        kernels[key] = _merged(kernels[key], kernel) if key in kernels else kernel
    return Declarations(tuple(kernels.values()), aliases)


def _merged(first: KernelDeclaration, again: KernelDeclaration) -> KernelDeclaration:
    """Two declarations of one kernel: the words of the definition, and the defaults of both."""
    kept = again if again.defined and not first.defined else first
    if kept.template is None or first.template is None or again.template is None:
        return kept
    template = tuple(
        msgspec.structs.replace(one, default=one.default or other.default or another.default)
        for one, other, another in zip(kept.template, first.template, again.template, strict=True)
    )
    return msgspec.structs.replace(kept, template=template)


def _walk(words: Sequence[Token], aliases: dict[str, Words]) -> Iterator[KernelDeclaration]:
    scopes: list[str] = []
    template: tuple[TemplateParameter, ...] | None = None
    index = 0
    while index < len(words):
        word = words[index].text
        if word == "template" and words[index + 1 : index + 2] and words[index + 1].text == "<":
            close = _matching(words, index + 1)
            template, index = _template(words[index + 2 : close]), close
        elif word == "namespace":
            names = _until(words, index + 1, "{;=")
            if words[index + 1 + len(names) :][:1] and words[index + 1 + len(names)].text == "{":
                scopes.append("::".join(each.text for each in names if each.kind == "name"))
                index += 1 + len(names)
        elif word == _KERNEL:
            opening = _parameters_from(words, index + 1)
            if opening is not None:
                close = _matching(words, opening)
                behind = _until(words, close + 1, "{;")
                defined = words[close + 1 + len(behind) :][:1]
                scope = "::".join(filter(None, scopes))
                declared = tuple(tuple(each.text for each in one) for one in parts(words[opening + 1 : close]))
                declared = () if declared == (("void",),) else declared
                is_body = bool(defined) and defined[0].text == "{"
                yield KernelDeclaration(scope, words[opening - 1].text, template, declared, is_body)
                index, template = close, None
        elif word in ("using", "typedef") and template is None:
            aliases.update(_alias(_until(words, index, ";")))
        elif word == "enum":
            aliases.update(_enumeration(_until(words, index, "{;")))
        elif word == "{":
            scopes.append("")
            template = None
        elif word == "}" and scopes:
            scopes.pop()
        elif word == ";":
            template = None
        index += 1


def _chosen(kernels: Sequence[KernelDeclaration], name: str, file: str, option: str) -> KernelDeclaration:
    if not kernels:
        raise PlanError(
            f"{file}: expected a kernel (a function marked __global__), but the file defines none; "
            "give the file that defines it"
        )
    named = [one for one in kernels if not name or one.qualified == name or one.qualified.endswith(f"::{name}")]
    exact = [one for one in named if name and one.qualified == name]
    named = exact or named
    if len(named) == 1:
        return named[0]
    if len({one.qualified for one in named}) == 1:
        listed = "; ".join(str(one) for one in named[:_MOST_LISTED])
        raise PlanError(
            f"{file}: expected one kernel {named[0].qualified}, but got {len(named)} overloads: {listed}; "
            "rename one, or hide it with #ifdef and --define"
        )
    listed = ", ".join(dict.fromkeys(one.qualified for one in (named or kernels)))
    raise PlanError(f"{option}: expected a kernel of {file}, one of {listed}, but got {name or 'none; name one'}")


def _name_and_arguments(entry: str) -> tuple[str, list[Words] | None]:
    words = [word for word in tokens(entry) if word.kind != "directive"]
    opening = next((at for at, word in enumerate(words) if word.text == "<"), None)
    name = "".join(word.text for word in words[:opening])
    if opening is None:
        return name.removeprefix("::"), None
    inner = words[opening + 1 : _matching(words, opening)]
    return name.removeprefix("::"), [tuple(word.text for word in one) for one in parts(inner)]


def _bound(kernel: KernelDeclaration, given: list[Words] | None, option: str) -> tuple[dict[str, Words], str]:
    """Template parameter -> its argument, and the arguments as the entry is to be written."""
    template = kernel.template
    wanted = f"{kernel.qualified}<{', '.join(f'{one.kind} {one.name}' for one in template or ())}>"
    if template is None:
        if given is not None:
            raise PlanError(
                f"{option}: expected {kernel.qualified}, which is no template, but got template arguments "
                f"<{', '.join(' '.join(one) for one in given)}>"
            )
        return {}, ""
    values = list(given or ())
    packed = any(one.pack for one in template)
    lacking = [one.name for one in template[len(values) :] if one.default is None and not one.pack]
    if lacking or (len(values) > len(template) and not packed):
        got = f"<{', '.join(' '.join(one) for one in values)}>" if given is not None else "no template arguments"
        raise PlanError(
            f"{option}: expected {wanted} with a value for each, such as '{_example(kernel)}', but got {got}"
        )
    bound = {one.name: one.default for one in template if one.default is not None}
    bound.update(zip((one.name for one in template), values, strict=False))
    return bound, f"<{', '.join(_joined(one) for one in values)}>"


def _joined(words: Words) -> str:
    """Words as one expression: with a blank only where two of them would become one."""
    text = ""
    for word in words:
        text += f" {word}" if text and (text[-1].isalnum() or text[-1] == "_") and (word[0].isalnum()) else word
    return text


def _example(kernel: KernelDeclaration) -> str:
    template = kernel.template or ()
    return f"{kernel.qualified}<{', '.join('float' if _is_type(one) else '128' for one in template)}>"


def _is_type(one: TemplateParameter) -> bool:
    return one.kind.split(" ")[0] in ("typename", "class")


def _template(words: Sequence[Token]) -> tuple[TemplateParameter, ...]:
    found = []
    for part in parts(words):
        texts = [word.text for word in part]
        equals = texts.index("=") if "=" in texts else len(texts)
        default = tuple(texts[equals + 1 :]) or None
        declared = texts[:equals]
        name = declared[-1] if len(declared) > 1 and declared[-1].isidentifier() else ""
        kind = " ".join(declared[: -1 if name else None])
        found.append(
            TemplateParameter(name or "unnamed", kind.replace(" . . .", ""), default, declared.count(".") >= 3)
        )
    return tuple(found)


def _alias(words: Sequence[Token]) -> dict[str, Words]:
    texts = tuple(word.text for word in words)
    if texts[0] == "using":
        return {texts[1]: texts[3:]} if len(texts) > 3 and texts[2] == "=" else {}
    if len(texts) < 3 or "(" in texts or "{" in texts or not texts[-1].isidentifier():
        return {}  # a type of functions, or a struct that is defined here
    return {texts[-1]: texts[1:-1]}


def _enumeration(words: Sequence[Token]) -> dict[str, Words]:
    texts = [word.text for word in words if word.text not in ("enum", "class", "struct")]
    return {texts[0]: tuple(texts[2:]) if texts[1:2] == [":"] else ("int",)} if texts else {}


def _parameters_from(words: Sequence[Token], index: int) -> int | None:
    """The index of the parenthesis behind the kernel's name; None where no declaration follows."""
    while index < len(words):
        word = words[index]
        if word.text in (";", "{", "}"):
            return None
        if word.text == "(":
            before = words[index - 1]
            if before.text not in _ATTRIBUTES:
                return index if before.kind == "name" else None
            index = _matching(words, index)
        index += 1
    return None


def _until(words: Sequence[Token], index: int, stops: str) -> Sequence[Token]:
    end = index
    while end < len(words) and words[end].text not in stops:
        end += 1
    return words[index:end]


def _matching(words: Sequence[Token], opening: int) -> int:
    """The index of the bracket that closes the one at `opening`; inside parentheses `<` compares."""
    begin, end = words[opening].text, {"(": ")", "<": ">"}[words[opening].text]
    depth = round_depth = 0
    for index in range(opening, len(words)):
        text = words[index].text
        if begin == "<":
            round_depth += (text == "(") - (text == ")")
        if round_depth == 0 or begin == "(":
            depth += (text == begin) - (text == end)
        if depth == 0:
            return index
    return len(words)
