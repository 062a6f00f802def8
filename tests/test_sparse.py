"""Sparse arrays: only what was written is visited, and nothing that was written is missed."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from audit import sparse
from audit.sparse import BLOCK, SparseArray

GIB = 1 << 30


def written(array: SparseArray) -> list[int]:
    return [at for at, _ in sparse.blocks(array)]


def disk(array: SparseArray) -> int:
    """Bytes that the array's file takes."""
    assert array.descriptor is not None
    return os.fstat(array.descriptor).st_blocks * 512


def test_what_is_written_is_visited_and_nothing_else() -> None:
    array = sparse.zeros((5 * GIB,))
    for at in (0, 3 * GIB - 1, 3 * GIB, 5 * GIB - 1):
        array[at] = 7
    assert written(array) == [0, 3 * GIB - BLOCK, 3 * GIB, 5 * GIB - BLOCK]
    assert sum(int(block.sum()) for _, block in sparse.blocks(array)) == 28
    assert disk(array) <= 1 << 20


def test_a_block_of_zeros_is_a_hole_wherever_the_file_keeps_it() -> None:
    array = sparse.zeros((4 * BLOCK,))
    array[BLOCK : 2 * BLOCK] = 0
    array[3 * BLOCK] = 1
    assert disk(array) >= BLOCK
    assert written(array) == [3 * BLOCK]


def test_blocks_of_an_ordinary_array_are_all_of_it() -> None:
    array = np.arange(BLOCK, dtype=np.uint32)
    found = list(sparse.blocks(array))
    assert [at for at, _ in found] == [0, BLOCK, 2 * BLOCK, 3 * BLOCK]
    assert b"".join(block.tobytes() for _, block in found) == array.tobytes()


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (3, 5)])
def test_small_shapes(shape: tuple[int, ...]) -> None:
    array = sparse.zeros(shape, np.float32)
    assert array.shape == shape
    assert written(array) == []
    array[...] = 1
    assert b"".join(block.tobytes() for _, block in sparse.blocks(array)) == np.ones(shape, np.float32).tobytes()


def test_a_view_is_an_ordinary_array() -> None:
    array = sparse.zeros((3 * BLOCK,))
    array[0] = 1
    assert [at for at, _ in sparse.blocks(array[BLOCK:])] == [0, BLOCK]


def test_strides_that_no_file_could_have_are_refused() -> None:
    with pytest.raises(ValueError, match="C-contiguous"):
        list(sparse.blocks(np.zeros((4, 4)).T))


def test_a_mapped_file_outlives_its_name(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"abc" + bytes(BLOCK) + b"xyz")
    array = sparse.mapped(path, 1, BLOCK + 4)
    path.unlink()
    assert array.tobytes() == b"bc" + bytes(BLOCK) + b"xy"
    assert written(array) == [0, BLOCK]
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


@pytest.mark.parametrize("at", [0, BLOCK - 1, BLOCK, 2 * GIB + 5, 3 * GIB - 1])
def test_one_byte_that_differs_is_found(at: int) -> None:
    left, right = sparse.zeros((3 * GIB,)), sparse.zeros((3 * GIB,))
    left[7] = right[7] = 9
    assert list(sparse.differing(left, right)) == []
    right[at] = 3
    assert [positions.tolist() for positions in sparse.differing(left, right)] == [[at]]
    assert [positions.tolist() for positions in sparse.differing(right, left)] == [[at]]


def test_a_sparse_and_an_ordinary_array_compare_by_value() -> None:
    left, right = sparse.zeros((2 * BLOCK + 3,)), np.zeros(2 * BLOCK + 3, np.uint8)
    assert list(sparse.differing(left, right)) == []
    right[-1] = 1
    assert [positions.tolist() for positions in sparse.differing(left, right)] == [[2 * BLOCK + 2]]
    with pytest.raises(ValueError, match="equal size"):
        next(sparse.differing(left, right[:-1]))


def test_descriptors_go_with_their_arrays() -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        sparse.zeros((BLOCK,))[0] = 1
    assert len(os.listdir("/proc/self/fd")) == before
