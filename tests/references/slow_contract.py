"""One row and head of one split in exact rationals, number by number: the twin of references/contract.py.

Written from kernels/CONTRACT.md. A number is a Fraction; `f32` and `f16` are the only roundings. A zero has
no sign here, so zeros are compared by value.
"""

from collections.abc import Sequence
from fractions import Fraction

Number = Fraction
ZERO = Fraction(0)
NOTHING = Fraction(-1000000015047466219876688855040)  # the binary32 next to -1e30


def exponent_of(x: Fraction, lowest: int) -> int:
    """e with 2^e <= |x| < 2^(e+1), but at least the lowest."""
    x = abs(x)
    e = x.numerator.bit_length() - x.denominator.bit_length()  # exact, or one too high
    return max(e - (x < Fraction(2) ** e), lowest)


def _round(x: Fraction, digits: int, lowest: int) -> Fraction:
    unit = Fraction(2) ** (exponent_of(x, lowest) - digits + 1)
    return round(x / unit) * unit


def f32(x: Fraction) -> Fraction:
    return _round(x, 24, -126) if x else ZERO


def f16(x: Fraction) -> Fraction:
    return _round(x, 11, -14) if x else ZERO


def fma(a: Fraction, b: Fraction, c: Fraction) -> Fraction:
    return f32(a * b + c)


def tensor_step(a: Sequence[Fraction], b: Sequence[Fraction], c: Fraction, fraction_bits: int = 25) -> Fraction:
    """One step of the tensor-core product, value by value (audit/simt/tensor_core.md)."""
    terms = [(x * y, exponent_of(x, -14) + exponent_of(y, -14)) for x, y in zip(a, b, strict=True)]
    terms = [(value, e) for value, e in [*terms, (c, exponent_of(c, -126))] if value]
    if not terms:
        return ZERO
    unit = Fraction(2) ** (max(e for _, e in terms) - fraction_bits)
    total = sum((int(value / unit) * unit for value, _ in terms), ZERO)  # int() truncates toward zero
    if not total:
        return ZERO
    unit = Fraction(2) ** (exponent_of(total, -126) - 23)
    return int(total / unit) * unit


def exp(x: Fraction) -> Fraction:
    z = fma(x, Fraction(float.fromhex("0x1.715476p+0")), Fraction(12582912))
    n = z - 12582912
    r = fma(n, Fraction(float.fromhex("-0x1.62e430p-1")), x)
    r = fma(n, Fraction(float.fromhex("0x1.05c610p-29")), r)
    q = Fraction(float.fromhex("0x1.6b6bf8p-10"))
    for text in ("0x1.122f28p-7", "0x1.55568ap-5", "0x1.5554a4p-3", "0x1p-1", "0x1p0", "0x1p0"):
        q = fma(q, r, Fraction(float.fromhex(text)))
    return q * Fraction(2) ** int(n)


def tree_sum(x: Sequence[Fraction]) -> Fraction:
    x = list(x)
    for o in (16, 8, 4, 2, 1):
        for i in range(o):
            x[i] = f32(x[i] + x[i + o])
    return x[0]


def split_state(
    q: Sequence[Fraction],
    keys: Sequence[Sequence[Fraction]],
    values: Sequence[Sequence[Fraction]],
    *,
    visible: int,
    score_scale: Fraction,
    v_scale: Fraction,
) -> tuple[list[Fraction], Fraction, Fraction]:
    """(partial, max, sum) over keys and values, zeros up to whole tiles; the first `visible` are seen."""
    dims = len(q)
    maximum, total, out = NOTHING, ZERO, [ZERO] * dims
    for start in range(0, len(keys), 32):
        shown = [start + lane < visible for lane in range(32)]
        if not any(shown):
            continue
        scores = []
        for key in keys[start : start + 32]:
            s = c = ZERO
            for k in range(0, dims, 16):
                t = tensor_step(q[k : k + 16], key[k : k + 16], ZERO)
                y = f32(t - c)
                following = f32(s + y)
                c = f32(f32(following - s) - y)
                s = following
            scores.append(f32(s * score_scale))
        scores = [score if seen else NOTHING for score, seen in zip(scores, shown, strict=True)]
        new_maximum = max(maximum, *scores)
        floor = Fraction(-80)
        p = [
            exp(max(f32(score - new_maximum), floor)) if seen else ZERO
            for score, seen in zip(scores, shown, strict=True)
        ]
        rescale = exp(max(f32(maximum - new_maximum), floor)) if total > 0 else Fraction(1)
        rounded = [f16(x) for x in p]
        residual = [f16(f32(f32(x - r) * 2048)) for x, r in zip(p, rounded, strict=True)]
        for d in range(dims):
            column = [value[d] for value in values[start : start + 32]]
            small = [x / 2048 for x in column]
            tile = ZERO
            for half in (slice(0, 16), slice(16, 32)):
                tile = tensor_step(rounded[half], column[half], tile)
                tile = tensor_step(residual[half], small[half], tile)
            out[d] = fma(out[d], rescale, tile)
        total = fma(total, rescale, tree_sum(p))
        maximum = new_maximum
    return [f32(x * v_scale) for x in out], maximum, total


def merge(parts: Sequence[tuple[Sequence[Fraction], Fraction, Fraction]]) -> list[Fraction]:
    """The pre-cast output from (partial, max, sum) of each split."""
    used = [part for part in parts if part[1] > -(10**20)]
    if not used:
        return [ZERO] * len(parts[0][0])
    top = max(maximum for _, maximum, _ in used)
    weights = [exp(max(f32(maximum - top), Fraction(-80))) for _, maximum, _ in used]
    total = ZERO
    for weight, (_, _, split_sum) in zip(weights, used, strict=True):
        total = fma(weight, split_sum, total)
    inverse = f32(1 / total)
    merged = [ZERO] * len(used[0][0])
    for weight, (partial, _, _) in zip(weights, used, strict=True):
        merged = [fma(f32(weight * inverse), x, acc) for x, acc in zip(partial, merged, strict=True)]
    return merged
