"""Reads PTX text. What it does not know is refused with its line; nothing is skipped but debug sections and pragmas."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from audit.errors import CompileError
from audit.ptx.syntax import (
    WIDTHS,
    Address,
    AddressByte,
    FloatBits,
    Function,
    Immediate,
    Instruction,
    Label,
    Module,
    Negated,
    Operand,
    Place,
    Register,
    Sink,
    Special,
    Statement,
    Symbol,
    Targets,
    Variable,
    Vector,
    refusal,
)

_NAME = r"[A-Za-z_$%][\w$]*"
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_INLINED = re.compile(r"([^\s\[\]:]+):(\d+)(?::\d+)?(?=[\s\]]|$)")
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?', re.MULTILINE)
_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)\s+\d+([^\n/]*)(?://([^\n]*))?")
_STATEMENT = re.compile(
    rf"""\s*(?:
      (?P<loc>\.loc\s[^\n]*)
    | (?P<open>\{{)
    | (?P<close>\}})
    | (?P<label>{_NAME}(?:\.\d+)?):(?!:)\s*(?!\s*\.(?:branchtargets|calltargets|callprototype))
    | (?P<text>[^;{{}}]*(?:\{{[^{{}};]*\}}[^;{{}}]*)*;)
    )""",
    re.VERBOSE,
)
_VARIABLE = re.compile(
    rf"""\.(?P<space>global|const|shared|local|param)(?P<attributes>(?:\s*\.attribute\([^)]*\))?)
    (?:\s+\.align\s+(?P<align>\d+))?\s+(?:\.(?P<vector>v2|v4)\s+)?\.(?P<type>\w+)
    (?P<pointer>(?:\s+\.ptr(?:\s+\.(?:global|shared|const|local))?(?:\s+\.align\s+\d+)?)?)\s+
    (?P<name>{_NAME})\s*(?P<extents>(?:\[\s*\d*\s*\]\s*)*)(?:=\s*(?P<initial>.*))?$""",
    re.VERBOSE | re.DOTALL,
)
_HEAD = re.compile(
    rf"""(?P<links>(?:\.(?:visible|extern|weak|common)\s+)*)
    \.(?P<kind>entry|func)\s*(?P<results>\([^)]*\)\s*)?(?P<name>{_NAME})\s*(?P<parameters>\([^)]*\))?
    (?P<bounds>[^;{{]*)(?P<end>[;{{])""",
    re.VERBOSE,
)
_HEADER = re.compile(r"\.(version|target|address_size)\s+([^\n]*)")
_NUMBER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|\d+)[uU]?$")
_ALIGNMENTS = {bits: max(1, bits // 8) for bits in WIDTHS.values()}


def parse_module(text: str) -> Module:
    """The module that a PTX text describes. Raises CompileError for what is malformed or unknown, at its line."""
    return _Parser(text).module()


def _blanked(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


def _without_comments(text: str) -> str:
    """The text with its lines in their places, and comments only behind `.loc`."""
    lines = _COMMENT.sub(_blanked, text).split("\n")
    for number, line in enumerate(lines):
        at = line.find("//")
        if at >= 0 and not line.lstrip().startswith(".loc"):
            lines[number] = line[:at] if line.count('"', 0, at) % 2 == 0 else line
    return "\n".join(lines)


class _Parser:
    def __init__(self, text: str) -> None:
        self._original = text
        self._text = _without_comments(text)
        self._files = {
            number: f"{first}/{second}" if second else first for number, first, second in _FILE.findall(self._text)
        }

    def line(self, at: int) -> int:
        return self._text.count("\n", 0, at) + 1

    def module(self) -> Module:
        variables: dict[str, Variable] = {}
        functions: dict[str, Function] = {}
        said: dict[str, str] = {}
        text, at = self._text, 0
        while at < len(text):
            at = _skip_space(text, at)
            if at == len(text):
                break
            if match := _HEADER.match(text, at):
                said[match[1]] = match[2].split(",")[0].strip()
                at = match.end()
            elif match := re.compile(r"\.section\b[^{]*\{").match(text, at):
                at = text.index("}", match.end()) + 1
            elif match := re.compile(r"\.(?:file|loc)\b[^\n]*|\.pragma\b[^;]*;").match(text, at):
                at = match.end()
            elif match := _HEAD.match(text, at):
                function, at = self._function(match)
                if function.body is not None or function.name not in functions:
                    functions[function.name] = function
            else:
                end = text.find(";", at)
                if end < 0:
                    raise refusal(None, self.line(at), f"`{text[at : at + 40].splitlines()[0]}`")
                declared = text[at:end].strip()
                links = re.match(r"(?:\.(?:visible|extern|weak|common)\s+)*", declared)
                assert links is not None
                variable = self._variable(declared[links.end() :], at)
                if variable.name not in variables or not variables[variable.name].initial:
                    variables[variable.name] = variable
                at = end + 1
        if said.get("address_size") != "64":
            raise refusal(None, 1, f"addresses of {said.get('address_size', 'an unknown number of')} bits")
        return Module(
            producer_of(self._original), said.get("version", ""), said.get("target", ""), variables, functions
        )

    def _variable(self, text: str, at: int) -> Variable:
        match = _VARIABLE.match(" ".join(text.split()) if "=" not in text else text.strip())
        if match is None:
            raise refusal(None, self.line(at), f"`{' '.join(text.split())[:80]}`")
        if match["attributes"]:
            raise refusal(None, self.line(at), match["attributes"].strip())
        element = match["type"]
        if element in ("texref", "samplerref", "surfref"):
            raise refusal(None, self.line(at), f"`{match['name']}`: textures and surfaces")
        if element not in WIDTHS:
            raise refusal(None, self.line(at), f"`{match['name']}`: a variable of type .{element}")
        count = int(match["vector"][1]) if match["vector"] else 1
        natural = _ALIGNMENTS[WIDTHS[element]] * count
        extents = re.findall(r"\[\s*(\d*)\s*\]", match["extents"])
        initial = self._initial(match["initial"], at) if match["initial"] else ()
        is_dynamic = match["space"] == "shared" and "" in extents
        for extent in extents:
            count *= int(extent) if extent else 0 if is_dynamic else len(initial)
        return Variable(
            match["name"],
            match["space"],
            element,
            int(match["align"] or natural),
            count,
            initial,
            is_dynamic,
            bool(match["pointer"]),
        )

    def _initial(self, text: str, at: int) -> tuple[int | Symbol | AddressByte, ...]:
        values: list[int | Symbol | AddressByte] = []
        for item in _split(text.replace("{", " ").replace("}", " ")):
            values.append(self._initial_value(item.strip(), at))
        return tuple(values)

    def _initial_value(self, item: str, at: int) -> int | Symbol | AddressByte:
        if _NUMBER.match(item):
            return int(item.rstrip("uU"), 0)
        if match := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})|0[dD]([0-9a-fA-F]{16})", item):
            return int(match[1] or match[2], 16)
        if match := re.fullmatch(r"0[xX](FF0*)\((.*)\)", item):
            symbol = self._initial_value(match[2].strip(), at)
            if isinstance(symbol, Symbol):
                return AddressByte(symbol, 4 * (len(match[1]) - 2))
        if match := re.fullmatch(rf"(?:generic\s*\(\s*)?({_NAME})\s*\)?\s*(?:\+\s*(\d+))?\s*\)?", item):
            return Symbol(match[1], int(match[2] or 0))
        raise refusal(None, self.line(at), f"the initial value `{item}`")

    def _function(self, match: re.Match[str]) -> tuple[Function, int]:
        results = self._parameters(match["results"], match.start())
        parameters = self._parameters(match["parameters"], match.start())
        is_entry = match["kind"] == "entry"
        if match["end"] == ";":
            return Function(match["name"], is_entry, results, parameters, None), match.end()
        body = _Body(self, {v.name for v in (*results, *parameters)})
        statements, end = body.parse(match.end())
        bound = re.search(r"\.(?:maxntid|reqntid)\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?", match["bounds"])
        most = int(bound[1]) * int(bound[2] or 1) * int(bound[3] or 1) if bound else None
        return (
            Function(match["name"], is_entry, results, parameters, tuple(statements), tuple(body.used.values()), most),
            end,
        )

    def _parameters(self, text: str | None, at: int) -> tuple[Variable, ...]:
        inner = (text or "").strip()[1:-1].strip()
        return tuple(self._variable(one.strip(), at) for one in _split(inner)) if inner else ()

    def place_of(self, text: str) -> Place:
        """The innermost line outside of the compilers' own headers, by `inlined_at` or clang's comment."""
        match = _LOC.match(text)
        if match is None:
            raise CompileError(f"PTX: malformed `{text.strip()}`")
        chain = [Place(self._files.get(match[1], ""), int(match[2]))]
        if at := re.search(r"inlined_at\s+(\d+)\s+(\d+)", match[3]):
            chain.append(Place(self._files.get(at[1], ""), int(at[2])))
        elif "@[" in (match[4] or ""):
            chain += [Place(file, int(line)) for file, line in _INLINED.findall(match[4].split("@[", 1)[1])]
        own = [place for place in chain if place.file and not _is_header(place.file)]
        place = own[0] if own else chain[-1]
        headers = " ".join(one.file for one in chain if _is_header(one.file))
        return Place(posixpath.normpath(place.file) if place.file else "", place.line, headers)


class _Body:
    """One function's statements. Names that braces limit are made unique."""

    def __init__(self, parser: _Parser, known: set[str]) -> None:
        self._parser = parser
        self.used: dict[str, Register] = {}
        self._scopes: list[dict[str, Register]] = [{}]
        self._families: list[dict[str, str]] = [{}]
        self._scope_ids = [0]
        self._labels: dict[tuple[int, str], str] = {}
        self._variables: list[dict[str, str]] = [{name: name for name in known}]
        self._place = Place("", 0)
        self._line = 0

    def parse(self, start: int) -> tuple[list[Statement], int]:
        pieces, end = self._pieces(start)
        self._find_labels(pieces)
        statements: list[Statement] = []
        count = 0
        for kind, text, line in pieces:
            self._line = line
            if kind == "loc":
                place = self._parser.place_of(text)
                self._place = place if place.line else self._place
            elif kind == "open":
                count += 1
                self._enter(count)
            elif kind == "close":
                self._leave()
            elif kind == "label":
                statements.append(Label(self._label(text)))
            else:
                statements += self._statement(" ".join(text[:-1].split()))
        return statements, end

    def _pieces(self, start: int) -> tuple[list[tuple[str, str, int]], int]:
        text, at, depth, line, counted = self._parser._text, start, 1, self._parser.line(start), start
        pieces = []
        while depth:
            match = _STATEMENT.match(text, at)
            if match is None:
                raise refusal(None, self._parser.line(at), f"`{text[at : at + 60].strip()}`")
            kind = match.lastgroup or ""
            begins = match.start(kind)
            line += text.count("\n", counted, begins)
            counted = begins
            depth += {"open": 1, "close": -1}.get(kind, 0)
            at = match.end()
            if depth:
                pieces.append((kind, match[kind], line))
        return pieces, at

    def _find_labels(self, pieces: list[tuple[str, str, int]]) -> None:
        scopes, count = [0], 0
        for kind, text, _ in pieces:
            if kind == "open":
                count += 1
                scopes.append(count)
            elif kind == "close":
                scopes.pop()
            elif kind == "label" or (kind == "text" and re.match(rf"{_NAME}\s*:\s*\.branchtargets", text.strip())):
                name = text.split(":")[0].strip()
                self._labels[scopes[-1], name] = name if scopes[-1] == 0 else f"{name}_{scopes[-1]}"

    def _enter(self, number: int) -> None:
        self._scopes.append({})
        self._families.append({})
        self._variables.append({})
        self._scope_ids.append(number)

    def _leave(self) -> None:
        for stack in (self._scopes, self._families, self._variables, self._scope_ids):
            stack.pop()

    def _label(self, name: str) -> str:
        for scope in reversed(self._scope_ids):
            if (scope, name) in self._labels:
                return self._labels[scope, name]
        raise refusal(self._place, self._line, f"the label `{name}`, which is not defined")

    def _unique(self, name: str) -> str:
        return name if len(self._scopes) == 1 else f"{name}_{self._scope_ids[-1]}"

    def _statement(self, text: str) -> Iterator[Statement]:
        if not text:
            return
        if text.startswith(".reg"):
            self._declare_registers(text)
        elif text.startswith((".param", ".local", ".shared")):
            variable = self._parser._variable(text, 0)
            renamed = self._unique(variable.name)
            self._variables[-1][variable.name] = renamed
            yield Variable(
                renamed, variable.space, variable.type, variable.alignment, variable.count, (), variable.is_dynamic
            )
        elif text.startswith((".pragma", ".callprototype")) or re.match(rf"{_NAME}\s*:\s*\.callprototype", text):
            return
        elif match := re.match(rf"({_NAME})\s*:\s*\.branchtargets\s+(.*)", text):
            labels = tuple(self._label(label.strip()) for label in match[2].split(","))
            yield Targets(self._label(match[1]), labels)
        elif text.startswith("."):
            raise refusal(self._place, self._line, f"`{text.split(maxsplit=1)[0]}`")
        else:
            yield self._instruction(text)

    def _declare_registers(self, text: str) -> None:
        match = re.match(r"\.reg\s*(?:\.(v2|v4)\s*)?\.(\w+)\s+(.*)$", text)
        if match is None or match[1] or match[2] not in WIDTHS:
            raise refusal(self._place, self._line, f"`{text}`")
        for name in map(str.strip, match[3].split(",")):
            if family := re.match(rf"({_NAME})<\d+>$", name):
                self._families[-1][family[1]] = match[2]
            else:
                self._scopes[-1][name] = Register(self._unique(name), match[2])

    def _register(self, name: str) -> Register | None:
        for depth in range(len(self._scopes) - 1, -1, -1):
            found = self._scopes[depth].get(name)
            if found is None and (numbered := re.match(r"(.*?)(\d+)$", name)):
                declared = self._families[depth].get(numbered[1])
                if declared is not None:
                    unique = name if depth == 0 else f"{name}_{self._scope_ids[depth]}"
                    found = self._scopes[depth][name] = Register(unique, declared)
            if found is not None:
                self.used[found.name] = found
                return found
        return None

    def _instruction(self, text: str) -> Instruction:
        guard: Register | Negated | None = None
        if text.startswith("@"):
            match = re.match(rf"@(!?)\s*({_NAME})\s+(.*)$", text)
            register = self._register(match[2]) if match else None
            if match is None or register is None:
                raise refusal(self._place, self._line, f"`{text}`")
            guard = Negated(register) if match[1] else register
            text = match[3]
        mnemonic, _, rest = text.partition(" ")
        if match := re.match(r"([\w.:]+)(.*)$", mnemonic):
            mnemonic, rest = match[1], f"{match[2]} {rest}"
        operands = tuple(self._operand(one) for one in _split(rest)) if rest.strip() else ()
        return Instruction(mnemonic, operands, guard, self._place, self._line)

    def _operand(self, text: str) -> Operand:
        text = text.strip()
        if text.startswith(("{", "(")) and text.endswith(("}", ")")):
            inner = text[1:-1].strip()
            return Vector(tuple(self._operand(one) for one in _split(inner)) if inner else ())
        if text.startswith("["):
            return self._address(text[1:-1].strip())
        if "|" in text:
            return Vector(tuple(self._operand(one) for one in text.split("|")))
        if text == "_":
            return Sink()
        if text.startswith("!"):
            register = self._register(text[1:].strip())
            if register is not None:
                return Negated(register)
        return _number(text) or self._register(text) or self._name(text)

    def _name(self, text: str) -> Operand:
        if re.fullmatch(r"%\w+(\.[xyzw])?", text):
            return Special(text[1:])
        if match := re.fullmatch(rf"({_NAME})(?:\s*\+\s*(-?\w+))?", text):
            return self._symbol(match[1], int(match[2] or "0", 0))
        raise refusal(self._place, self._line, f"the operand `{text}`")

    def _symbol(self, name: str, offset: int) -> Symbol:
        for variables in reversed(self._variables):
            if name in variables:
                return Symbol(variables[name], offset)
        for scope in reversed(self._scope_ids):
            if (scope, name) in self._labels:
                return Symbol(self._labels[scope, name], offset)
        return Symbol(name, offset)

    def _address(self, text: str) -> Operand:
        if "," in text:
            raise refusal(self._place, self._line, f"the address `[{text}]`")
        match = re.fullmatch(rf"({_NAME}|\d\w*)\s*(?:\+\s*(-?\w+)|-\s*(\w+))?", text)
        if match is None:
            raise refusal(self._place, self._line, f"the address `[{text}]`")
        offset = int(match[2], 0) if match[2] else -int(match[3], 0) if match[3] else 0
        if (register := self._register(match[1])) is not None:
            return Address(register, offset)
        if match[1][0].isdigit():
            return Address(Immediate(int(match[1].rstrip("uU"), 0)), offset)
        return Address(self._symbol(match[1], 0), offset)


def _is_header(file: str) -> bool:
    """Whether a file is none of the project's: of the system, or a header that stands in for one."""
    return file.startswith("/") or "kernel_audit_stubs/" in file


def _number(text: str) -> Immediate | FloatBits | None:
    if _NUMBER.match(text):
        return Immediate(int(text.rstrip("uU"), 0))
    if match := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})|0[dD]([0-9a-fA-F]{16})", text):
        return FloatBits(int(match[1] or match[2], 16), 32 if match[1] else 64)
    return Immediate(32) if text == "WARP_SZ" else None


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _split(text: str) -> list[str]:
    """At commas outside of brackets."""
    if not any(bracket in text for bracket in "[{("):
        return text.split(",")
    parts, depth, begin = [], 0, 0
    for at, character in enumerate(text):
        if character in "[{(":
            depth += 1
        elif character in "]})":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
    return [*parts, text[begin:]]


def producer_of(text: str) -> str:
    """What the comment on top of a PTX file says about the compiler that wrote it."""
    lines = []
    for line in text.lstrip().splitlines():
        if not line.startswith("//"):
            break
        lines.append(line.lstrip("/ ").strip())
    return "; ".join(line for line in lines if line)[:200]
