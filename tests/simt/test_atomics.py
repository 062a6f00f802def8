"""Atomics across blocks that run on several OS threads."""

from __future__ import annotations

from functools import reduce
from pathlib import Path

import numpy as np
import pytest

from audit.compile.host import HostBuild

from .programs import build, launch

BLOCKS, SIZE = 200, 64
THREADS = BLOCKS * SIZE


@pytest.fixture(scope="module")
def program() -> HostBuild:
    return build("atomics", ["sums", "extremes", "tickets", "exchange", "hammer"])


@pytest.mark.parametrize(("threads", "seed"), [(1, 0), (4, 0), (4, 9)])
def test_sums(program: HostBuild, tmp_path: Path, threads: int, seed: int) -> None:
    kinds = (np.int32, np.uint32, np.uint64, np.float32, np.float64)
    arrays = [np.zeros(1, kind) for kind in kinds]
    ended = launch(program, tmp_path, "sums", BLOCKS, SIZE, *arrays, threads=threads, seed=seed)
    got = [ended.buffers[f"b{i}"][0] for i in range(5)]
    assert got == [
        sum(t % 7 - 3 for t in range(THREADS)),
        (-THREADS) % 2**32,
        THREADS << 33,
        THREADS,
        THREADS / 2,
    ]


def test_nothing_is_lost_between_os_threads(program: HostBuild, tmp_path: Path) -> None:
    arrays = (np.zeros(1, np.int32), np.zeros(1, np.float32))
    ended = launch(program, tmp_path, "hammer", 64, 32, *arrays, "i32:1000", threads=8)
    assert [ended.buffers["b0"][0], ended.buffers["b1"][0]] == [64 * 32 * 1000] * 2


def test_extremes(program: HostBuild, tmp_path: Path) -> None:
    i = np.array([5, -5, 7], np.int32)
    u = np.array([2**32 - 1, 0, 2**32 - 1, 0, 0, 0, 0], np.uint32)
    ended = launch(program, tmp_path, "extremes", BLOCKS, SIZE, i, u, np.zeros(1, np.uint64), threads=4)
    last = THREADS - 1
    assert ended.buffers["b0"].tolist() == [-last, last, 7 - 2 * THREADS]
    xor = reduce(lambda a, b: a ^ b, range(THREADS))
    down = (-THREADS) % 10
    assert ended.buffers["b1"].tolist() == [0xF0000000 - last, 0xF0000000 + last, 0, 31, xor, THREADS % 10, down]
    assert ended.buffers["b2"].tolist() == [(1 << 40) + last]


@pytest.mark.parametrize("threads", [1, 4])
def test_the_last_block_sees_what_all_wrote(program: HostBuild, tmp_path: Path, threads: int) -> None:
    taken, one = np.zeros(THREADS, np.int32), np.zeros(1, np.int32)
    ended = launch(program, tmp_path, "tickets", BLOCKS, SIZE, taken, one, one, threads=threads)
    assert ended.buffers["b2"].tolist() == [THREADS]
    assert np.bincount(ended.buffers["b0"], minlength=BLOCKS + 1)[1:].tolist() == [SIZE] * BLOCKS


def test_exchange_gives_the_old_value(program: HostBuild, tmp_path: Path) -> None:
    ended = launch(program, tmp_path, "exchange", 1, 32, np.zeros(33, np.float32), np.zeros(33, np.int32), seed=3)
    for got in (ended.buffers["b0"], ended.buffers["b1"]):
        assert sorted(got.tolist()) == list(range(33))
