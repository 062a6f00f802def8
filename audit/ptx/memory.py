"""Loads, stores, atomics and copies, by chapter 9.7.9 of the PTX ISA (data movement) and 9.7.13 (atomics)."""

from __future__ import annotations

from audit.ptx.emit import Emitter
from audit.ptx.rule import Emit, Rule
from audit.ptx.syntax import WIDTHS, Immediate, Instruction, Sink, Vector

_TYPES = "{b8,b16,b32,b64,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64,f16,bf16}"
_ORDERS = (
    "{.weak,.volatile,.relaxed.cta,.relaxed.cluster,.relaxed.gpu,.relaxed.sys,.relaxed,"
    ".acquire.cta,.acquire.cluster,.acquire.gpu,.acquire.sys,}"
)
_STORE_ORDERS = _ORDERS.replace("acquire", "release")
_SPACES = "{.global,.shared,.shared::cta,.local,.const,.param,.param::entry,.param::func,}"
_HINTS = (
    "{.ca,.cg,.cs,.lu,.cv,.wb,.wt,}"
    "{.L1::evict_normal,.L1::evict_unchanged,.L1::evict_first,.L1::evict_last,.L1::no_allocate,}"
    "{.L2::64B,.L2::128B,.L2::256B,}"
)
_SCOPES = "{.cta,.cluster,.gpu,.sys,}"
_MEANING = "{.relaxed,.acquire,.release,.acq_rel,}"


def _items(operand: object) -> tuple[object, ...]:
    return operand.items if isinstance(operand, Vector) else (operand,)


def _lanes(e: Emitter, instruction: Instruction, operand: object, vector: str) -> tuple[object, ...]:
    items = _items(operand)
    if len(items) != int(vector[2:] or 1):
        raise e.refusal(instruction, f"`{instruction.mnemonic}` with {len(items)} elements")
    return items


def _pointee(kind: str, alignment: int) -> str:
    """The C++ type of an access: its alignment is that of the whole vector, which the program checks."""
    width = WIDTHS[kind] // 8
    return f"u{8 * width}" if alignment == width else f"Aligned<u{8 * width}, {alignment}>"


def _load(e: Emitter, instruction: Instruction, choices: tuple[str, ...]) -> str:
    order, _space, *_, vector, kind = choices
    kind = kind.lstrip(".")
    targets = _lanes(e, instruction, instruction.operands[0], vector)
    width = WIDTHS[kind] // 8
    address = e.address(instruction, instruction.operands[1])
    volatile = "" if order in ("", ".weak") else "volatile "
    before = ""
    if ".nc" in choices:
        before = f"read_only({address}, {width * len(targets)}, {e.site(instruction)}); "
    loaded = []
    for number, target in enumerate(targets):
        pointee = _pointee(kind, width * len(targets)) if number == 0 else f"u{8 * width}"
        place = address if number == 0 else f"{address} + {number * width}"
        value = f"*({volatile}{pointee}*)({place})"
        if order.startswith(".acquire"):
            value = f"load_acquire<u{8 * width}>({place})"
        loaded.append((target, value))
    if len(loaded) == 1:
        target, value = loaded[0]
        return before + e.assign_word(instruction, target, kind, value)
    # All elements are read before any register is written: one of them may be the address.
    reads = "".join(f"const u{8 * width} t{i} = {value}; " for i, (_, value) in enumerate(loaded))
    writes = "".join(
        e.assign_word(instruction, target, kind, f"t{i}") for i, (target, _) in enumerate(loaded) if target != Sink()
    )
    return f"{{ {before}{reads}{writes} }}"


def _store(e: Emitter, instruction: Instruction, choices: tuple[str, ...]) -> str:
    order, *_, vector, kind = choices
    kind = kind.lstrip(".")
    sources = _lanes(e, instruction, instruction.operands[1], vector)
    width = WIDTHS[kind] // 8
    address = e.address(instruction, instruction.operands[0])
    volatile = "" if order in ("", ".weak") else "volatile "
    written = []
    for number, source in enumerate(sources):
        pointee = _pointee(kind, width * len(sources)) if number == 0 else f"u{8 * width}"
        place = address if number == 0 else f"{address} + {number * width}"
        value = e.value(instruction, source, f"b{8 * width}")
        if order.startswith(".release"):
            written.append(f"store_release<u{8 * width}>({place}, {value});")
        else:
            written.append(f"*({volatile}{pointee}*)({place}) = {value};")
    return " ".join(written)


_CHANGES = {
    "add": "old + b",
    "and": "old & b",
    "or": "old | b",
    "xor": "old ^ b",
    "exch": "b",
    "inc": "old >= b ? 0 : old + 1",
    "dec": "old == 0 || old > b ? b : old - 1",
    "min": "b < old ? b : old",
    "max": "b > old ? b : old",
}


def _atomic(e: Emitter, instruction: Instruction, choices: tuple[str, ...]) -> str:
    """atom and red: the changed value goes to memory, the old one to the register of atom."""
    order, _, _, operation, kind = (choice.lstrip(".") for choice in choices)
    is_reduction = instruction.mnemonic.startswith("red")
    operands = instruction.operands if not is_reduction else (Sink(), *instruction.operands)
    word = f"u{WIDTHS[kind]}"
    address = e.address(instruction, operands[1])
    meaning = f"Meaning::{order or 'relaxed'}"
    b = e.value(instruction, operands[2], kind)
    if operation == "cas":
        new = e.value(instruction, operands[3], kind)
        result = f"exchange_if<{word}, {meaning}>({address}, (u{WIDTHS[kind]}){b}, (u{WIDTHS[kind]}){new})"
    elif kind in ("f32", "f64", "f16", "bf16", "f16x2", "bf16x2"):
        change = "canonical(old + b)" if kind == "f32" else "old + b" if kind == "f64" else "sum(old, b)"
        if operation in ("min", "max"):
            change = f"small_{operation}imum<false, false>(old, b)"
        result = f"changed<{kind}, {meaning}>({address}, {b}, []({kind} old, {kind} b) {{ return {change}; }})"
    else:
        change = _CHANGES[operation]
        typed = e.c_type(kind)
        result = (
            f"changed<{typed}, {meaning}>({address}, {b}, []({typed} old, {typed} b) -> {typed} {{ return {change}; }})"
        )
    if is_reduction or isinstance(operands[0], Sink):
        return f"{result};"
    return e.assign_word(instruction, operands[0], f"b{WIDTHS[kind]}", f"bits({result})")


def _vector_reduction(e: Emitter, instruction: Instruction, choices: tuple[str, ...]) -> str:
    """red and atom of a vector: each element is an atomic of its own."""
    vector, kind = choices[-2:]
    kind = kind.lstrip(".")
    is_reduction = instruction.mnemonic.startswith("red")
    operands = instruction.operands if not is_reduction else (Sink(), *instruction.operands)
    sources = _lanes(e, instruction, operands[2], vector)
    targets = _items(operands[0]) if not isinstance(operands[0], Sink) else (Sink(),) * len(sources)
    address = e.address(instruction, operands[1])
    change = "canonical(old + b)" if kind == "f32" else "sum(old, b)"
    width = WIDTHS[kind] // 8
    written = [f"(void)*(volatile Aligned<u8, {width * len(sources)}>*)({address});"]
    for number, (target, source) in enumerate(zip(targets, sources, strict=True)):
        value = (
            f"changed<{kind}, Meaning::relaxed>({address} + {number * width}, {e.value(instruction, source, kind)}, "
            f"[]({kind} old, {kind} b) {{ return {change}; }})"
        )
        written.append(
            f"{value};"
            if isinstance(target, Sink)
            else e.assign_word(instruction, target, f"b{8 * width}", f"bits({value})")
        )
    return " ".join(written)


def _copy_async(e: Emitter, instruction: Instruction, _choices: tuple[str, ...]) -> str:
    to, source, size, *rest = instruction.operands
    if not isinstance(size, Immediate) or size.value not in (4, 8, 16):
        raise e.refusal(instruction, f"`{instruction.mnemonic}` of another size than 4, 8 or 16 bytes")
    read = f"{size.value}u" if not rest else e.value(instruction, rest[0], "u32")
    if rest and e.is_predicate(rest[0]):
        read = f"{e.value(instruction, rest[0], 'pred')} ? 0u : {size.value}u"
    return (
        f"copies.add({e.address(instruction, to)}, {e.address(instruction, source)}, {size.value}, {read}, "
        f"{e.site(instruction)});"
    )


def _move(e: Emitter, instruction: Instruction, choices: tuple[str, ...]) -> str:
    """mov: also packs a vector into a wider register, and unpacks one."""
    kind = choices[0].lstrip(".")
    target, source = instruction.operands
    if isinstance(target, Vector):
        width = WIDTHS[kind] // len(target.items)
        value = e.value(instruction, source, f"b{WIDTHS[kind]}")
        parts = "".join(
            e.assign_word(instruction, item, f"b{width}", f"(u{width})(whole >> {number * width})")
            for number, item in enumerate(target.items)
            if not isinstance(item, Sink)
        )
        return f"{{ const u{WIDTHS[kind]} whole = {value}; {parts} }}"
    if isinstance(source, Vector):
        width = WIDTHS[kind] // len(source.items)
        parts = " | ".join(
            f"(u{WIDTHS[kind]}){e.value(instruction, item, f'b{width}')} << {number * width}"
            for number, item in enumerate(source.items)
        )
        return e.assign_word(instruction, target, f"b{WIDTHS[kind]}", parts)
    if kind == "pred":
        return e.assign(instruction, target, "pred", e.value(instruction, source, "pred"))
    return e.assign_word(instruction, target, f"b{WIDTHS[kind]}", e.value(instruction, source, f"b{WIDTHS[kind]}"))


def _convert_address(e: Emitter, instruction: Instruction, choices: tuple[str, ...]) -> str:
    # The addresses of all state spaces are real ones here, and those of shared memory fit into 32 bits.
    kind = choices[-1].lstrip(".")
    return e.assign_word(
        instruction, instruction.operands[0], kind, e.value(instruction, instruction.operands[1], kind)
    )


def _is_space(e: Emitter, instruction: Instruction, choices: tuple[str, ...]) -> str:
    space = choices[0].lstrip(".").split("::")[0]
    address = e.value(instruction, instruction.operands[1], "u64")
    return e.assign(instruction, instruction.operands[0], "pred", f"is_in_{space}({address})")


def _prefetch(_e: Emitter, _instruction: Instruction, _choices: tuple[str, ...]) -> str:
    return ";"


_ATOMIC_HEAD = "{atom,red}" + _MEANING + _SCOPES + "{.global,.shared,.shared::cta,}"
_ATOMIC_OTHER = "{atom,red}{.global,.shared,.shared::cta,}" + _MEANING + _SCOPES


def _in_head_order(emit: Emit) -> tuple[Emit, Emit, Emit]:
    """atom.global.add and atom.add.global: compilers write the space in both places."""

    def first(e: Emitter, instruction: Instruction, choices: tuple[str, ...]) -> str:
        _, meaning, scope, space, *rest = choices
        return emit(e, instruction, (meaning, scope, space, *rest))

    def second(e: Emitter, instruction: Instruction, choices: tuple[str, ...]) -> str:
        _, space, meaning, scope, *rest = choices
        return emit(e, instruction, (meaning, scope, space, *rest))

    def third(e: Emitter, instruction: Instruction, choices: tuple[str, ...]) -> str:
        _, space, operation, meaning, scope, kind = choices
        return emit(e, instruction, (meaning, scope, space, operation, kind))

    return first, second, third


def _atomic_rules() -> tuple[Rule, ...]:
    scalar = _in_head_order(_atomic)
    vector = _in_head_order(_vector_reduction)
    found = []
    for head, one, many in ((_ATOMIC_HEAD, scalar[0], vector[0]), (_ATOMIC_OTHER, scalar[1], vector[1])):
        for tail in (
            ".{add,min,max}.{u32,s32,u64,s64}",
            ".{and,or,xor}.{b32,b64}",
            ".{exch}.{b32,b64}",
            ".{cas}.{b16,b32,b64}",
            ".{inc,dec}.{u32}",
            ".{add}.{f32,f64}",
        ):
            found.append(Rule(head + tail, emit=one))
        found.append(Rule(head + ".{add,min,max}.noftz.{f16,bf16,f16x2,bf16x2}", emit=one))
        found.append(Rule(head + ".add{.v2,.v4}.{f32}", emit=many))
        found.append(Rule(head + ".add.noftz{.v2,.v4,.v8}.{f16,bf16,f16x2,bf16x2}", emit=many))
    # libcu++ writes the meaning behind the operation, and ptxas takes it.
    for tail in ("{add,min,max}.{u32,s32,u64,s64}", "{and,or,xor,exch,cas}.{b32,b64}", "{add}.{f32,f64}"):
        operation, kind = tail.split("}.")
        pattern = "{atom,red}{.global,.shared,.shared::cta,}." + operation + "}" + _MEANING + _SCOPES + "." + kind
        found.append(Rule(pattern, emit=scalar[2]))
    return tuple(found)


MEMORY = (
    Rule("ld" + _ORDERS + _SPACES + _HINTS + "{.v2,.v4,.v8,}" + f".{_TYPES}", emit=_load),
    Rule(
        "ld.global" + _HINTS + "{.nc}{,}" + _HINTS + "{.v2,.v4,.v8,}" + f".{_TYPES}",
        emit=lambda e, i, c: _load(e, i, ("", ".global", *c)),
    ),
    Rule("ldu.global{.v2,.v4,}" + f".{_TYPES}", emit=lambda e, i, c: _load(e, i, ("", ".global", *c))),
    Rule("st" + _STORE_ORDERS + _SPACES + _HINTS + "{.v2,.v4,.v8,}" + f".{_TYPES}", emit=_store),
    *_atomic_rules(),
    Rule("cp.async.{ca,cg}.shared{::cta,}.global{.L2::cache_hint,}{.L2::64B,.L2::128B,.L2::256B,}", emit=_copy_async),
    Rule("cp.async.commit_group", "=", "copies.commit()"),
    Rule("cp.async.wait_group", "= u32", "copies.wait({0})"),
    Rule("cp.async.wait_all", "=", "copies.wait_all()"),
    Rule("mov.{pred,b8,b16,b32,b64,b128,u16,u32,u64,s16,s32,s64,f32,f64,f16,f16x2,bf16,bf16x2}", emit=_move),
    Rule("cvta{.to,}.{global,shared,shared::cta,local,const,param}.{u32,u64}", emit=_convert_address),
    Rule("isspacep.{global,shared,shared::cta,local,const}", emit=_is_space),
    Rule("prefetch{.global,.local,}.{L1,L2,L2::evict_last,L2::evict_normal}", emit=_prefetch),
    Rule("prefetchu.L1", emit=_prefetch),
    Rule("applypriority.global.L2::evict_normal", emit=_prefetch),
)
