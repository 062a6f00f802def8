"""One head of the scalar operator in exact rationals, number by number: the twin of references/scalar_contract.py.

Written from kernels/CONTRACT.md, with the roundings of `slow_contract`; zeros have no sign here.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction

from .slow_contract import ZERO, exp, f32, fma

LOWEST = Fraction(-100000002004087734272)  # the binary32 next to -1e20
FLOOR = Fraction(-80)

Combine = Callable[[Fraction, Fraction], Fraction]


def add(a: Fraction, b: Fraction) -> Fraction:
    return f32(a + b)


def block_tree(combine: Combine, thread: Sequence[Fraction]) -> Fraction:
    """256 threads: in each warp lane i takes lane i+o, for o from 16; then the 8 warps for o from 4."""
    warps = []
    for warp in range(8):
        lane = list(thread[32 * warp : 32 * warp + 32])
        for o in (16, 8, 4, 2, 1):
            for i in range(o):
                lane[i] = combine(lane[i], lane[i + o])
        warps.append(lane[0])
    for o in (4, 2, 1):
        for i in range(o):
            warps[i] = combine(warps[i], warps[i + o])
    return warps[0]


def score(q: Sequence[Fraction], key: Sequence[Fraction], score_scale: Fraction) -> Fraction:
    lane = [ZERO] * 32
    for d, (x, y) in enumerate(zip(q, key, strict=True)):
        lane[d % 32] = fma(x, y, lane[d % 32])
    for o in (16, 8, 4, 2, 1):
        for i in range(o):
            lane[i] = f32(lane[i] + lane[i + o])
    return f32(lane[0] * score_scale)


def partition(
    scores: Sequence[Fraction], columns: Sequence[Sequence[Fraction]], v_scale: Fraction
) -> tuple[Fraction, Fraction, list[Fraction]]:
    """(max, sum, partial) of at most 1,024 scores; columns hold the V of one dimension each."""
    threads = [range(t, len(scores), 256) for t in range(256)]
    highest = []
    for thread in threads:
        m = LOWEST
        for i in thread:
            m = max(m, scores[i])
        highest.append(m)
    top = block_tree(max, highest)
    p = [exp(max(f32(x - top), FLOOR)) for x in scores]
    sums = []
    for thread in threads:
        total = ZERO
        for i in thread:
            total = f32(total + p[i])
        sums.append(total)
    total = block_tree(add, sums)
    gain = f32(f32(1 / total) * v_scale)
    partial = []
    for column in columns:
        acc = ZERO
        for weight, x in zip(p, column, strict=True):
            acc = fma(weight, x, acc)
        partial.append(f32(acc * gain))
    return top, total, partial


def reduce(parts: Sequence[tuple[Fraction, Fraction, Sequence[Fraction]]]) -> list[Fraction]:
    """The pre-cast output from (max, sum, partial) of each partition."""
    top = block_tree(max, [m for m, _, _ in parts] + [LOWEST] * (256 - len(parts)))
    weights = [f32(s * exp(max(f32(m - top), FLOOR))) for m, s, _ in parts]
    inverse = f32(1 / block_tree(add, weights + [ZERO] * (256 - len(parts))))
    merged = []
    for d in range(len(parts[0][2])):
        acc = ZERO
        for weight, (_, _, partial) in zip(weights, parts, strict=True):
            acc = fma(weight, partial[d], acc)
        merged.append(f32(acc * inverse))
    return merged
