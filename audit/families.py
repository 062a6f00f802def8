"""Input families: further inputs of a case, made from those that the operator generates.

A family changes the floating-point buffers that a kernel reads, and integer ones that `Families.buffers` names. What
holds of the generated array still holds of the changed one: its range, and whether it is sorted, symmetric, constant,
integer-valued or normalised. A family that would break that leaves the buffer alone.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from audit import formats, sparse
from audit.spec import Array, Buffer, Case

FLOATS: Mapping[str, tuple[float, float, float]] = {
    "f64": (2.0**-1074, 2.0**-40, float(np.finfo(np.float64).max)),
    "f32": (2.0**-149, 2.0**-40, float(np.finfo(np.float32).max)),
    "f16": (2.0**-24, 2.0**-12, 65504.0),
    "bf16": (2.0**-133, 2.0**-40, 2.0**127 * 1.9921875),
    "e4m3": (2.0**-9, 2.0**-6, formats.E4M3_MAX),
    "e5m2": (2.0**-16, 2.0**-10, 57344.0),
}
"""dtype -> the least subnormal number, the least share of the largest element in `wide`, and the largest number. The
cube of the least share is still a normal number, so that no right kernel underflows."""
_SUBNORMALS: Mapping[str, int] = {"f64": 1 << 20, "f32": 1 << 20, "f16": 1000, "bf16": 120, "e4m3": 7, "e5m2": 4}
_SEED = re.compile(r"seed([2-9]|[1-9]\d{1,3})")
_FEW, _SPARSE = 16, 0.05

Transformation = Callable[[Array, np.random.Generator, str], Array]


@dataclass(frozen=True)
class Family:
    """One family.

    meaning  what it does to a buffer, in words
    change   f64 values in the dimensions of the buffer, a generator and the buffer's dtype -> f64 values
    outside  its values may leave the range of the generated ones: it accuses by comparison alone
    """

    meaning: str
    change: Transformation
    outside: bool = False


def _negative(values: Array, _rng: np.random.Generator, _dtype: str) -> Array:
    return np.asarray(np.maximum(-np.abs(values), values.min()))


def _ties(values: Array, rng: np.random.Generator, _dtype: str) -> Array:
    ordered = np.sort(values, axis=None)
    few = ordered[[int(share * (ordered.size - 1)) for share in (0.1, 0.5, 0.9)]]
    return np.asarray(rng.choice(few, values.shape))


def _huge(values: Array, rng: np.random.Generator, dtype: str) -> Array:
    changed = np.array(values)
    rows = changed.reshape(-1, changed.shape[-1]) if changed.ndim else changed.reshape(1, 1)
    most = FLOATS[dtype][2] / 4 if dtype in FLOATS else np.inf
    at = rng.integers(0, rows.shape[1], rows.shape[0])
    rows[np.arange(rows.shape[0]), at] = min(1000 * float(np.abs(values).max()), most)
    return changed


def _denormal(values: Array, rng: np.random.Generator, dtype: str) -> Array:
    return np.asarray(np.sign(values) * rng.integers(1, _SUBNORMALS[dtype], values.shape) * FLOATS[dtype][0])


def _alternating(values: Array, _rng: np.random.Generator, _dtype: str) -> Array:
    signs = np.where(np.arange(values.shape[-1] if values.ndim else 1) % 2, -1.0, 1.0)
    return np.asarray(np.clip(np.abs(values) * signs, values.min(), values.max()))


def _wide(values: Array, rng: np.random.Generator, dtype: str) -> Array:
    share = np.exp2(rng.uniform(np.log2(FLOATS[dtype][1]), 0, values.shape))
    spread = np.sign(values) * float(np.abs(values).max()) * share
    return np.asarray(np.clip(spread, values.min(), values.max()))


def _close(values: Array, rng: np.random.Generator, _dtype: str) -> Array:
    low, high = float(values.min()), float(values.max())
    centre = high if abs(high) >= abs(low) else low
    towards = (low + high) / 2 - centre
    return np.asarray(centre + rng.uniform(0, 1 / 4, values.shape) * towards)


def _ramp(values: Array, _rng: np.random.Generator, _dtype: str) -> Array:
    line = np.linspace(values.min(), values.max(), values.shape[-1] if values.ndim else 1)
    return np.array(np.broadcast_to(line, values.shape))


def _masked(values: Array, rng: np.random.Generator, _dtype: str) -> Array:
    keep = np.asarray(rng.random(values.shape) < 0.5)
    if values.ndim:
        keep.reshape(-1, values.shape[-1])[:, 0] |= ~keep.any(axis=-1).reshape(-1)
    return np.where(keep, values, -np.inf)


FAMILIES: Mapping[str, Family] = {
    "negative": Family("every element -|x|", _negative),
    "ties": Family("three distinct values of its own", _ties),
    "zeros": Family("zeros", lambda values, _rng, _dtype: np.zeros_like(values)),
    "huge": Family("one element a row 1000 times the largest", _huge, outside=True),
    "close": Family("all elements near the largest, within an eighth of the range", _close),
    "alternating": Family("|x| with alternating signs", _alternating),
    "wide": Family("exponents spread over what the dtype holds", _wide),
    "ones": Family("ones", lambda values, _rng, _dtype: np.ones_like(values)),
    "denormal": Family("subnormal numbers", _denormal, outside=True),
    "ramp": Family("rows that rise from the least to the largest", _ramp),
    "masked": Family("rows of which half is -inf", _masked, outside=True),
}
"""Every family by name, beside `seed2`, `seed3` and so on; the most useful first."""
BY_NAME_ONLY = frozenset({"masked", "ramp"})
"""The families that run only where somebody names them."""


def is_family(name: str) -> bool:
    """Whether a family has this name, which may be followed by the one buffer that it changes: `negative:x`."""
    return name.partition(":")[0] in FAMILIES or _SEED.fullmatch(name) is not None


def outside(name: str) -> bool:
    """Whether the values of a family may leave the range of the generated ones."""
    family = FAMILIES.get(name.partition(":")[0])
    return family is not None and family.outside


def is_draw(name: str) -> bool:
    """Whether a family is another draw of the operator's `inputs`: `seed2`."""
    return _SEED.fullmatch(name) is not None


def drawn_by(case: Case, name: str) -> np.random.Generator:
    """The generator of a family in a case."""
    digest = hashlib.sha256(f"{case.id}/{name}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "little"))


def changed_arrays(name: str, case: Case, buffers: Iterable[Buffer], arrays: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays that a family changes, each in the dtype and shape of the given one.

    `arrays` are the inputs as their buffers hold them; a value of the result is one that the buffer's dtype holds.
    """
    found: dict[str, Array] = {}
    family, _, only = name.partition(":")
    dtypes = {buffer.name: buffer.dtype for buffer in buffers}
    for key, stored in arrays.items():
        if isinstance(stored, sparse.SparseArray) or not stored.size or only not in ("", key):
            continue
        changed = _changed(family, drawn_by(case, family), stored, dtypes[key])
        if changed is not None:
            found[key] = changed
    return _without_broken_order(arrays, found, dtypes)


def _changed(name: str, rng: np.random.Generator, stored: Array, dtype: str) -> Array | None:
    values = formats.stored_values(dtype, stored).astype(np.float64)
    family = FAMILIES[name]
    whole = dtype not in FLOATS
    if dtype == "bool" or not np.isfinite(values).all() or (whole and name in ("denormal", "masked", "wide")):
        return None
    with np.errstate(all="ignore"):
        wanted = family.change(values, rng, dtype)
        new = np.array(_stored_as(dtype, wanted, stored))
        read = formats.stored_values(dtype, new).astype(np.float64)
        new[read == 0] = 0  # no new -0
        kept = keeps(values, read, outside=family.outside)
    if np.array_equal(read, values) or not kept or (name == "masked" and not np.isinf(read).any()):
        return None
    return new.view(stored.dtype)  # codes where the operator gives codes


def _stored_as(dtype: str, values: Array, like: Array) -> Array:
    if dtype in FLOATS:
        return np.asarray(formats.encoded(dtype, values))
    kind = ml_dtypes.iinfo(like.dtype)  # type: ignore[no-untyped-call]
    return np.clip(np.rint(values), kind.min, kind.max).astype(like.dtype)


def keeps(values: Array, changed: Array, *, outside: bool = False) -> bool:
    """Whether what holds of an array, f64 and finite, holds of a changed one.

    `outside` permits values beyond the range of the former, where it has both signs.
    """
    if outside:
        if values.min() >= 0 or values.max() <= 0:
            return False
    elif changed.min() < values.min() or changed.max() > values.max():
        return False
    return all(not holds(values) or holds(changed) for holds in _PROPERTIES) and not any(_lost(values, changed))


def _lost(values: Array, changed: Array) -> Iterator[bool]:
    """Whether a set of few values, or the places of zeros, is not kept."""
    distinct = np.unique(values)
    if distinct.size <= _FEW and distinct.size * 4 <= values.size:
        yield not np.isin(changed, distinct).all()
    zero = values == 0
    whole = _integer_valued(values)
    yield not whole and zero.mean() > _SPARSE and bool((changed[zero] != 0).any())


def _sorted(values: Array) -> bool:
    return bool(values.ndim and values.shape[-1] >= 3 and (np.diff(values, axis=-1) >= 0).all())


def _falling(values: Array) -> bool:
    return _sorted(-values)


def _symmetric(values: Array) -> bool:
    square = values.ndim >= 2 and values.shape[-1] == values.shape[-2] > 1
    return bool(square and np.array_equal(values, np.swapaxes(values, -1, -2)))


def _diagonally_dominant(values: Array) -> bool:
    if values.ndim < 2 or not values.shape[-1] == values.shape[-2] > 1:
        return False
    size = np.abs(values)
    diagonal = np.diagonal(size, axis1=-2, axis2=-1)
    return bool((2 * diagonal >= size.sum(axis=-1)).all())


def _normalised(power: int, axis: int) -> Callable[[Array], bool]:
    def holds(values: Array) -> bool:
        if values.ndim < -axis or values.shape[axis] < 2:
            return False
        return bool((np.abs((values**power).sum(axis=axis) - 1) < 1e-2).all())

    return holds


def _constant(values: Array) -> bool:
    return bool((values == values.flat[0]).all())


def _integer_valued(values: Array) -> bool:
    return bool((values == np.rint(values)).all())


def _distinct_integers(values: Array) -> bool:
    return values.size > 1 and _integer_valued(values) and np.unique(values).size == values.size


_PROPERTIES: tuple[Callable[[Array], bool], ...] = (
    _sorted,
    _falling,
    _symmetric,
    _diagonally_dominant,
    _normalised(1, -1),
    _normalised(1, -2),
    _normalised(2, -1),
    _normalised(2, -2),
    _constant,
    _integer_valued,
    _distinct_integers,
)


def _without_broken_order(
    arrays: Mapping[str, Array], changed: Mapping[str, Array], dtypes: Mapping[str, str]
) -> dict[str, Array]:
    """The changed arrays; none of two that are a lower and an upper limit, or equal, and would no longer be."""
    values = {key: formats.stored_values(dtypes[key], stored) for key, stored in arrays.items()}
    after = {key: formats.stored_values(dtypes[key], changed.get(key, stored)) for key, stored in arrays.items()}
    broken: set[str] = set()
    for low in arrays:
        for high in arrays:
            if low != high and values[low].shape == values[high].shape and values[low].size >= 8:
                with np.errstate(all="ignore"):
                    if (values[low] <= values[high]).all() and not (after[low] <= after[high]).all():
                        broken |= {low, high}
    return {key: array for key, array in changed.items() if key not in broken}


def moved(stored: Array, dtype: str, rng: np.random.Generator | None) -> Array:
    """Every floating-point element one ulp up or down: drawn for each element, or, without a generator, for each value.

    Zeros, infinities and NaN stay, and so does an array of at most two values, such as a mask.
    """
    array = np.ascontiguousarray(stored)
    if dtype not in FLOATS or not array.size or _few(array):
        return stored
    codes = array.view(f"u{array.dtype.itemsize}")
    values = formats.stored_values(dtype, array)
    if rng is None:
        mixed = (codes.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)
        up = (mixed & np.uint64(1)).astype(bool)
    else:
        up = rng.random(array.shape) < 0.5
    one = codes.dtype.type(1)
    stepped = np.where(up, codes + one, codes - one)
    kept = ~np.isfinite(values) | (values == 0)
    beyond = ~np.isfinite(formats.stored_values(dtype, stepped.view(array.dtype)))
    return np.asarray(np.where(kept | beyond, codes, stepped).view(array.dtype).reshape(array.shape))


def _few(array: Array) -> bool:
    return (
        bool(((array == array.flat[0]) | (array == array.flat[-1])).all()) and array.size > 2 and not _constant(array)
    )
