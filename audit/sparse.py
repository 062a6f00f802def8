"""Arrays far larger than the memory they need: storage in a file with holes, of which only the data are visited.

A hole reads as zeros and takes neither memory nor disk, as long as nobody reads it through the mapping. Whoever
copies, hashes or compares an array that may be one goes through `blocks`.
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
    """A C-contiguous array over a mapped file. A view of one is an ordinary array, whose holes nobody knows of."""

    descriptor: int | None = None
    start: int = 0  # byte offset of the first element in the file


def zeros(shape: tuple[int, ...], dtype: DTypeLike = np.uint8) -> SparseArray:
    """A writable array of zeros over a temporary file that has no name and goes with the array.

    Only what is written takes space, in pages of 4,096 bytes. Raises OSError where the file cannot be made.
    """
    with tempfile.TemporaryFile(prefix="kernel-audit-") as file:
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        os.truncate(file.fileno(), max(size, 1))  # an empty file cannot be mapped
        return _over(os.dup(file.fileno()), shape, np.dtype(dtype), 0, mmap.ACCESS_WRITE)


def mapped(path: Path, start: int, size: int) -> SparseArray:
    """`size` bytes of a file from byte `start`, u1, read-only; they stay readable when the name is removed."""
    return _over(os.open(path, os.O_RDONLY | os.O_CLOEXEC), (size,), np.dtype(np.uint8), start, mmap.ACCESS_READ)


def blocks(array: NDArray[Any]) -> Iterator[tuple[int, Bytes]]:
    """(byte position, u1) of the parts of a C-contiguous array, ascending, at multiples of BLOCK.

    Of a SparseArray those that hold a byte other than zero, however its file keeps them; of others all.
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
    """Positions, ascending, of the bytes that differ between two arrays of equal size, block by block."""
    if left.nbytes != right.nbytes:
        raise ValueError(f"expected arrays of equal size, but got {left.nbytes} and {right.nbytes} bytes")
    mine, theirs = _reader(left), _reader(right)
    for at in sorted({at for array in (left, right) for at, _ in blocks(array)}):
        if (positions := np.flatnonzero(mine(at) != theirs(at))).size:
            yield at + positions


def _over(descriptor: int, shape: tuple[int, ...], dtype: np.dtype[Any], start: int, access: int) -> SparseArray:
    """Takes over the descriptor, which asks the file system where the holes are: the mapping does not know."""
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
    """A function that gives the block at a position: a view, or of a SparseArray a copy from its file, since whatever
    is read through a mapping stays in memory."""
    if not array.flags.c_contiguous:
        raise ValueError(f"expected a C-contiguous array, but got strides {array.strides} of shape {array.shape}")
    if isinstance(array, SparseArray) and (descriptor := array.descriptor) is not None:
        start, size = array.start, array.nbytes
        return lambda at: np.frombuffer(os.pread(descriptor, min(BLOCK, size - at), start + at), np.uint8)
    flat = np.asarray(array).reshape(-1).view(np.uint8)
    return lambda at: flat[at : at + BLOCK]


def _extents(array: SparseArray, descriptor: int) -> Iterator[tuple[int, int]]:
    """Byte ranges of the array that its file keeps, ascending; one range where the file system knows no holes."""
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
