"""Structured inputs of a paged operator: tokens in few classes, chosen so that the result has a closed form.

Random inputs hide a wrong mask, exchanged heads or a token that is counted twice; these designs do not. A design
follows from the case alone, so that the expected result needs neither pages nor the table. Each operator compares its
own workspace, within the limits of its own arithmetic (`grouped/probes.py`, `scalar/probes.py`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from audit import Array, Case, Inputs, Measured, formats

from .inputs import live_lengths, paged

Array64 = NDArray[np.float64]

K_SCALE, V_SCALE = np.float32(0.291), np.float32(1.37)
"""Unequal and not powers of two, as the third scale of every design, so that dropping or exchanging one shows."""
_SCALE = np.float32(0.0773)
_FAR = 90.0
"""How far below the maximum a score must be for the weight e^-80, where the contract floors the exponent."""
_ONE = 0x38  # 1.0; the following codes are the next larger numbers
_MINUS = 0x80
_TILE = 32


@dataclass(frozen=True, eq=False)
class Design:
    """Token t has the key and value of class `classes[t]`; equal keys give equal scores in every line (row, head)."""

    classes: NDArray[np.intp]
    """[context]"""
    keys: NDArray[np.uint8]
    """e4m3 [classes, dim]"""
    values: NDArray[np.uint8]
    """e4m3 [classes, dim]"""
    q: NDArray[np.float16]
    """[rows, heads, dim], finite even where the row sees nothing"""
    scale: np.float32
    own: NDArray[np.intp] | None = None
    """[rows, heads]: the class whose score exceeds every other one by 90 or more, where the design has such a class"""

    @property
    def dots(self) -> Array64:
        """q.k of each line and class, f64 [rows, heads, classes]."""
        return np.asarray(self.q.astype(np.float64) @ numbers(self.keys).T)


def numbers(codes: NDArray[np.uint8]) -> Array64:
    """e4m3 in f64, exact."""
    return formats.decode_e4m3(codes).astype(np.float64)


def laid_out(case: Case, design: Design, rng: np.random.Generator) -> Inputs:
    """The design in the case's pages, with live lengths. q of a row that sees nothing is NaN; no result may show it."""
    lengths = live_lengths(case)
    return {
        **paged(case, design.keys[design.classes], design.values[design.classes], rng),
        "q": np.where(lengths[:, None, None] > 0, design.q, np.float16(np.nan)),
        "lengths": lengths,
        "scale": design.scale,
        "k_scale": K_SCALE,
        "v_scale": V_SCALE,
    }


# ---- q = 0: every visible token weighs the same -----------------------------------------------------------------


def uniform(case: Case) -> Design:
    """V of 53 kinds, |V| <= 4, in turn: the output is the mean of the visible tokens' V."""
    values = np.clip(np.random.default_rng(53).normal(0.25, 1, (53, case.dim)), -4, 4)
    return _unweighted(case, _tokens(case) % 53, formats.encode_e4m3(values))


def one_hot(case: Case) -> Design:
    """V[t, d] is 1 where t mod D is d: a split's numerator counts its tokens, each in a dimension of its own."""
    return _unweighted(case, _tokens(case) % case.dim, _identity(case))


def one_hot_high(case: Case) -> Design:
    """V[t, d] is 1 where (t div D) mod D is d; with `one_hot` it distinguishes all tokens of a context up to D * D."""
    return _unweighted(case, _tokens(case) // case.dim % case.dim, _identity(case))


def sparse(case: Case) -> Design:
    """V is 1.125 at tokens 0, 256, 512, ... and 0 elsewhere."""
    values = np.zeros((2, case.dim), np.uint8)
    values[0] = formats.encode_e4m3(np.float32(1.125))
    return _unweighted(case, np.minimum(_tokens(case) % 256, 1), values)


def _unweighted(case: Case, classes: NDArray[np.intp], values: NDArray[np.uint8]) -> Design:
    keys = 16 * np.random.default_rng(16).normal(size=values.shape)  # large, so that a q that is not 0 shows
    q = np.zeros((case.rows, case.heads, case.dim), np.float16)
    return Design(classes, formats.encode_e4m3(keys), values, q, _SCALE)


def _identity(case: Case) -> NDArray[np.uint8]:
    return np.where(np.eye(case.dim, dtype=bool), _ONE, 0).astype(np.uint8)


# ---- All weight on one class, a different one for each line ---------------------------------------------------------


def position(case: Case, borders: Iterable[int]) -> Design:
    """Each line has all its weight on one token, and V spells the token's number, rotated from dimension to dimension.

    `borders`: where splits or partitions start; the starts of pages are added. The designated tokens include those
    tokens, the ones before them, the first token and the last visible token of every row. They differ where there are
    enough tokens.
    """
    tokens, dims = _tokens(case), np.arange(case.dim)
    digits = (tokens[:, None] >> 4 * np.arange(5) & 15).astype(np.uint8)
    values = np.uint8(_ONE) + (digits[:, dims % 5] + (3 * dims % 16).astype(np.uint8)) % np.uint8(16)
    own = _designated(case, [*borders, *range(case.page, case.context, case.page)])
    return _addressed(case, tokens, values, own)


def heads(case: Case) -> Design:
    """Tokens belong to the lines in turn, line = row * heads + head, and V is the line's number plus d (modulo 48)."""
    lengths = live_lengths(case)
    lines = min(case.rows * case.heads, int(lengths[lengths > 0].min()))  # every row must see each class
    values = _ONE + (np.arange(lines)[:, None] + np.arange(case.dim)) % 48
    own = np.arange(case.rows * case.heads).reshape(case.rows, case.heads) % lines
    return _addressed(case, _tokens(case) % lines, values.astype(np.uint8), own)


def _addressed(case: Case, classes: NDArray[np.intp], values: NDArray[np.uint8], own: NDArray[np.intp]) -> Design:
    """Keys spell the class in bits of +-1, each in a block of dimensions of its own; q is `own`'s key times a number.

    A wrong bit costs 2 * block * number * scale * k_scale, made at least 90. Products are small integers: exact.
    """
    bits = max(1, (len(values) - 1).bit_length())
    block = case.dim // bits
    bit = np.minimum(np.arange(case.dim) // block, bits - 1)
    spelled = (np.arange(len(values))[:, None] >> np.arange(bits) & 1).astype(bool)
    keys = np.where(spelled, np.uint8(_ONE), np.uint8(_ONE | _MINUS))[:, bit]
    number = np.ceil(_FAR / (2 * block * float(_SCALE) * float(K_SCALE)))
    return Design(classes, keys, values, (number * numbers(keys[own])).astype(np.float16), _SCALE, own)


def _designated(case: Case, borders: Sequence[int]) -> NDArray[np.intp]:
    """Head 0: the row's last visible token. The others: the first token, borders, then tokens spread evenly."""
    lengths = live_lengths(case)
    shortest = int(lengths[lengths > 0].min())
    count = case.rows * (case.heads - 1)
    wanted = sorted({0, *(token for border in borders for token in (border - 1, border))} & set(range(shortest)))
    if len(wanted) > count:
        wanted = [wanted[i] for i in np.linspace(0, len(wanted) - 1, count).astype(int)]
    spread = np.linspace(0, shortest - 1, case.rows * case.heads + len(wanted)).astype(int).tolist()
    last = set((lengths - 1).tolist())
    pool = [token for token in dict.fromkeys([*wanted, *spread]) if token not in last] or [0]
    others = np.resize(pool, (case.rows, case.heads - 1))
    return np.concatenate([np.maximum(lengths - 1, 0)[:, None], others], axis=1).astype(np.intp)


# ---- Two score levels -------------------------------------------------------------------------------------------


def two_keys(case: Case) -> Design:
    """Even and odd tokens: two keys, two values; each line has a difference of scores of its own.

    Beyond 64 tokens the odd ones below 40 count as even, so that a maximum can rise from one tile to the next. q is a
    multiple of 2^-4 of at most 2 and K one of 2^-3 below 2, so that q.k is exact in every order.
    """
    rng = np.random.default_rng(2)
    q = rng.integers(-32, 33, (case.rows, case.heads, case.dim)) / 16
    keys = rng.integers(-15, 16, (2, case.dim)) / 8
    values = rng.normal(0, 1, (2, case.dim))
    scale = np.float32(0.617 * np.sqrt(256 / case.dim))
    classes = _tokens(case) % 2
    if case.context > 64:
        classes[:40] = 0
    return Design(classes, *(formats.encode_e4m3(x) for x in (keys, values)), q.astype(np.float16), scale)


def tiles(case: Case) -> Design:
    """In each tile of 32 one score is 0, in a column of each line's own, and 31 are -8.0004; V depends on the column.

    That score's weight lies halfway between two f16 numbers, 1406 and 1407 times 2^-22, so that a sum of rounded
    weights shows. q.k is 0 or -25, exact.
    """
    columns = np.arange(case.dim) % _TILE
    keys = columns == np.arange(_TILE)[:, None]
    zero = np.arange(case.rows * case.heads).reshape(case.rows, case.heads, 1) % _TILE
    q = np.where(columns == zero, 0, -25 * _TILE / case.dim)
    values = np.random.default_rng(8).normal(0, 1, (_TILE, case.dim))
    scale = np.float32(-np.log(1406.5 * 2.0**-22) / (25 * float(K_SCALE)))
    encoded = (formats.encode_e4m3(x.astype(np.float64)) for x in (keys, values))
    return Design(_tokens(case) % _TILE, *encoded, q.astype(np.float16), scale)


# ---- V depends on the dimension alone: weights of any kind sum to 1 ---------------------------------------------


def dimensions(case: Case) -> Design:
    """As many different e4m3 numbers as there are dimensions, all 254 finite codes for D = 256; 7 random keys."""
    codes = np.flatnonzero(~np.isnan(formats.E4M3_F32))
    step = max(1, codes.size // case.dim)
    return _constant(case, codes[np.arange(case.dim) * step % codes.size].astype(np.uint8), 7)


def biased(case: Case) -> Design:
    """-4 to 4 over the dimensions, under the weights of 97 random keys."""
    return _constant(case, formats.encode_e4m3(np.linspace(-4, 4, case.dim)), 97)


def _constant(case: Case, value: NDArray[np.uint8], kinds: int) -> Design:
    rng = np.random.default_rng(kinds)
    q = rng.normal(0, 1, (case.rows, case.heads, case.dim)).astype(np.float16)
    keys = formats.encode_e4m3(rng.normal(0, 1, (kinds, case.dim)))
    scale = np.float32(3 / (np.sqrt(case.dim) * float(K_SCALE)))
    return Design(_tokens(case) % kinds, keys, np.tile(value, (kinds, 1)), q, scale)


def _tokens(case: Case) -> NDArray[np.intp]:
    return np.arange(case.context)


# ---- Measuring --------------------------------------------------------------------------------------------------


def output(got: Array, expected: Array64, limit: Array64) -> Measured:
    """How far `out` f16 [rows, heads, dim] lies outside the roundings of expected - limit and expected + limit.

    Rounding is monotone, so `out` lies between them if the rounded value is within `limit` of `expected`.
    """
    low, high = ((expected + side * limit).astype(np.float16).astype(np.float64) for side in (-1, 1))
    outside = np.maximum(np.maximum(low - got, got - high), 0)
    return Measured(outside, np.zeros_like(outside), ("out row", "head", "dim"))


def measured(dims: str, got: Array, expected: Array64, limit: Array64 | float) -> Measured:
    """|got - expected| and its limit. The first name of `dims` also names the array."""
    value = np.abs(got.astype(np.float64) - expected)
    return Measured(value, np.broadcast_to(limit, value.shape), tuple(dims.split(", ")))


def worst(*each: Measured) -> Measured:
    """The measure that uses most of its limit somewhere. One that exceeds its limit, or is NaN, comes first."""

    def used(one: Measured) -> float:
        with np.errstate(all="ignore"):
            share = np.where(one.value == 0, 0, one.value / one.limit)
            return float(np.where(one.value <= one.limit, share, np.inf).max(initial=0))

    return max(each, key=used)
