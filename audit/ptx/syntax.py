"""What a PTX file says, as data: variables, functions, and typed operands. The syntax is that of the PTX ISA."""

from __future__ import annotations

import msgspec

from audit.errors import CompileError


class Place(msgspec.Struct, frozen=True):
    """A line of the source that an instruction comes from. `file` is empty where the PTX does not say.

    `headers` names the files outside of the project whose functions were inlined there.
    """

    file: str
    line: int
    headers: str = ""


class Register(msgspec.Struct, frozen=True):
    """A register by its unique name in the function, with the width that `.reg` gives it."""

    name: str
    type: str  # as declared: b32, f64, pred


class Special(msgspec.Struct, frozen=True):
    """A special register: %tid.x."""

    name: str


class Immediate(msgspec.Struct, frozen=True):
    """An integer constant."""

    value: int


class FloatBits(msgspec.Struct, frozen=True):
    """A floating-point constant by its bits: 0f3F800000 has 32, 0d... has 64."""

    bits: int
    width: int


class Symbol(msgspec.Struct, frozen=True):
    """A variable, a parameter, a function or a label, and bytes behind it."""

    name: str
    offset: int = 0


class Address(msgspec.Struct, frozen=True):
    """[base + offset]."""

    base: Register | Symbol | Immediate
    offset: int = 0


class Negated(msgspec.Struct, frozen=True):
    """!%p."""

    register: Register


class Vector(msgspec.Struct, frozen=True):
    """{a, b}, or the (a, b) of a call, or the a|b of two results."""

    items: tuple[Operand, ...]


class Sink(msgspec.Struct, frozen=True):
    """_, where nobody wants the result."""


Operand = Register | Special | Immediate | FloatBits | Symbol | Address | Negated | Vector | Sink


class Instruction(msgspec.Struct, frozen=True):
    """One instruction. `mnemonic` is the opcode with all its modifiers."""

    mnemonic: str
    operands: tuple[Operand, ...]
    guard: Register | Negated | None
    place: Place
    line: int  # of the PTX


class Label(msgspec.Struct, frozen=True):
    """The target of a branch, by its unique name in the function."""

    name: str


class Targets(msgspec.Struct, frozen=True):
    """A list of labels for brx.idx."""

    name: str
    labels: tuple[str, ...]


class Variable(msgspec.Struct, frozen=True):
    """A variable of a state space: param, local, shared, global or const.

    `initial` holds integers, and symbols whose address is meant; what is missing is zero. `bytes` is 0 for shared
    memory whose size the launch decides.
    """

    name: str
    space: str
    type: str
    alignment: int
    count: int  # elements; 1 for a scalar
    initial: tuple[int | Symbol | AddressByte, ...] = ()
    is_dynamic: bool = False
    is_pointer: bool = False

    @property
    def bytes(self) -> int:
        """The size in bytes."""
        return self.count * WIDTHS[self.type] // 8


class AddressByte(msgspec.Struct, frozen=True):
    """One byte of a symbol's address in an initialiser, as 0xFF00(symbol)."""

    symbol: Symbol
    shift: int  # in bits


Statement = Instruction | Label | Targets | Variable


class Function(msgspec.Struct, frozen=True):
    """A kernel (`is_entry`) or a device function. Without a body it is defined elsewhere."""

    name: str
    is_entry: bool
    results: tuple[Variable, ...]
    parameters: tuple[Variable, ...]
    body: tuple[Statement, ...] | None
    registers: tuple[Register, ...] = ()
    most_threads: int | None = None  # of a block, by .maxntid or .reqntid


class Module(msgspec.Struct, frozen=True):
    """A PTX file."""

    producer: str  # the compiler, by the comment on top
    version: str  # of the ISA
    target: str
    variables: dict[str, Variable]
    functions: dict[str, Function]


# Bits of each fundamental type.
WIDTHS = {
    "pred": 1,
    **{f"{kind}{bits}": bits for kind in "bus" for bits in (8, 16, 32, 64)},
    "b128": 128,
    "f16": 16,
    "bf16": 16,
    "f16x2": 32,
    "bf16x2": 32,
    "f32": 32,
    "f64": 64,
}


def refusal(where: Place | None, line: int, what: str) -> CompileError:
    """An error for something that the translator does not support, at its line."""
    at = f"{where.file}:{where.line}: " if where is not None and where.file else f"PTX line {line}: "
    return CompileError(f"{at}not supported on the CPU: {what}")


def string_literal(text: str) -> str:
    """A C++ string literal."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
