"""Whether one buffer is what a relation to the parent's permits, from the bits of both."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from audit import formats
from audit.checks.difference import absolute_difference, as_numbers
from audit.precision import unit_roundoff
from audit.relations import Bitwise, NoWorse, Relation, Ulps, Within
from audit.spec import Array, Buffer

LEAST_ROW = 32
"""The fewest elements of a row in which an error is more than chance."""
_LUCK = 6.0
"""How many median deviations from the median the error of a row may lie by chance: 4 standard deviations of a normal
distribution."""


class Judgement(NamedTuple):
    """The worst value beside its limit, and where: the index of an element, or the first indices that name a row."""

    value: float
    limit: float
    at: tuple[int, ...]
    outside: int  # elements or rows, and the whole
    whole: bool = False  # of the buffer is outside

    @property
    def used(self) -> float:
        """The used share of the limit; infinite where the value is not within it and no share says so."""
        if self.value <= self.limit:
            return self.value / self.limit if self.limit > 0 and self.value > 0 else 0.0
        share = self.value / self.limit if self.limit > 0 else np.inf
        return share if share > 1 else np.inf


def judge(
    relation: Relation,
    buffer: Buffer,
    mine: Array,
    theirs: Array,
    written: Array,
    expected: Array | None,
    nearby: Array | None = None,
) -> Judgement:
    """Judge the written elements of one buffer. `mine` and `theirs` hold its bits as unsigned integers in the buffer's
    shape; `expected` is the array of the reference that `NoWorse` names, `nearby` the same for moved inputs."""
    if isinstance(relation, NoWorse):
        if expected is None:
            raise ValueError(f"expected an array of reference {relation.reference} for {buffer.name}, but got none")
        return _no_worse(relation, buffer, mine, theirs, written, expected, nearby)
    at = np.flatnonzero((mine != theirs) & written)
    if not at.size:
        return Judgement(0.0, _least_limit(relation), (), 0)
    if isinstance(relation, Bitwise):
        return Judgement(float(at.size), 0.0, tuple(int(i) for i in np.unravel_index(int(at[0]), mine.shape)), at.size)
    value, limit = _elements(relation, buffer, mine.reshape(-1)[at], theirs.reshape(-1)[at])
    worst, outside = worst_of(value, limit)
    index = tuple(int(i) for i in np.unravel_index(int(at[worst]), mine.shape))
    return Judgement(float(value[worst]), float(limit[worst]), index, outside)


def worst_of(value: Array, limit: Array) -> tuple[int, int]:
    """The position of the value that uses most of its limit, and how many are outside; a NaN is outside."""
    with np.errstate(all="ignore"):
        within = value <= limit
        used = np.where(value == 0, 0.0, value / limit)
        used = np.where(within, used, np.where(used > 1, used, np.inf))
    return int(np.argmax(used)), int(np.count_nonzero(~within))


def _least_limit(relation: Relation) -> float:
    if isinstance(relation, Ulps):
        return float(relation.n)
    return float(relation.atol) if isinstance(relation, Within) else 0.0


def _elements(relation: Relation, buffer: Buffer, mine: Array, theirs: Array) -> tuple[Array, Array]:
    """The distance of each differing element, and its limit."""
    left, right, ulp = as_numbers(buffer, mine, theirs)
    zeros = np.zeros(mine.shape)
    if isinstance(relation, Within):
        with np.errstate(all="ignore"):
            value = absolute_difference(left, right).astype(np.float64)
            limit = relation.atol + relation.rtol * np.abs(right.astype(np.float64))
    else:
        allowed = relation.n if isinstance(relation, Ulps) else 0
        value = np.full(mine.shape, np.inf) if ulp is None else ulp.astype(np.float64)
        limit = zeros + allowed
    if ulp is not None:
        value = np.where(np.isnan(left) & np.isnan(right), 0.0, value)
        strange = (np.isfinite(left) != np.isfinite(right)) | (np.isinf(left) & np.isinf(right) & (left != right))
        value, limit = np.where(strange, np.inf, value), np.where(np.isfinite(limit), limit, 0.0)
    return value, limit


def _no_worse(
    relation: NoWorse,
    buffer: Buffer,
    mine: Array,
    theirs: Array,
    written: Array,
    expected: Array,
    nearby: Array | None,
) -> Judgement:
    left, right, _ = as_numbers(buffer, mine.reshape(-1), theirs.reshape(-1))
    wide = expected.astype(np.float64).reshape(-1)
    counted = written.reshape(-1)
    cut = row_dims(mine.shape)
    rows = prod(mine.shape[:cut])
    with np.errstate(all="ignore"):
        one, other = left.astype(np.float64), right.astype(np.float64)
        as_wrong = _agree(one, other) & ~np.isfinite(one)  # where both are as wrong, none is worse
        odd = ~np.isfinite(other) & ~_agree(other, wide)  # a parent's infinite error must permit nothing
        mine_errors = [*_relative(one, wide, counted & ~as_wrong, rows), *_relative(one, wide, counted & ~as_wrong, 1)]
        parents = [*_relative(other, wide, counted & ~odd, rows), *_relative(other, wide, counted & ~odd, 1)]
        least = np.full(rows + 1, unit_roundoff(buffer.dtype))
        if nearby is not None and nearby.shape == expected.shape:
            moved = nearby.astype(np.float64).reshape(-1)
            both = counted & np.isfinite(moved)
            least = np.maximum(least, [*_relative(moved, wide, both, rows), *_relative(moved, wide, both, 1)])
    value, limit = np.array(mine_errors), np.maximum(np.array(parents), least)
    limit[:rows] = np.maximum(limit[:rows], _usual(np.array(parents[:rows]) / least[:rows]) * least[:rows])
    limit *= relation.factor
    worst, outside = worst_of(value, limit)
    at = tuple(int(i) for i in np.unravel_index(worst, mine.shape[:cut])) if worst < rows and cut else ()
    return Judgement(float(value[worst]), float(limit[worst]), at, outside, not value[-1] <= limit[-1])


def _usual(errors: Array) -> float:
    """The greatest error that a row of the parent's may have by chance, from the errors of all its rows."""
    usual = float(np.median(errors))
    return usual + _LUCK * float(np.median(np.abs(errors - usual)))


def row_dims(shape: Sequence[int]) -> int:
    """How many leading dimensions name a row: the trailing ones that form it hold at least LEAST_ROW elements."""
    return next((at for at in reversed(range(len(shape))) if prod(shape[at:]) >= LEAST_ROW), 0)


def overall_error(dtype: str, got: Array, expected: Array, written: Array) -> float:
    """The relative L2 error of a whole buffer over the written elements; NaN or infinite where a result is wrong so."""
    with np.errstate(all="ignore"):
        stored = formats.stored_values(dtype, got).astype(np.float64).reshape(-1)
        return float(_relative(stored, expected.astype(np.float64).reshape(-1), written.reshape(-1), 1)[0])


def _relative(got: Array, expected: Array, counted: Array, rows: int) -> Array:
    """||got - expected|| / ||expected|| of each row, over the counted elements; the absolute norm where that is 0."""
    error = np.where(counted & ~_agree(got, expected), got - expected, 0.0).reshape(rows, -1)
    size = np.where(counted & np.isfinite(expected), expected, 0.0).reshape(rows, -1)
    scale = np.maximum(np.abs(size).max(axis=1, initial=0.0, keepdims=True), np.finfo(np.float64).tiny)
    norm = np.linalg.norm(size / scale, axis=1)
    relative = np.linalg.norm(error / scale, axis=1)
    return np.asarray(np.where(norm > 0, relative / np.where(norm > 0, norm, 1), np.linalg.norm(error, axis=1)))


def _agree(one: Array, other: Array) -> Array:
    return np.asarray((one == other) | (np.isnan(one) & np.isnan(other)))
