"""Writes one instruction's C++: operands as typed expressions, results as assignments to registers.

A register is a C++ variable of an unsigned type with the register's width, or a bool. An expression of another type is
a reinterpretation of its bits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from audit.errors import CompileError
from audit.ptx.rule import Rule, filled
from audit.ptx.syntax import (
    WIDTHS,
    Address,
    FloatBits,
    Function,
    Immediate,
    Instruction,
    Module,
    Negated,
    Register,
    Sink,
    Special,
    Symbol,
    Variable,
    Vector,
    refusal,
    string_literal,
)

_SPECIAL = {
    **{
        f"{name}.{axis}": f"{variable}.{axis}"
        for name, variable in (
            ("tid", "threadIdx"),
            ("ntid", "blockDim"),
            ("ctaid", "blockIdx"),
            ("nctaid", "gridDim"),
            ("clusterid", "blockIdx"),
            ("nclusterid", "gridDim"),
        )
        for axis in "xyz"
    },
    **{f"cluster_ctaid.{axis}": "0u" for axis in "xyz"},  # a launch without clusters: each block is one
    **{f"cluster_nctaid.{axis}": "1u" for axis in "xyz"},
    "cluster_ctarank": "0u",
    "cluster_nctarank": "1u",
    "laneid": "simt::current_lane()",
    "warpid": "warp_id()",
    "nwarpid": "warps_of_block()",
    "lanemask_eq": "(1u << simt::current_lane())",
    "lanemask_lt": "((1u << simt::current_lane()) - 1)",
    "lanemask_le": "((2u << simt::current_lane()) - 1)",
    "lanemask_gt": "(~((2u << simt::current_lane()) - 1))",
    "lanemask_ge": "(~((1u << simt::current_lane()) - 1))",
    "smid": "0u",
    "nsmid": "1u",
    "gridid": "0u",
    "clock": "(u32)cycles()",
    "clock_hi": "(u32)(cycles() >> 32)",
    "clock64": "cycles()",
    "globaltimer": "nanoseconds()",
    "globaltimer_lo": "(u32)nanoseconds()",
    "globaltimer_hi": "(u32)(nanoseconds() >> 32)",
    "dynamic_smem_size": "dynamic_shared_bytes()",
}
_SIGNATURE = re.compile(r"\S+")


class Emitter:
    """The C++ of one function's instructions."""

    def __init__(self, module: Module, function: Function, variables: Mapping[str, Variable]) -> None:
        """`variables` are those of the function, by name; the module's are known."""
        self.module, self.function = module, function
        self._local = variables
        self.registers: dict[str, Register] = {}
        self.shared: dict[str, Variable] = {}

    def refusal(self, instruction: Instruction, what: str) -> CompileError:
        """An error at the instruction's line."""
        return refusal(instruction.place, instruction.line, what)

    def by_rule(self, rule: Rule, instruction: Instruction, choices: tuple[str, ...]) -> str:
        """The statement of an instruction that a table describes."""
        if rule.emit is not None:
            return rule.emit(self, instruction, choices)
        left, _, right = filled(rule.signature, choices).partition("=")
        results, sources = _SIGNATURE.findall(left), _SIGNATURE.findall(right)
        if len(instruction.operands) != len(results) + len(sources):
            raise self.refusal(instruction, f"`{instruction.mnemonic}` with {len(instruction.operands)} operands")
        values = [
            self.value(instruction, operand, kind)
            for operand, kind in zip(instruction.operands[len(results) :], sources, strict=True)
        ]
        expression = re.sub(r"\{(\d)\}", lambda match: values[int(match[1])], filled(rule.code, choices))
        expression = expression.replace("SITE", self.site(instruction)) if "SITE" in expression else expression
        if not results:
            return f"{expression};"
        if results[0].startswith("pred2"):
            return self._assign_predicates(instruction, results[0], expression, values)
        return self.assign(instruction, instruction.operands[0], results[0], expression)

    def _assign_predicates(self, instruction: Instruction, kind: str, expression: str, values: list[str]) -> str:
        """setp p|q, a, b, c: p is the comparison, q its opposite, each combined with c."""
        target = instruction.operands[0]
        items = target.items if isinstance(target, Vector) else (target,)
        operation = {"": "{}", "_and": "({}) & {}", "_or": "({}) | {}", "_xor": "({}) ^ {}"}[kind.removeprefix("pred2")]
        other = values[-1] if kind != "pred2" else ""
        parts = [self.assign(instruction, items[0], "pred", operation.format("holds", other))]
        if len(items) > 1:
            parts.append(self.assign(instruction, items[1], "pred", operation.format("!holds", other)))
        if len(items) == 1:
            return self.assign(instruction, items[0], "pred", operation.format(expression, other))
        return f"{{ const bool holds = {expression}; {' '.join(parts)} }}"

    def site(self, instruction: Instruction) -> str:
        """Where an instruction stands, as the runtime reports it."""
        place = instruction.place
        return f"{{{string_literal(place.file or 'PTX')}, {place.line or instruction.line}}}"

    def c_type(self, kind: str) -> str:
        """The C++ type of a PTX type."""
        if kind == "pred":
            return "bool"
        return f"u{WIDTHS[kind]}" if kind[0] == "b" and kind[1:].isdigit() else kind

    def variable(self, register: Register) -> str:
        """The C++ variable of a register."""
        self.registers[register.name] = register
        return _identifier(register.name)

    def is_predicate(self, operand: object) -> bool:
        """Whether an operand is a predicate register."""
        register = operand.register if isinstance(operand, Negated) else operand
        return isinstance(register, Register) and register.type == "pred"

    def value(self, instruction: Instruction, operand: object, kind: str) -> str:  # noqa: PLR0911
        """An operand read as a type. `raw_f32` means its bits."""
        if kind == "address":
            return self.address(instruction, operand)
        kind = f"b{WIDTHS[kind.removeprefix('raw_')]}" if kind.startswith("raw_") else kind
        width = WIDTHS[kind]
        if isinstance(operand, Negated):
            return f"!{self.variable(operand.register)}"
        if isinstance(operand, Register):
            return self._register_value(instruction, operand, kind)
        if isinstance(operand, Immediate):
            return _constant(self.c_type(kind), operand.value, kind)
        if isinstance(operand, FloatBits):
            return self._float_constant(instruction, operand, kind)
        if isinstance(operand, Special):
            if operand.name not in _SPECIAL:
                raise self.refusal(instruction, f"the special register %{operand.name}")
            return f"({self.c_type(kind)}){_SPECIAL[operand.name]}"
        if isinstance(operand, Symbol):
            if width < 32:
                raise self.refusal(instruction, f"the address of `{operand.name}` in {width} bits")
            return f"({self.c_type(kind)})({self.symbol(instruction, operand)})"
        raise self.refusal(instruction, f"an operand of `{instruction.mnemonic}`")

    def _register_value(self, instruction: Instruction, register: Register, kind: str) -> str:
        name = self.variable(register)
        if kind == "pred" or register.type == "pred":
            if kind != register.type:
                raise self.refusal(
                    instruction, f"`{instruction.mnemonic}` with the register {register.name} of type .{register.type}"
                )
            return name
        if WIDTHS[register.type] < WIDTHS[kind]:
            raise self.refusal(
                instruction, f"`{instruction.mnemonic}` with the register {register.name} of type .{register.type}"
            )
        if kind in _REINTERPRETED:
            word = name if WIDTHS[register.type] == WIDTHS[kind] else f"(u{WIDTHS[kind]}){name}"
            return f"as_{kind}({word})"
        wanted = self.c_type(kind)
        return name if wanted == f"u{WIDTHS[register.type]}" else f"(({wanted}){name})"

    def _float_constant(self, instruction: Instruction, constant: FloatBits, kind: str) -> str:
        width = WIDTHS[kind]
        if width != constant.width:
            raise self.refusal(instruction, f"a constant of {constant.width} bits in `{instruction.mnemonic}`")
        text = f"0x{constant.bits:x}{'ull' if width > 32 else 'u'}"
        return f"as_{kind}({text})" if kind in _REINTERPRETED else f"(({self.c_type(kind)}){text})"

    def assign(self, instruction: Instruction, target: object, kind: str, expression: str) -> str:
        """A statement that gives a register the value of an expression of a type."""
        if kind.startswith("raw_"):
            kind = f"b{WIDTHS[kind.removeprefix('raw_')]}"
        if isinstance(target, Sink):
            return f"(void)({expression});"
        if not isinstance(target, Register):
            raise self.refusal(instruction, f"the target of `{instruction.mnemonic}`")
        name = self.variable(target)
        if (kind == "pred") != (target.type == "pred") or WIDTHS[target.type] < WIDTHS[kind]:
            raise self.refusal(
                instruction, f"`{instruction.mnemonic}` with the register {target.name} of type .{target.type}"
            )
        if kind == "pred":
            return f"{name} = {expression};"
        if kind in _REINTERPRETED:
            return f"{name} = bits({expression});"
        typed = self.c_type(kind)
        word = f"u{WIDTHS[target.type]}"
        if typed == word:
            return f"{name} = {expression};"
        # A signed result that is narrower than its register is extended by its sign.
        return f"{name} = ({word})({typed})({expression});"

    def assign_word(self, instruction: Instruction, target: object, kind: str, word: str) -> str:
        """Like `assign`, from an unsigned word with the bits of the type."""
        if kind[0] == "s" or kind == "pred":
            return self.assign(instruction, target, kind, word)
        return self.assign(instruction, target, f"b{WIDTHS[kind]}", word)

    def address(self, instruction: Instruction, operand: object) -> str:
        """The address of a memory operand, as a u64."""
        if not isinstance(operand, Address):
            raise self.refusal(instruction, f"the address of `{instruction.mnemonic}`")
        base = operand.base
        if isinstance(base, Register):
            start = self.variable(base) if WIDTHS[base.type] == 64 else f"(u64){self.variable(base)}"
        elif isinstance(base, Immediate):
            start = f"{base.value}ull"
        else:
            start = self.symbol(instruction, base)
        return (
            f"{start} + {operand.offset}"
            if operand.offset > 0
            else f"{start} - {-operand.offset}"
            if operand.offset
            else start
        )

    def symbol(self, instruction: Instruction, symbol: Symbol) -> str:
        """The address of a variable, a parameter or a function."""
        variable = self._local.get(symbol.name) or self.module.variables.get(symbol.name)
        name = _identifier(symbol.name)
        if variable is not None and variable.space == "shared":
            self.shared[symbol.name] = variable
            start = f"shared_{name}"
        elif variable is not None or symbol.name in self.module.functions:
            start = f"(u64){name}"
        else:
            raise self.refusal(instruction, f"`{symbol.name}`, which this PTX does not define")
        return f"({start} + {symbol.offset})" if symbol.offset else start


def _constant(c_type: str, value: int, kind: str) -> str:
    if kind == "pred":
        return "true" if value else "false"
    width = WIDTHS[kind]
    word = value & ((1 << width) - 1)
    if width > 64:
        return f"(((u128){word >> 64}ull << 64) | {word & (1 << 64) - 1}ull)"
    text = f"(u{width}){word}{'ull' if width > 32 else 'u'}"
    return f"as_{kind}({text})" if kind in _REINTERPRETED else f"(({c_type}){text})"


_REINTERPRETED = ("f32", "f64", "f16", "bf16", "f16x2", "bf16x2")


def _identifier(name: str) -> str:
    """A C++ name for a name in PTX."""
    plain = name.replace("%", "r_").replace("$", "_S_")
    return plain if name.startswith("%") else f"{plain}_" if plain in _TAKEN else plain


_WORDS = """
    alignas and asm auto bool break case catch char class const continue default delete do double else enum
    explicit export extern false float for friend goto if inline int long mutable namespace new not operator or
    private protected public register return short signed sizeof static struct switch template this throw true try
    typedef union unsigned using virtual void volatile while xor bits low high each sum changed copies old b t0 t1
    t2 t3 ftz sat relu f16 bf16 f32 f64 u8 u16 u32 u64 s8 s16 s32 s64 u128 s128 holds whole simt
"""
_TAKEN = frozenset(_WORDS.split())


def identifier(name: str) -> str:
    """A C++ name for a name in PTX."""
    return _identifier(name)
