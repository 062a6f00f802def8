"""Instructions against numpy and exact fractions, on random operands and on those at the edges."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest

from audit.ptx.syntax import WIDTHS
from tests.ptx.exact import BF16, F16, F32, F64, Format, is_nan, root, rounded, value
from tests.ptx.programs import HEAD, Words, built, entry_name, kernel, results

FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}
COUNT = 384
Reference = Callable[..., Any]


class Case(NamedTuple):
    """An instruction, its types, and its result from operands as Python numbers: integers, or bits of floats."""

    mnemonic: str
    result: str
    operands: tuple[str, ...]
    reference: Reference


def _signed(word: int, width: int) -> int:
    return word - (1 << width) if word >> (width - 1) else word


def _read(word: int, kind: str) -> int:
    return _signed(word, WIDTHS[kind]) if kind[0] == "s" else word


def _integers() -> list[Case]:
    cases = []
    for kind in ("u16", "s16", "u32", "s32", "u64", "s64"):
        width = WIDTHS[kind]
        wide = f"{kind[0]}{2 * width}"
        two = (kind, kind)
        cases += [
            Case(f"add.{kind}", kind, two, lambda a, b: a + b),
            Case(f"sub.{kind}", kind, two, lambda a, b: a - b),
            Case(f"mul.lo.{kind}", kind, two, lambda a, b: a * b),
            Case(f"mul.hi.{kind}", kind, two, lambda a, b, w=width: a * b >> w),
            Case(f"mad.lo.{kind}", kind, (*two, kind), lambda a, b, c: a * b + c),
            Case(f"min.{kind}", kind, two, min),
            Case(f"max.{kind}", kind, two, max),
            Case(f"sad.{kind}", kind, (*two, kind), lambda a, b, c: abs(a - b) + c),
            Case(f"div.{kind}", kind, two, lambda a, b: -1 if b == 0 else abs(a) // abs(b) * (1 if a * b >= 0 else -1)),
            Case(f"rem.{kind}", kind, two, lambda a, b: a if b == 0 else abs(a) % abs(b) * (1 if a >= 0 else -1)),
            Case(f"setp.lt.{kind}", "pred", two, lambda a, b: a < b),
            Case(f"setp.ge.{kind}", "pred", two, lambda a, b: a >= b),
            Case(f"setp.ne.{kind}", "pred", two, lambda a, b: a != b),
            Case(f"shr.{kind}", kind, (kind, "u32"), lambda a, n: a >> min(n, 64)),
        ]
        if width < 64:
            cases += [
                Case(f"mul.wide.{kind}", wide, two, lambda a, b: a * b),
                Case(f"mad.wide.{kind}", wide, (*two, wide), lambda a, b, c: a * b + c),
            ]
        if kind[0] == "s":
            cases += [Case(f"neg.{kind}", kind, (kind,), lambda a: -a), Case(f"abs.{kind}", kind, (kind,), abs)]
        if width >= 32:
            cases += [
                Case(f"bfind.{kind}", "u32", (kind,), lambda a: (a if a >= 0 else ~a).bit_length() - 1),
                Case(
                    f"bfe.{kind}",
                    kind,
                    (kind, "u32", "u32"),
                    lambda a, p, n, w=width, s=kind[0] == "s": _field(a, p, n, w, s),
                ),
            ]
    for kind in ("b16", "b32", "b64"):
        cases += [
            Case(f"and.{kind}", kind, (kind, kind), lambda a, b: a & b),
            Case(f"or.{kind}", kind, (kind, kind), lambda a, b: a | b),
            Case(f"xor.{kind}", kind, (kind, kind), lambda a, b: a ^ b),
            Case(f"not.{kind}", kind, (kind,), lambda a: ~a),
            Case(f"cnot.{kind}", kind, (kind,), lambda a: int(a == 0)),
            Case(f"shl.{kind}", kind, (kind, "u32"), lambda a, n: a << min(n, 64)),
            Case(f"selp.{kind}", kind, (kind, kind, "pred"), lambda a, b, p: a if p else b),
        ]
    for kind in ("b32", "b64"):
        width = WIDTHS[kind]
        cases += [
            Case(f"popc.{kind}", "u32", (kind,), lambda a: a.bit_count()),
            Case(f"clz.{kind}", "u32", (kind,), lambda a, w=width: w - a.bit_length()),
            Case(f"brev.{kind}", kind, (kind,), lambda a, w=width: int(f"{a:0{w}b}"[::-1], 2)),
            Case(f"bfi.{kind}", kind, (kind, kind, "u32", "u32"), lambda a, b, p, n, w=width: _inserted(a, b, p, n, w)),
        ]
    return [
        *cases,
        Case("add.sat.s32", "s32", ("s32", "s32"), lambda a, b: max(-(2**31), min(2**31 - 1, a + b))),
        Case("sub.sat.s32", "s32", ("s32", "s32"), lambda a, b: max(-(2**31), min(2**31 - 1, a - b))),
        Case("prmt.b32", "b32", ("b32", "b32", "b32"), _permuted),
        Case("shf.l.wrap.b32", "b32", ("b32", "b32", "u32"), lambda a, b, n: ((b << 32 | a) << (n & 31)) >> 32),
        Case("shf.r.wrap.b32", "b32", ("b32", "b32", "u32"), lambda a, b, n: (b << 32 | a) >> (n & 31)),
        Case("shf.l.clamp.b32", "b32", ("b32", "b32", "u32"), lambda a, b, n: ((b << 32 | a) << min(n, 32)) >> 32),
        Case("shf.r.clamp.b32", "b32", ("b32", "b32", "u32"), lambda a, b, n: (b << 32 | a) >> min(n, 32)),
        Case("bfind.shiftamt.u32", "u32", ("u32",), lambda a: 32 - a.bit_length() if a else -1),
        Case("mul24.lo.s32", "s32", ("s32", "s32"), lambda a, b: _signed(a & 0xFFFFFF, 24) * _signed(b & 0xFFFFFF, 24)),
        Case("mul24.lo.u32", "u32", ("u32", "u32"), lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF)),
        Case("dp4a.s32.s32", "s32", ("b32", "b32", "s32"), lambda a, b, c: _dot(a, b, c, True, True)),
        Case("dp4a.u32.u32", "s32", ("b32", "b32", "s32"), lambda a, b, c: _dot(a, b, c, False, False)),
        Case("dp4a.s32.u32", "s32", ("b32", "b32", "s32"), lambda a, b, c: _dot(a, b, c, True, False)),
        Case("and.pred", "pred", ("pred", "pred"), lambda a, b: a and b),
        Case("xor.pred", "pred", ("pred", "pred"), lambda a, b: a != b),
    ]


def _field(a: int, position: int, length: int, width: int, is_signed: bool) -> int:
    """The pseudocode of bfe in the PTX ISA, bit by bit."""
    position, length = position & 255, length & 255
    last = min(position + length - 1, width - 1)
    bit = lambda i: a >> i & 1  # noqa: E731
    sign = 0 if not is_signed or length == 0 else bit(last)
    result = 0
    for i in range(width):
        result |= (bit(position + i) if i < length and position + i <= width - 1 else sign) << i
    return result


def _inserted(a: int, b: int, position: int, length: int, width: int) -> int:
    position, length = position & 255, length & 255
    for i in range(length):
        if position + i < width:
            b = b & ~(1 << (position + i)) | (a >> i & 1) << (position + i)
    return b


def _permuted(a: int, b: int, selector: int) -> int:
    result = 0
    for i in range(4):
        choice = selector >> 4 * i & 15
        byte = (b << 32 | a) >> 8 * (choice & 7) & 255
        result |= ((255 if byte & 128 else 0) if choice & 8 else byte) << 8 * i
    return result


def _dot(a: int, b: int, c: int, signed_a: bool, signed_b: bool) -> int:
    total = c
    for i in range(4):
        x, y = a >> 8 * i & 255, b >> 8 * i & 255
        total += (_signed(x, 8) if signed_a else x) * (_signed(y, 8) if signed_b else y)
    return total


def _flushed(bits: int, form: Format) -> int:
    return bits & form.sign if bits & (form.sign - 1) < 1 << form.mantissa else bits


def _arithmetic(operation: str, mode: str, form: Format, ftz: bool = False, sat: bool = False) -> Reference:
    """The exact result of an operation on bits, rounded once."""

    def reference(*words: int) -> int:
        words = tuple(_flushed(word, form) for word in words) if ftz else words
        result = _exact(operation, mode, form, words)
        result = _flushed(result, form) if ftz else result
        if sat:
            number = value(result, form)
            result = 0 if is_nan(number) or number <= 0 else rounded(Fraction(1), form) if number > 1 else result
        return result

    return reference


def _exact(operation: str, mode: str, form: Format, words: tuple[int, ...]) -> int:  # noqa: PLR0911
    numbers: list[Any] = [value(word, form) for word in words]
    signs = [bool(word & form.sign) for word in words]
    if any(map(is_nan, numbers)):
        return form.nan
    if operation == "sub":
        numbers[1], signs[1] = -numbers[1], not signs[1]
    if operation in ("add", "sub"):
        return _sum(numbers[0], numbers[1], signs[0], signs[1], mode, form)
    if operation in ("mul", "fma"):
        sign = signs[0] != signs[1]
        product = _product(numbers, sign)
        if product is None:
            return form.nan
        if operation == "mul":
            return _sum(product, Fraction(0), sign, sign, mode, form)
        return _sum(product, numbers[2], sign, signs[2], mode, form)
    if operation == "div":
        return _quotient(numbers[0], numbers[1], signs[0] != signs[1], mode, form)
    if numbers[0] == 0:
        return words[0]
    if signs[0]:
        return form.nan
    return root(numbers[0], form, mode) if isinstance(numbers[0], Fraction) else form.infinity


def _product(numbers: list[Any], sign: bool) -> Any:
    """None where it is no number."""
    finite = [number for number in numbers[:2] if isinstance(number, Fraction)]
    if len(finite) == 2:
        return finite[0] * finite[1]
    return None if 0 in finite else float("-inf") if sign else float("inf")


def _quotient(a: Any, b: Any, sign: bool, mode: str, form: Format) -> int:
    infinite = [not isinstance(number, Fraction) for number in (a, b)]
    if all(infinite) or (a == 0 and b == 0):
        return form.nan
    if infinite[0] or b == 0:
        return form.infinity | (form.sign if sign else 0)
    return rounded(Fraction(0) if infinite[1] else a / b, form, mode, sign)


def _sum(a: Any, b: Any, sign_a: bool, sign_b: bool, mode: str, form: Format) -> int:
    infinite = [number for number in (a, b) if not isinstance(number, Fraction)]
    if infinite:
        if len(infinite) == 2 and sign_a != sign_b:
            return form.nan
        return form.infinity | (form.sign if infinite[0] < 0 else 0)
    zero = sign_a if sign_a == sign_b else mode == "rm"
    return rounded(a + b, form, mode, zero)


def _extreme(is_maximum: bool, form: Format) -> Reference:
    def reference(a: int, b: int) -> int:
        x, y = value(a, form), value(b, form)
        if is_nan(x) or is_nan(y):
            return form.nan if is_nan(x) and is_nan(y) else b if is_nan(x) else a
        if x == y:
            return a if bool(a & form.sign) != is_maximum else b
        return (a if x > y else b) if is_maximum else (a if x < y else b)

    return reference


def _comparison(name: str, form: Format) -> Reference:
    def reference(a: int, b: int) -> bool:
        x, y = value(a, form), value(b, form)
        is_unordered = is_nan(x) or is_nan(y)
        if name in ("num", "nan"):
            return is_unordered == (name == "nan")
        if is_unordered:
            return len(name) == 3
        return bool({"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y}[name[:2]])

    return reference


def _floats() -> list[Case]:
    cases = []
    for mode in ("rn", "rz", "rm", "rp"):
        for ftz in ("", ".ftz"):
            for operation, count in (("add", 2), ("sub", 2), ("mul", 2), ("fma", 3), ("div", 2)):
                made = _arithmetic(operation, mode, F32, bool(ftz))
                cases.append(Case(f"{operation}.{mode}{ftz}.f32", "f32", ("f32",) * count, made))
            cases.append(Case(f"sqrt.{mode}{ftz}.f32", "f32", ("f32",), _arithmetic("sqrt", mode, F32, bool(ftz))))
    for sat in ("", ".sat"):
        for operation, count in (("add", 2), ("mul", 2), ("fma", 3)):
            rn = ".rn" if operation == "fma" else ""
            for kind in ("f16",) if sat else ("f16", "bf16"):
                made = _arithmetic(operation, "rn", FORMATS[kind], sat=bool(sat))
                cases.append(Case(f"{operation}{rn}{sat}.{kind}", kind, (kind,) * count, made))
            made = _arithmetic(operation, "rn", F32, sat=bool(sat))
            cases.append(Case(f"{operation}{rn or '.rn'}{sat}.f32#2", "f32", ("f32",) * count, made))
    for kind in ("f32", "f16", "bf16"):
        for name in ("min", "max"):
            cases.append(Case(f"{name}.{kind}", kind, (kind, kind), _extreme(name == "max", FORMATS[kind])))
        for name in ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"):
            cases.append(Case(f"setp.{name}.{kind}", "pred", (kind, kind), _comparison(name, FORMATS[kind])))
    return cases


def _conversions() -> list[Case]:
    cases = []
    for to in ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"):
        width, least, most = WIDTHS[to], (-(1 << WIDTHS[to] - 1) if to[0] == "s" else 0), 0
        most = (1 << (width - (1 if to[0] == "s" else 0))) - 1
        for source in ("u32", "s32", "s64", "u64"):
            cases.append(
                Case(f"cvt.sat.{to}.{source}", to, (source,), lambda a, lo=least, hi=most: max(lo, min(hi, a)))
            )
        for kind in ("f32", "f16", "f64"):
            for mode in ("rni", "rzi", "rmi", "rpi"):
                made = _to_integer(kind, to, mode, least, most)
                cases.append(Case(f"cvt.{mode}.{to}.{kind}", to, (kind,), made))
        for kind in ("f32", "f16", "f64"):
            cases.append(Case(f"cvt.rn.{kind}.{to}", kind, (to,), lambda a, f=FORMATS[kind]: rounded(Fraction(a), f)))
        for mode in ("rz", "rm", "rp"):
            cases.append(Case(f"cvt.{mode}.f32.{to}", "f32", (to,), lambda a, m=mode: rounded(Fraction(a), F32, m)))
    for source, to in (("f32", "f16"), ("f32", "bf16"), ("f64", "f32"), ("f64", "f16"), ("f64", "bf16")):
        cases.append(Case(f"cvt.rn.{to}.{source}", to, (source,), _narrowed(FORMATS[source], FORMATS[to], "rn")))
    for mode in ("rz", "rm", "rp"):
        cases.append(Case(f"cvt.{mode}.f32.f64", "f32", ("f64",), _narrowed(F64, F32, mode)))
    cases.append(Case("cvt.rz.f16.f32", "f16", ("f32",), _narrowed(F32, F16, "rz")))
    cases.append(Case("cvt.f32.f16", "f32", ("f16",), _narrowed(F16, F32, "rn")))
    cases.append(Case("cvt.f32.bf16", "f32", ("bf16",), _narrowed(BF16, F32, "rn")))
    return cases


def _to_integer(kind: str, to: str, mode: str, least: int, most: int) -> Reference:
    def reference(word: int) -> int:
        number = value(word, FORMATS[kind])
        if is_nan(number):
            return 1 << (WIDTHS[to] - 1) if kind == "f64" or WIDTHS[to] == 64 else 0
        if not isinstance(number, Fraction):
            return most if number > 0 else least
        floor = number.numerator // number.denominator
        whole = {
            "rni": round(number),
            "rzi": floor if number >= 0 or floor == number else floor + 1,
            "rmi": floor,
            "rpi": floor if floor == number else floor + 1,
        }[mode]
        return max(least, min(most, whole))

    return reference


def _narrowed(source: Format, to: Format, mode: str) -> Reference:
    def reference(word: int) -> int:
        number = value(word, source)
        sign = bool(word & source.sign)
        if is_nan(number):
            return to.nan
        if not isinstance(number, Fraction):
            return to.infinity | (to.sign if sign else 0)
        return rounded(number, to, mode, sign)

    return reference


CASES = [*_integers(), *_floats(), *_conversions()]


def _operands(case: Case) -> list[Words]:
    """The edges of each type with one another, then random words: half of them any, half of moderate size."""
    rng = np.random.default_rng(list(case.mnemonic.encode()))
    edges = [_edges(kind) for kind in case.operands]
    grid = list(itertools.product(*edges))
    rng.shuffle(grid)
    if case.mnemonic.startswith("fma"):
        grid[:2] = _BESIDE_A_MIDPOINT[case.operands[0]]
    columns = []
    for number, kind in enumerate(case.operands):
        width = 32 if kind == "pred" else WIDTHS[kind]
        chosen = [row[number] for row in grid[: COUNT // 2]]
        anything = [int.from_bytes(rng.bytes(8), "little") & (1 << width) - 1 for _ in range(COUNT - len(chosen))]
        if kind in FORMATS:
            form = FORMATS[kind]
            for at in range(0, len(anything), 2):
                size = int(rng.integers(form.bias - 4, form.bias + 5)) << form.mantissa
                anything[at] = size | anything[at] & (1 << form.mantissa) - 1 | anything[at] & form.sign
        if kind == "u32" and number > 0:
            anything = [word % 70 for word in anything]
        if kind == "pred":
            anything = [word & 1 for word in anything]
        columns.append(np.array([*chosen, *anything], np.uint64).astype(f"u{max(16, width) // 8}"))
    return columns


# The product lies between two numbers of its format; the addend, far below, decides.
_BESIDE_A_MIDPOINT = {
    "f16": [(0x3C01, 0x3E00, 0x0001), (0x3C01, 0x3E00, 0x8001)],
    "bf16": [(0x3F81, 0x3FC0, 0x0001), (0x3F81, 0x3FC0, 0x8001)],
    "f32": [(0x3F800001, 0x3FC00000, 0x00800000), (0x3F800001, 0x3FC00000, 0x80800000)],
}


def _edges(kind: str) -> list[int]:
    if kind == "pred":
        return [0, 1]
    width = WIDTHS[kind]
    if kind not in FORMATS:
        return [0, 1, 2, 31, 32, 33, (1 << width - 1) - 1, 1 << width - 1, (1 << width) - 1]
    form = FORMATS[kind]
    one = form.bias << form.mantissa
    sizes = [0, 1, (1 << form.mantissa) - 1, 1 << form.mantissa, one, one + 1, form.infinity - 1, form.infinity]
    return [*sizes, *(size | form.sign for size in sizes), form.infinity + 1, form.nan]


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[list[Words], Words]]:
    folder = tmp_path_factory.mktemp("instructions")
    text = HEAD + "".join(
        kernel(entry_name(case.mnemonic), case.mnemonic.split("#")[0], case.result, case.operands) for case in CASES
    )
    program = built(folder, text, [entry_name(case.mnemonic) for case in CASES])
    operands = {case.mnemonic: _operands(case) for case in CASES}
    made = results(program, folder, {entry_name(c.mnemonic): (operands[c.mnemonic], c.result) for c in CASES})
    return {case.mnemonic: (operands[case.mnemonic], made[entry_name(case.mnemonic)]) for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=[case.mnemonic for case in CASES])
def test_it_computes_what_the_isa_says(case: Case, computed: dict[str, tuple[list[Words], Words]]) -> None:
    operands, got = computed[case.mnemonic]
    width = 1 if case.result == "pred" else WIDTHS[case.result]
    register = max(16, width)
    for words in zip(*operands, got, strict=True):
        *inputs, result = map(int, words)
        typed = [_read(word & (1 << WIDTHS[kind]) - 1, kind) for word, kind in zip(inputs, case.operands, strict=True)]
        expected = int(case.reference(*typed)) & (1 << width) - 1
        if case.result[0] == "s":  # in a wider register, extended by its sign
            expected = _signed(expected, width) & (1 << register) - 1
        if case.result == "f64" and is_nan(value(expected, F64)):
            continue  # the bits of a NaN are this CPU's
        assert f"{result:#x}" == f"{expected:#x}", (case.mnemonic, [hex(word) for word in inputs])
