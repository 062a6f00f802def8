"""PTX to a C++ program on audit/simt: the launched entries of a module, and what they call."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

import msgspec

from audit.errors import CompileError
from audit.ptx.arithmetic import COMPARISONS, FLOATING, INTEGER
from audit.ptx.control import CONTROL, label
from audit.ptx.conversion import CONVERSION
from audit.ptx.emit import Emitter, identifier
from audit.ptx.memory import MEMORY
from audit.ptx.rule import Rule
from audit.ptx.syntax import (
    WIDTHS,
    AddressByte,
    Function,
    Instruction,
    Label,
    Module,
    Negated,
    Place,
    Symbol,
    Targets,
    Variable,
    string_literal,
)
from audit.ptx.tensor import TENSOR

TABLE: tuple[Rule, ...] = (*INTEGER, *COMPARISONS, *FLOATING, *CONVERSION, *MEMORY, *CONTROL, *TENSOR)
"""Every instruction that the CPU executes."""


class EntryPoint(msgspec.Struct, frozen=True):
    """A kernel of the program: its name in launches, in the PTX, and what its parameters are.

    `parameters` are (kind, bytes, alignment of a pointer's target), in the words of simt_kernel.h; None takes what the
    PTX says.
    """

    name: str
    symbol: str
    parameters: tuple[tuple[str, int, int], ...] | None = None


class FilledVariable(msgspec.Struct, frozen=True):
    """A variable that launches fill: its name in launches and in the PTX."""

    name: str
    symbol: str


def translate(module: Module, entries: Sequence[EntryPoint], filled: Sequence[FilledVariable] = ()) -> str:
    """The C++ of the entries, of the functions that they call, and of the variables that these or `filled` name.

    Raises CompileError for an entry that is missing and for anything that the CPU does not support, with the
    instruction's line in the source.
    """
    functions = _reached(module, [entry.symbol for entry in entries])
    described = {entry.symbol: _described_parameters(entry, module.functions[entry.symbol]) for entry in entries}
    bodies = [_function(module, function, described.get(function.name, ())) for function in functions]
    used = _used_variables(module, functions, [one.symbol for one in filled])
    places = {name: place for body in bodies for name, place in body.shared.items()}
    lines = ['#include "ptx/program.h"', "namespace ptx {"]
    for function in functions:
        lines.append(f"{_head(function)}{_symbol(function)};")
    for name in used:
        lines += _declaration(module.variables[name], places.get(name, Place("PTX", 0)))
    for body in bodies:
        lines += body.lines
    lines.append('#line 1 "the list of entries"')
    for number, entry in enumerate(entries):
        lines.append(_parameters(number, described[entry.symbol]))
    lines += [f"static void* const filled_{number} = {identifier(one.symbol)};" for number, one in enumerate(filled)]
    lines += [
        f"constexpr unsigned long filled_bytes_{number} = sizeof({identifier(one.symbol)});"
        for number, one in enumerate(filled)
    ]
    lines.append("}  // namespace ptx")
    return "\n".join(lines) + "\n"


def kernel_table(module: Module, entries: Sequence[EntryPoint]) -> str:
    """The C++ of the table of kernels, for namespace simt."""
    rows = []
    for number, entry in enumerate(entries):
        count = len(module.functions[entry.symbol].parameters)
        rows.append(
            f"  {{{string_literal(entry.name)}, {count}, ptx::parameters_{number}, ptx::{identifier(entry.symbol)}}}"
        )
    return "extern const Kernel kernels[] = {\n" + ",\n".join(rows) + "};\n"


def variable_table(filled: Sequence[FilledVariable]) -> str:
    """The C++ of the table of variables that launches fill, for namespace simt."""
    rows = "".join(
        f"  {{{string_literal(one.name)}, ptx::filled_{number}, ptx::filled_bytes_{number}}},\n"
        for number, one in enumerate(filled)
    )
    return f"extern const Variable variables[] = {{\n{rows}  {{}}}};\n"


@lru_cache(maxsize=4096)
def rule_of(mnemonic: str) -> tuple[Rule, tuple[str, ...]] | None:
    """The rule of a mnemonic, and the choices that it makes; None if the CPU does not support it."""
    for pattern, rule in _by_head().get(mnemonic.split(".", maxsplit=1)[0], ()):
        if match := pattern.fullmatch(mnemonic):
            return rule, match.groups()
    return None


@lru_cache(maxsize=1)
def _by_head() -> dict[str, list[tuple[re.Pattern[str], Rule]]]:
    found: dict[str, list[tuple[re.Pattern[str], Rule]]] = {}
    for rule in TABLE:
        heads = re.match(r"\{([^}]*)\}|[^.{]+", rule.pattern)
        assert heads is not None
        for head in heads[1].split(",") if heads[1] else [heads[0]]:
            found.setdefault(head, []).append((re.compile(rule.regex()), rule))
    return found


def _reached(module: Module, symbols: Sequence[str]) -> list[Function]:
    """The entries and all functions with a body that they name, the entries last."""
    found: dict[str, Function] = {}
    pending = list(symbols)
    while pending:
        name = pending.pop()
        function = module.functions.get(name)
        if function is None or function.body is None:
            if name in symbols:
                known = ", ".join(f.name for f in module.functions.values() if f.is_entry) or "none"
                raise CompileError(f"expected a kernel `{name}` in the PTX, but it has {known}")
            continue
        if name in found:
            continue
        found[name] = function
        pending += _named(function, module)
    return [*reversed([f for f in found.values() if not f.is_entry]), *(f for f in found.values() if f.is_entry)]


def _named(function: Function, module: Module) -> list[str]:
    """The functions and variables' functions that a function names."""
    names: list[str] = []
    pending = [
        name for statement in function.body or () if isinstance(statement, Instruction) for name in _symbols(statement)
    ]
    visited = set()
    while pending:
        name = pending.pop()
        if name in visited:
            continue
        visited.add(name)
        if name in module.functions:
            names.append(name)
        elif name in module.variables:
            pending += _initial_symbols(module.variables[name])
    return names


def _symbols(value: object) -> list[str]:
    if isinstance(value, Symbol):
        return [value.name]
    names: list[str] = []
    for part in getattr(value, "operands", ()) or getattr(value, "items", ()) or ():
        names += _symbols(part)
    base = getattr(value, "base", None)
    return names + _symbols(base) if base is not None else names


def _initial_symbols(variable: Variable) -> list[str]:
    symbols = [one.symbol if isinstance(one, AddressByte) else one for one in variable.initial]
    return [one.name for one in symbols if isinstance(one, Symbol)]


def _used_variables(module: Module, functions: Sequence[Function], also: Sequence[str]) -> list[str]:
    """The module's variables that functions use, each after those that its initialiser names."""
    ordered: list[str] = []

    def add(name: str, within: tuple[str, ...] = ()) -> None:
        if name not in module.variables or name in ordered or name in within:
            return
        for other in _initial_symbols(module.variables[name]):
            add(other, (*within, name))
        ordered.append(name)

    for name in also:
        add(name)
    for function in functions:
        for statement in function.body or ():
            if isinstance(statement, Instruction):
                for name in _symbols(statement):
                    add(name)
    return ordered


class _Translated(msgspec.Struct):
    lines: list[str]
    shared: dict[str, Place]


def _function(module: Module, function: Function, described: Sequence[tuple[str, int, int]]) -> _Translated:
    own = {v.name: v for v in (*function.results, *function.parameters)}
    own |= {statement.name: statement for statement in function.body or () if isinstance(statement, Variable)}
    emitter = Emitter(module, function, own)
    targets = {t.name: t for t in function.body or () if isinstance(t, Targets)}
    place, written = Place("", 0), Place("", 0)
    code = [""]
    shared: dict[str, Place] = {}
    first = next((s.place for s in function.body or () if isinstance(s, Instruction) and s.place.file), place)
    for statement in function.body or ():
        if isinstance(statement, Label):
            code[-1] += f" {label(statement.name)}:;"
        elif isinstance(statement, Instruction):
            text = _statement(emitter, statement, targets)
            place = statement.place
            if place != written and place.file:
                code += [f"#line {place.line} {string_literal(place.file)}", text]
                written = place
            else:  # on the same line of the C++, whose number is that of the source
                code[-1] += f" {text}"
            for name in emitter.shared:
                shared.setdefault(name, place)
    lines = [f"#line {max(1, first.line)} {string_literal(first.file or 'PTX')}", f"{_head(function)} {{"]
    if function.is_entry and function.most_threads is not None:
        site = f"{{{string_literal(first.file or 'PTX')}, {first.line}}}"
        lines.append(
            f"if (block_threads() > {function.most_threads}) "
            f"simt::exceeded_launch_bounds({site}, {function.most_threads});"
        )
    lines += _locals(function, emitter, described)
    if any("copies." in line for line in code):
        lines.append("AsyncCopies copies;")
    lines += [f"#line {max(1, first.line)} {string_literal(first.file or 'PTX')}", *code, "}"]
    return _Translated(lines, shared)


def _head(function: Function) -> str:
    if function.is_entry:
        return f"static void {identifier(function.name)}(const u64* arguments)"
    names = [f"unsigned char* {identifier(v.name)}" for v in (*function.results, *function.parameters)]
    return f"static void {identifier(function.name)}({', '.join(names)})"


def _symbol(function: Function) -> str:
    """The name in the object file: a mangled one, so that tools show what the source calls the function."""
    return f' __asm__("{function.name}")' if function.name.startswith("_Z") else ""


def _locals(function: Function, emitter: Emitter, described: Sequence[tuple[str, int, int]]) -> list[str]:
    """The variables of a function: parameters, registers, memory of its own, and shared memory that it uses."""
    lines = []
    if function.is_entry:
        for number, (parameter, (kind, *_)) in enumerate(zip(function.parameters, described, strict=True)):
            start = f"(const u64*)arguments[{number}]" if kind == "bytes" else f"arguments + {number}"
            lines.append(f"const u64* const {identifier(parameter.name)} = {start};")
    by_type: dict[str, list[str]] = {}
    for register in emitter.registers.values():
        kind = "bool" if register.type == "pred" else f"u{WIDTHS[register.type]}"
        by_type.setdefault(kind, []).append(identifier(register.name))
    lines += [f"{kind} {', '.join(names)};" for kind, names in by_type.items()]
    for statement in function.body or ():
        if isinstance(statement, Variable) and statement.space in ("local", "param"):
            alignment = max(16 if statement.space == "param" else 1, statement.alignment)
            lines.append(f"alignas({alignment}) unsigned char {identifier(statement.name)}[{max(1, statement.bytes)}];")
        elif isinstance(statement, Variable):
            lines += _declaration(statement, Place("PTX", 0))
    for name, variable in emitter.shared.items():
        plain = identifier(name)
        start = (
            f"simt::dynamic_shared({variable.alignment})"
            if variable.is_dynamic
            else f"simt::shared_object(object_{plain})"
        )
        lines.append(f"const u64 shared_{plain} = (u64){start};")
    return lines


def _statement(emitter: Emitter, instruction: Instruction, targets: Mapping[str, Targets]) -> str:
    found = rule_of(instruction.mnemonic)
    if found is None:
        raise emitter.refusal(instruction, f"the PTX instruction `{instruction.mnemonic}`")
    try:
        text = emitter.by_rule(found[0], instruction, found[1])
    except (ValueError, IndexError):
        raise emitter.refusal(
            instruction, f"`{instruction.mnemonic}` with {len(instruction.operands)} operands"
        ) from None
    if "TARGETS_" in text:
        for name, table in targets.items():
            cases = " ".join(f"case {number}: goto {label(target)};" for number, target in enumerate(table.labels))
            text = text.replace(f"TARGETS_{identifier(name)} ", f"{cases} ")
    if instruction.guard is None:
        return text
    if isinstance(instruction.guard, Negated):
        return f"if (!{emitter.variable(instruction.guard.register)}) {{ {text} }}"
    return f"if ({emitter.variable(instruction.guard)}) {{ {text} }}"


def _declaration(variable: Variable, place: Place) -> list[str]:
    name = identifier(variable.name)
    if variable.space == "shared":
        if variable.is_dynamic:
            return []
        file = string_literal(place.file or "PTX")
        source = f"{string_literal(_source_name(variable.name))}, {file}, {max(1, place.line)}"
        size = f"{max(1, variable.bytes)}, {variable.alignment}"
        return [f"static const simt::SharedObject object_{name} = {{{size}, {source}}};"]
    width = WIDTHS[variable.type] // 8
    values = [_initial(value, variable.type) for value in variable.initial]
    start = f" = {{{', '.join(values)}}}" if values else ""
    return [f"alignas({max(variable.alignment, width)}) static u{8 * width} {name}[{max(1, variable.count)}]{start};"]


def _initial(value: int | Symbol | AddressByte, kind: str) -> str:
    if isinstance(value, int):
        return f"(u{WIDTHS[kind]}){value & (1 << WIDTHS[kind]) - 1}ull"
    symbol = value.symbol if isinstance(value, AddressByte) else value
    start = f"(u64){identifier(symbol.name)} + {symbol.offset}"
    return f"(u8)(({start}) >> {value.shift})" if isinstance(value, AddressByte) else start


def _source_name(name: str) -> str:
    """What the source calls a variable: the last part of a mangled local name."""
    ends = re.search(r"E(\d+)([A-Za-z_]\w*?)(?:_\d+)?$", name)
    if name.startswith("_ZZ") and ends and len(ends[2]) >= int(ends[1]):
        return ends[2][: int(ends[1])]
    parts = re.match(r"_ZL?(\d+)(\w+)", name)
    return parts[2][: int(parts[1])] if parts else name


def _described_parameters(entry: EntryPoint, function: Function) -> tuple[tuple[str, int, int], ...]:
    described = entry.parameters or tuple(_described(parameter) for parameter in function.parameters)
    if len(described) != len(function.parameters):
        count = len(function.parameters)
        raise CompileError(f"{entry.name}: expected {len(described)} parameters, but the PTX has {count}")
    return described


def _parameters(number: int, described: Sequence[tuple[str, int, int]]) -> str:
    rows = "".join(f"{{simt::ArgumentKind::{kind}, {size}, {alignment}}}, " for kind, size, alignment in described)
    return f"static const simt::Parameter parameters_{number}[] = {{{rows}{{}}}};"


def _described(parameter: Variable) -> tuple[str, int, int]:
    """What PTX says of a parameter: not whether an integer has a sign, or whether a b64 is a pointer."""
    if parameter.count > 1 or WIDTHS[parameter.type] > 64:
        return "bytes", parameter.bytes, 1
    if parameter.is_pointer:
        return "pointer", 8, 1
    return {"f32": "f32", "f64": "f64"}.get(parameter.type, "word"), parameter.bytes, 1
