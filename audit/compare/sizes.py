"""Sizes in words: those of buffers that are only written, and those of launches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from audit.compare.values import Values
from audit.errors import PlanError


class Room(msgspec.Struct, frozen=True):
    """The size of a buffer that is only written.

    extents   as for `extents`, in elements of the type that OLD declares; or the name of a buffer that it is like
    sample    an array of its shape and type, instead
    """

    name: str
    extents: tuple[str, ...] = ()
    sample: Any = None


def rooms(option: str, words: Sequence[str]) -> dict[str, Room]:
    """Each `y=7,33`, `y=rows,n` or `y=x`, by name. Raises PlanError for any other form."""
    found = {}
    for word in words:
        name, equals, size = word.partition("=")
        parts = tuple(part.strip() for part in size.split(","))
        if not name.strip() or not equals or not all(parts):
            raise PlanError(f"{option}: expected NAME=EXTENT,EXTENT or NAME=OTHER, but got {word!r}")
        found[name.strip()] = Room(name.strip(), parts)
    return found


def shape_of(room: Room, lanes: int, values: Values, option: str) -> tuple[int, ...]:
    """The shape of a buffer. Raises PlanError for words that are no size."""
    if (other := sample_of(room, values)) is not None:
        return tuple(np.shape(other))
    shape = extents(f"{option} {room.name}", room.extents, values)
    return shape if lanes == 1 else (*shape, lanes)


def sample_of(room: Room, values: Values) -> Any:
    """The array whose shape and type a buffer has; None where its size is in numbers."""
    if room.sample is not None:
        return room.sample
    named = values.get(room.extents[0]) if len(room.extents) == 1 else None
    return named if isinstance(named, np.ndarray) else None


def extents(option: str, words: Sequence[str], values: Values) -> tuple[int, ...]:
    """Each an integer, an integer input, a product of these, or a quotient, which rounds up: `rows*n/128`."""
    return tuple(_extent(option, str(word).strip(), values) for word in words)


def _extent(option: str, word: str, values: Values) -> int:
    parts = [_product(part, values) for part in word.split("/")]
    numbers = [part for part in parts if part is not None]
    if len(numbers) != len(parts) or len(parts) > 2 or 0 in numbers[1:] or min(numbers) < 0:
        known = ", ".join(name for name in values if _integer(name, values) is not None) or "none"
        raise PlanError(
            f"{option}: expected an integer, an integer of inputs() ({known}), A*B, or A/B, which rounds up, "
            f"but got {word!r}"
        )
    return numbers[0] if len(numbers) == 1 else -(-numbers[0] // numbers[1])


def _product(words: str, values: Values) -> int | None:
    factors = [_integer(word.strip(), values) for word in words.split("*")]
    known = [factor for factor in factors if factor is not None]
    return math.prod(known) if len(known) == len(factors) else None


def _integer(word: str, values: Values) -> int | None:
    if word.isascii() and word.isdigit():
        return int(word)
    value = values.get(word)
    integral = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return int(value) if integral and value is not None else None
