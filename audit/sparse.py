"""Arrays far larger than the memory that they take: a file with holes holds the data.

A hole reads as zeros. It takes neither memory nor disk until something reads it through the mapping, so code that
copies, hashes or compares such an array uses `blocks`, which visits the data alone.
"""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

BLOCK = 1 << 20
Bytes = NDArray[np.uint8]


class SparseArray(np.ndarray[Any, np.dtype[Any]]):
    """A C-contiguous array over a mapped file. A view of it is an ordinary array, which does not know the holes."""

    descriptor: int | None = None
    start: int = 0  # byte offset of the first element in the file


def zeros(shape: tuple[int, ...], dtype: DTypeLike = np.uint8) -> SparseArray:
    """A writable array of zeros over a temporary file, which disappears with the array.

    Only written pages of 4,096 bytes take space. Raises OSError where the file cannot be made.
    """
    with tempfile.TemporaryFile(prefix="kernel-audit-") as file:
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        os.truncate(file.fileno(), max(size, 1))  # an empty file cannot be mapped
        return _over(os.dup(file.fileno()), shape, np.dtype(dtype), 0, mmap.ACCESS_WRITE)


def mapped(path: Path, start: int, size: int) -> SparseArray:
    """`size` bytes of a file from byte `start`, u8, read-only. They stay readable after the file is removed."""
    return _over(os.open(path, os.O_RDONLY | os.O_CLOEXEC), (size,), np.dtype(np.uint8), start, mmap.ACCESS_READ)


def blocks(array: NDArray[Any]) -> Iterator[tuple[int, Bytes]]:
    """(byte position, u8 bytes) of the parts of a C-contiguous array, ascending, at multiples of BLOCK.

    Blocks of a SparseArray that hold nothing but zeros are left out. Raises ValueError for other strides.
    """
    read = _reader(array)
    if not isinstance(array, SparseArray) or array.descriptor is None:
        yield from ((at, read(at)) for at in range(0, array.nbytes, BLOCK))
        return
    done = 0
    for start, stop in _extents(array, array.descriptor):
        for at in range(max(done, start // BLOCK * BLOCK), stop, BLOCK):
            done = at + BLOCK
            block = read(at)
            if block.max() != 0:
                yield at, block


def differing(left: NDArray[Any], right: NDArray[Any]) -> Iterator[NDArray[np.int64]]:
    """Positions of the bytes that differ between two arrays, ascending, block by block.

    Raises ValueError for arrays of unequal size.
    """
    if left.nbytes != right.nbytes:
        raise ValueError(f"expected arrays of equal size, but got {left.nbytes} and {right.nbytes} bytes")
    mine, theirs = _reader(left), _reader(right)
    for at in sorted({at for array in (left, right) for at, _ in blocks(array)}):
        if (positions := np.flatnonzero(mine(at) != theirs(at))).size:
            yield at + positions


def _over(descriptor: int, shape: tuple[int, ...], dtype: np.dtype[Any], start: int, access: int) -> SparseArray:
    """Own the descriptor, which is needed to find the holes: the mapping does not know them."""
    try:
        buffer = mmap.mmap(descriptor, 0, access=access)
        array = SparseArray(shape, dtype, buffer, start)
    except BaseException:
        os.close(descriptor)
        raise
    array.descriptor, array.start = descriptor, start
    weakref.finalize(array, os.close, descriptor)
    return array


def _reader(array: NDArray[Any]) -> Callable[[int], Bytes]:
    """A function that returns the block at a position: a view, or a copy from the file of a SparseArray, because
    bytes that are read through a mapping stay in memory."""
    if not array.flags.c_contiguous:
        raise ValueError(f"expected a C-contiguous array, but got strides {array.strides} of shape {array.shape}")
    if isinstance(array, SparseArray) and (descriptor := array.descriptor) is not None:
        start, size = array.start, array.nbytes
        return lambda at: np.frombuffer(os.pread(descriptor, min(BLOCK, size - at), start + at), np.uint8)
    flat = np.asarray(array).reshape(-1).view(np.uint8)
    return lambda at: flat[at : at + BLOCK]


def _extents(array: SparseArray, descriptor: int) -> Iterator[tuple[int, int]]:
    """Byte ranges of the array that its file stores, ascending; one range where the file system has no holes."""
    at, end = array.start, array.start + array.nbytes
    while at < end:
        try:
            begin = os.lseek(descriptor, at, os.SEEK_DATA)
            stop = os.lseek(descriptor, begin, os.SEEK_HOLE)
        except OSError as error:
            if error.errno != errno.ENXIO:  # ENXIO: nothing but a hole from here on
                yield at - array.start, array.nbytes
            return
        if begin >= end:
            return
        yield begin - array.start, min(stop, end) - array.start
        at = stop
