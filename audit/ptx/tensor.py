"""Matrix instructions of a warp, by chapter 9.7.14 of the PTX ISA. audit/simt/ptx/tensor.h has the layouts."""

from __future__ import annotations

from audit.ptx.emit import Emitter
from audit.ptx.rule import Rule
from audit.ptx.syntax import Instruction, Vector


def _items(operand: object) -> tuple[object, ...]:
    return operand.items if isinstance(operand, Vector) else (operand,)


def _words(e: Emitter, instruction: Instruction, operand: object, kind: str = "b32") -> str:
    """The initialiser of an array of an operand's registers."""
    return ", ".join(e.value(instruction, item, kind) for item in _items(operand))


def _results(e: Emitter, instruction: Instruction, operand: object, kind: str = "b32") -> str:
    """Assigns d[0], d[1] ... to an operand's registers."""
    return " ".join(e.assign(instruction, item, kind, f"d[{number}]") for number, item in enumerate(_items(operand)))


def _load_matrices(e: Emitter, instruction: Instruction, choices: tuple[str, ...]) -> str:
    count, transposed = int(choices[0][2:]), "true" if choices[1] else "false"
    target, address = instruction.operands
    if len(_items(target)) != count:
        raise e.refusal(instruction, f"`{instruction.mnemonic}` with another number of registers than {count}")
    loaded = f"load_matrices<{count}, {transposed}>(d, {e.address(instruction, address)}, {e.site(instruction)});"
    return f"{{ u32 d[{count}]; {loaded} {_results(e, instruction, target)} }}"


def _store_matrices(e: Emitter, instruction: Instruction, choices: tuple[str, ...]) -> str:
    count, transposed = int(choices[0][2:]), "true" if choices[1] else "false"
    address, source = instruction.operands
    return (
        f"{{ const u32 s[{count}] = {{{_words(e, instruction, source)}}}; "
        f"store_matrices<{count}, {transposed}>(s, {e.address(instruction, address)}, {e.site(instruction)}); }}"
    )


def _multiply(e: Emitter, instruction: Instruction, choices: tuple[str, ...]) -> str:
    """mma.sync and wmma.mma with f16 operands and f32 accumulators: the model of the tensor core."""
    shape, count = {
        "m16n8k16": ("m16n8", 4),
        "m16n16k16": ("m16n16", 8),
        "m32n8k16": ("m32n8", 8),
        "m8n32k16": ("m8n32", 8),
    }[choices[-1].lstrip(".")]
    target, a, b, c = instruction.operands
    return (
        f"{{ const u32 a[] = {{{_words(e, instruction, a)}}}, b[] = {{{_words(e, instruction, b)}}}; "
        f"const f32 c[] = {{{_words(e, instruction, c, 'f32')}}}; f32 d[{count}]; "
        f"multiply(simt::MmaShape::{shape}, d, a, b, c, {e.site(instruction)}); "
        f"{_results(e, instruction, target, 'f32')} }}"
    )


def _multiply_exactly(e: Emitter, instruction: Instruction, choices: tuple[str, ...]) -> str:
    """Products of integers, which are exact modulo 2^32."""
    rows, depth = (16, int(choices[0])) if "m16n8" in instruction.mnemonic else (8, 16)
    kind_a, kind_b = choices[-2], choices[-1]
    target, a, b, c = instruction.operands
    saturates = "true" if ".satfinite" in choices else "false"
    return (
        f"{{ const u32 a[] = {{{_words(e, instruction, a)}}}, b[] = {{{_words(e, instruction, b)}}}; "
        f"const s32 c[] = {{{_words(e, instruction, c, 's32')}}}; s32 d[{rows // 4}]; "
        f"multiply_integers<{rows}, {depth}, {kind_a}, {kind_b}, {saturates}>(d, a, b, c, {e.site(instruction)}); "
        f"{_results(e, instruction, target, 's32')} }}"
    )


def _load_fragment(e: Emitter, instruction: Instruction, choices: tuple[str, ...]) -> str:
    matrix, layout, shape, *_ = (choice.lstrip(".") for choice in choices)
    target, address, *stride = instruction.operands
    items = _items(target)
    rows, columns = _extent(shape, matrix)
    leading = e.value(instruction, stride[0], "u32") if stride else str(columns if layout == "row" else rows)
    width = "f32" if choices[-1] == ".f32" else "u16"
    place = f"{e.address(instruction, address)}, {leading}, {_is_row(layout)}"
    call = f"load_fragment_{matrix}<{_m(shape)}, {width}>(d, {place});"
    return f"{{ u32 d[{len(items)}]; {call} {_results(e, instruction, target)} }}"


def _store_fragment(e: Emitter, instruction: Instruction, choices: tuple[str, ...]) -> str:
    layout, shape, *_ = (choice.lstrip(".") for choice in choices)
    address, source, *stride = instruction.operands
    rows, columns = _extent(shape, "d")
    leading = e.value(instruction, stride[0], "u32") if stride else str(columns if layout == "row" else rows)
    width = "f32" if choices[-1] == ".f32" else "u16"
    return (
        f"{{ const u32 s[] = {{{_words(e, instruction, source)}}}; "
        f"store_fragment<{_m(shape)}, {width}>(s, {e.address(instruction, address)}, {leading}, {_is_row(layout)}); }}"
    )


def _extent(shape: str, matrix: str) -> tuple[int, int]:
    m = _m(shape)
    n = {16: 16, 32: 8, 8: 32}[m]
    return {"a": (m, 16), "b": (16, n)}.get(matrix, (m, n))


def _m(shape: str) -> int:
    return int(shape[1 : shape.index("n")])


def _is_row(layout: str) -> str:
    return "true" if layout == "row" else "false"


_SHAPES = "{.m16n16k16,.m32n8k16,.m8n32k16}"
_SPACE = "{.global,.shared,.shared::cta,}"
TENSOR = (
    Rule("ldmatrix.sync.aligned.m8n8{.x1,.x2,.x4}{.trans,}{.shared,.shared::cta,}.b16", emit=_load_matrices),
    Rule("stmatrix.sync.aligned.m8n8{.x1,.x2,.x4}{.trans,}{.shared,.shared::cta,}.b16", emit=_store_matrices),
    Rule("mma.sync.aligned{.m16n8k16}.row.col.f32.f16.f16.f32", emit=_multiply),
    Rule("wmma.mma.sync.aligned.{row,col}.{row,col}" + _SHAPES + ".f32.f32", emit=_multiply),
    Rule("mma.sync.aligned.m16n8k{16,32}.row.col{.satfinite,}.s32.{u8,s8}.{u8,s8}.s32", emit=_multiply_exactly),
    Rule("mma.sync.aligned.m8n8k16.row.col{.satfinite,}.s32.{u8,s8}.{u8,s8}.s32", emit=_multiply_exactly),
    Rule("wmma.load.{a,b}.sync.aligned{.row,.col}" + _SHAPES + _SPACE + "{.f16}", emit=_load_fragment),
    Rule("wmma.load.{c}.sync.aligned{.row,.col}" + _SHAPES + _SPACE + "{.f32}", emit=_load_fragment),
    Rule("wmma.store.d.sync.aligned{.row,.col}" + _SHAPES + _SPACE + "{.f32}", emit=_store_fragment),
)
