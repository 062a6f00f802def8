"""Shuffles with widths, votes, partial masks, against the PTX ISA's own definition written out here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from audit.compile.host import HostBuild

from .programs import build, launch, line

ENTRIES = [
    "shuffles",
    "types",
    "halves",
    "votes",
    "handover",
    "short_warp",
    "from_outside",
    "not_in_mask",
    "exited_lane",
    "different_masks",
    "different_operations",
    "late_exit",
]

MASKS = line("warps", "0xfffffffeu")


@pytest.fixture(scope="module")
def program() -> HostBuild:
    return build("warps", ENTRIES)


def source_lane(mode: int, lane: int, argument: int, width: int) -> int:
    """shfl.sync of the PTX ISA: clamp and segment mask as CUDA's intrinsics set them."""
    segment = (32 - width) & 31
    clamp = 0 if mode == 1 else 31
    bound = argument & 31
    last = (lane & segment) | (clamp & ~segment)
    first = lane & segment
    if mode == 0:
        return first | (bound & ~segment & 31)
    if mode == 1:
        return lane - bound if lane - bound >= last else lane
    other = lane + bound if mode == 2 else lane ^ bound
    return other if other <= last else lane


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_shuffles_of_every_width(program: HostBuild, tmp_path: Path, mode: int) -> None:
    for width in (32, 16, 8, 4, 2, 1):
        for argument in (0, 1, 3, 5, 8, 17, 31):
            words = (f"i32:{mode}", f"i32:{argument}", f"i32:{width}")
            ended = launch(program, tmp_path, "shuffles", 1, 64, *words, np.zeros(64, np.int32))
            expected = [1000 + t // 32 * 32 + source_lane(mode, t % 32, argument, width) for t in range(64)]
            assert ended.buffers["b0"].tolist() == expected, (width, argument)


def test_a_width_that_is_no_power_of_two(program: HostBuild, tmp_path: Path) -> None:
    ended = launch(program, tmp_path, "shuffles", 1, 32, "i32:1", "i32:1", "i32:12", np.zeros(32, np.int32))
    assert "width 12; expected a power of two up to 32" in ended.error


def test_shuffles_move_every_type(program: HostBuild, tmp_path: Path) -> None:
    kinds = (np.float64, np.int64, np.float32, np.uint32, np.float16)
    ended = launch(program, tmp_path, "types", 1, 32, *(np.zeros(32, kind) for kind in kinds))
    t = np.arange(32)
    expected = [
        (t ^ 1) + 0.25,
        (1 << 40) + (t ^ 2),
        (t ^ 4) * 0.5,
        0x80000000 + (t ^ 8),
        (t ^ 16) * 2.0,
    ]
    assert [ended.buffers[f"b{i}"].tolist() for i in range(5)] == [row.tolist() for row in expected]


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_parts_of_a_warp_are_independent(program: HostBuild, tmp_path: Path, seed: int) -> None:
    ended = launch(program, tmp_path, "halves", 1, 64, np.zeros(64, np.int32), seed=seed)
    assert ended.buffers["b0"].tolist() == ([sum(range(16))] * 16 + [sum(range(16, 32))] * 16) * 2


@pytest.mark.parametrize("seed", [0, 4])
def test_votes(program: HostBuild, tmp_path: Path, seed: int) -> None:
    ended = launch(program, tmp_path, "votes", 1, 64, np.zeros((64, 6), np.uint32), seed=seed)
    for thread, row in enumerate(ended.buffers["b0"]):
        lane = thread % 32
        thirds = sum(1 << i for i in range(0, 32, 3))
        odd_from_20 = sum(1 << i for i in range(20, 32) if i & 1) if lane >= 20 else 0
        ones = sum(1 << i for i in range(1, 32, 4)) if lane % 4 == 1 else 0
        alike = sum(1 << i for i in range(32) if i // 10 == lane // 10)
        if seed and lane % 4 == 1:  # another schedule runs the lanes of a branch in parts
            assert row[4] & 1 << lane
            assert not int(row[4]) & ~ones
            assert row[4] != ones
            ones = int(row[4])
        assert row.tolist() == [thirds, 1, 1, odd_from_20, ones, alike]


@pytest.mark.parametrize("seed", [0, 6, 7])
def test_a_warp_barrier_orders_memory(program: HostBuild, tmp_path: Path, seed: int) -> None:
    ended = launch(program, tmp_path, "handover", 1, 256, np.zeros(256, np.int32), seed=seed)
    assert ended.buffers["b0"].tolist() == [500 * (t // 32) + 10 for t in range(256)]


def test_lanes_that_the_block_lacks_take_no_part(program: HostBuild, tmp_path: Path) -> None:
    ended = launch(program, tmp_path, "short_warp", 1, 40, np.zeros(40, np.int32))
    assert ended.buffers["b0"].tolist() == [31] * 32 + [39] * 8


def test_reading_a_lane_outside_of_the_mask_gives_poison(program: HostBuild, tmp_path: Path) -> None:
    ended = launch(program, tmp_path, "from_outside", 1, 32, np.zeros(8, np.float32), np.zeros(8))
    assert np.isnan(ended.buffers["b0"]).all()
    assert np.isnan(ended.buffers["b1"]).all()


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (
            "not_in_mask",
            f"thread 31 (lane 31) called __shfl_sync at {line('warps', 'void not_in_mask')} with mask 0x7fffffff",
        ),
        ("exited_lane", "lane 7 of that mask has exited"),
        ("different_masks", f"0-15 wait at __syncwarp ({MASKS}) with mask 0xffffffff; threads 16-31 wait"),
        ("different_operations", "wait at __any_sync"),
        ("late_exit", "thread 7 (lane 7) has exited, but lane 0 waits for it at __any_sync"),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_misuse_is_an_error(program: HostBuild, tmp_path: Path, entry: str, says: str, seed: int) -> None:
    ended = launch(program, tmp_path, entry, 1, 32, np.zeros(32, np.int32), seed=seed)
    assert ended.code == 3
    assert ended.error.startswith(f"error collective kernel {entry}, block (0, 0, 0): ")
    assert says in ended.error or (entry == "exited_lane" and "has exited, but lane" in ended.error)
