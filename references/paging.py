"""Reading tokens from a paged cache: token t lies at storage[table[0, t // page], t % page]."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit import InputError, formats


def gather_codes(
    storage: NDArray[np.uint8], table: NDArray[np.int32], stop: int, *, start: int = 0
) -> NDArray[np.uint8]:
    """The e4m3 codes u8[stop - start, D] of tokens start..stop-1, a copy.

    storage is u8[pages, page, 1, D] with any strides, table i32[1, n]. Nothing else of either is read: no
    entry from ceil(stop / page) on and no token from stop on. Raises InputError for an entry that is no page.
    """
    pages, page = storage.shape[:2]
    token = np.arange(start, stop)
    slot = token // page
    physical = table[0, slot]
    outside = (physical < 0) | (physical >= pages)
    if outside.any():
        first = int(np.argmax(outside))
        raise InputError(
            f"table[0, {slot[first]}]: expected a page from 0 to {pages - 1}, got {physical[first]} (token"
            f" {token[first]}); give every visible token's entry a page of the storage"
        )
    return np.asarray(storage[physical, token % page, 0])


def gather_tokens(
    storage: NDArray[np.uint8],
    table: NDArray[np.int32],
    stop: int,
    *,
    start: int = 0,
    dtype: Any = np.float64,
) -> NDArray[Any]:
    """The decoded values [stop - start, D] of tokens start..stop-1, exact in f16, f32 and f64.

    Reads what `gather_codes` reads, and raises what it raises.
    """
    return formats.E4M3_F32.astype(dtype)[gather_codes(storage, table, stop, start=start)]
