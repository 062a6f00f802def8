"""Barriers, exits, schedules, and the errors that name where threads stand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from audit.compile.host import HostBuild

from .programs import build, launch, line

ENTRIES = [
    "reverse",
    "early_exit",
    "votes",
    "divergent",
    "against_warp",
    "mixed_kinds",
    "order",
    "asserts",
    "prints",
    "spins",
    "recursion",
    "stray",
    "misaligned",
    "divides",
    "rounding_mode",
    "waits",
]


@pytest.fixture(scope="module")
def program() -> HostBuild:
    return build("barriers", ENTRIES)


@pytest.mark.parametrize("seed", [0, 1, 99])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_barrier_orders_shared_memory(program: HostBuild, tmp_path: Path, seed: int, threads: int) -> None:
    data = np.arange(1000 * 256, dtype=np.int32)
    ended = launch(program, tmp_path, "reverse", 1000, 256, data, data * 0, seed=seed, threads=threads)
    assert ended.code == 0, ended.errors
    assert np.array_equal(ended.buffers["b1"], data.reshape(1000, 256)[:, ::-1].ravel())
    assert ended.report[1:] == ["launch 0 reverse 1000 256", "done"]


def test_threads_that_left_are_not_waited_for(program: HostBuild, tmp_path: Path) -> None:
    ended = launch(program, tmp_path, "early_exit", 1, 100, np.zeros(100, np.int32))
    threads = np.arange(100)
    assert ended.buffers["b0"].tolist() == np.where(threads % 3 == 0, 0, 66).tolist()


def test_barriers_that_count(program: HostBuild, tmp_path: Path) -> None:
    ended = launch(program, tmp_path, "votes", 1, 128, np.zeros(128, np.int32))
    assert set(ended.buffers["b0"].tolist()) == {26 + 1000 + 10000}


def test_a_divergent_barrier_names_both_places(program: HostBuild, tmp_path: Path) -> None:
    ended = launch(program, tmp_path, "divergent", (2, 3), 64, np.zeros(64, np.int32))
    assert ended.code == 3
    assert ended.error.startswith("error barrier kernel divergent, block (0, 0, 0): ")
    assert f"threads 0-39 wait at __syncthreads ({line('barriers', 'first place')})" in ended.error
    assert f"threads 40-63 wait at __syncthreads ({line('barriers', 'second place')})" in ended.error
    assert ended.error in ended.errors


def test_a_block_barrier_against_a_warp_barrier(program: HostBuild, tmp_path: Path) -> None:
    ended = launch(program, tmp_path, "against_warp", 1, 32, np.zeros(32, np.int32))
    assert ended.error.startswith("error barrier kernel against_warp")
    assert f"thread 5 waits at __syncthreads ({line('barriers', 'third place')})" in ended.error
    assert "threads 0-4, 6-31 wait at __syncwarp" in ended.error


def test_different_kinds_of_barrier_do_not_meet(program: HostBuild, tmp_path: Path) -> None:
    ended = launch(program, tmp_path, "mixed_kinds", 1, 32, np.zeros(32, np.int32))
    assert "__syncthreads_count" in ended.error


def test_seed_0_runs_in_order_and_others_permute(program: HostBuild, tmp_path: Path) -> None:
    orders = []
    for seed in (0, 1, 2, 1):
        ended = launch(program, tmp_path, "order", 1, 96, np.zeros(192, np.int32), np.zeros(1, np.int32), seed=seed)
        orders.append(ended.buffers["b0"][:96].tolist())
        assert set(ended.buffers["b0"][96:].tolist()) == {96}
    assert orders[0] == list(range(96))
    assert orders[1] == orders[3] != orders[2]
    assert sorted(orders[1]) == sorted(orders[2]) == orders[0] != orders[1]


def test_assert_names_line_block_and_thread(program: HostBuild, tmp_path: Path) -> None:
    assert launch(program, tmp_path, "asserts", 2, 8, "i32:8").code == 0
    ended = launch(program, tmp_path, "asserts", 2, 8, "i32:6")
    assert ended.code == 3
    where = f"{line('barriers', 'assert(')}: assertion"
    assert ended.error.startswith("error assert kernel asserts, block (0, 0, 0), thread (6, 0, 0): " + where)


def test_printf(program: HostBuild, tmp_path: Path) -> None:
    assert launch(program, tmp_path, "prints", 2, 8).output == "".join(
        f"block {block} thread 3: 1.500 text\n" for block in (0, 1)
    )


@pytest.mark.parametrize("seed", [0, 5])
def test_a_spinning_lock_makes_progress(program: HostBuild, tmp_path: Path, seed: int) -> None:
    zero = np.zeros(1, np.int32)
    ended = launch(program, tmp_path, "spins", 1, 256, zero, zero, seed=seed)
    assert ended.buffers["b1"].tolist() == [256]


@pytest.mark.parametrize("seed", [0, 1])
def test_a_thread_may_spin_until_another_has_run(program: HostBuild, tmp_path: Path, seed: int) -> None:
    ended = launch(program, tmp_path, "waits", 1, 96, np.zeros(1, np.int32), np.zeros(96, np.int32), seed=seed)
    assert ended.buffers["b1"].tolist() == [2] * 96


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("recursion", "stack of 512 KiB overflowed"),
        ("stray", "which no buffer covers; it is 10995"),
        ("misaligned", "misaligned"),
    ],
)
def test_a_fault_of_a_thread_is_an_error_that_names_it(
    program: HostBuild, tmp_path: Path, entry: str, says: str
) -> None:
    argument = np.zeros(8, np.float32 if entry == "misaligned" else np.int32)
    ended = launch(program, tmp_path, entry, 1, 4, argument)
    assert ended.code == 3
    assert ended.error.startswith(f"error memory kernel {entry}, block (0, 0, 0), thread (0, 0, 0): ")
    assert says in ended.error


def test_a_division_by_zero_has_a_result_on_a_gpu_alone(program: HostBuild, tmp_path: Path) -> None:
    ended = launch(program, tmp_path, "divides", 1, 4, np.zeros(8, np.int32))
    assert ended.code == 3
    assert ended.error.startswith(
        "error unsupported kernel divides, block (0, 0, 0), thread (0, 0, 0): barriers.cu:83: a division of a 'int' by"
    )


def test_a_rounding_mode_stays_in_its_thread(program: HostBuild, tmp_path: Path) -> None:
    x = np.array([1, 2.0**-24 + 2.0**-40], np.float32)
    ended = launch(program, tmp_path, "rounding_mode", 2, 4, x, np.zeros(4, np.float32))
    assert ended.buffers["b1"].tolist() == [1.0] + [1 + 2.0**-23] * 3
