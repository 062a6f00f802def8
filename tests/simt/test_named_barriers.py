"""Barriers that have a number and a count: who waits, what is ordered, and the errors that say who never came."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from audit.compile.cuda import compile_cubin
from audit.compile.host import HostBuild
from audit.errors import ToolMissing

from .programs import FOLDER, Ended, build, launch, line

ROUNDS, PLACE = 40, 64
WRONG = [
    "missing_arrival",
    "two_counts",
    "any_barrier",
    "half_a_warp",
    "object_without_a_lane",
    "object_of_a_short_block",
    "object_and_number",
    "object_not_started",
]
RINGS = [f"ring<{full}, {empty}>" for full in ("true", "false") for empty in ("true", "false")]
OBJECTS = [ring.replace("ring", "ring_of_objects") for ring in RINGS]
ENTRIES = [
    *RINGS,
    *OBJECTS,
    "pair",
    "third_party",
    "arrives_only",
    "lanes_exit",
    "lanes_exit_late",
    "left_behind",
    *WRONG,
]
RIGHT, NEITHER = RINGS[0], RINGS[3]
SETARCH = ("setarch", os.uname().machine, "-R")


@pytest.fixture(scope="module")
def program() -> HostBuild:
    return build("named_barriers", ENTRIES)


@pytest.fixture(scope="module")
def watched() -> HostBuild:
    """The same under ThreadSanitizer."""
    return build("named_barriers", ENTRIES, sanitizer="thread")


def through_the_ring(program: HostBuild, folder: Path, entry: str, seed: int, under: tuple[str, ...] = ()) -> Ended:
    data = np.arange(ROUNDS * PLACE, dtype=np.int32)
    return launch(program, folder, entry, 1, 128, data, data * 0, f"i32:{ROUNDS}", seed=seed, under=under)


@pytest.mark.parametrize("seed", [0, 1, 99])
@pytest.mark.parametrize("ring", [RIGHT, OBJECTS[0]])
def test_what_is_handed_over_arrives(program: HostBuild, tmp_path: Path, ring: str, seed: int) -> None:
    ended = through_the_ring(program, tmp_path, ring, seed)
    assert ended.code == 0, ended.errors
    rows = np.arange(ROUNDS * PLACE, dtype=np.int32).reshape(ROUNDS, PLACE)
    assert np.array_equal(ended.buffers["b1"].reshape(rows.shape), rows[:, ::-1])


def test_what_is_not_waited_for_shows(program: HostBuild, tmp_path: Path) -> None:
    right = through_the_ring(program, tmp_path, RIGHT, 0).buffers["b1"]
    assert not np.array_equal(through_the_ring(program, tmp_path, NEITHER, 0).buffers["b1"], right)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("entry", [*RINGS[1:3], *OBJECTS[1:3]])
def test_who_comes_twice_is_counted_twice(program: HostBuild, tmp_path: Path, entry: str, seed: int) -> None:
    """Without the other pair nothing holds a side back, which completes a barrier alone."""
    ended = through_the_ring(program, tmp_path, entry, seed)
    assert ended.code == 3
    assert ended.error.startswith(f"error barrier kernel {entry}")


@pytest.mark.parametrize("seed", [0, 5, 6])
def test_a_barrier_of_some_warps_from_two_places(program: HostBuild, tmp_path: Path, seed: int) -> None:
    ended = launch(program, tmp_path, "pair", 2, 96, np.zeros(96, np.int32), "i32:0", seed=seed)
    assert ended.code == 0, ended.errors
    ended = launch(program, tmp_path, "pair", 1, 96, np.zeros(96, np.int32), "i32:9", seed=seed)
    assert ended.buffers["b0"].tolist() == [360] * 32 + [36] * 64


@pytest.mark.parametrize("entry", ["lanes_exit", "lanes_exit_late"])
def test_lanes_that_left_are_not_waited_for(program: HostBuild, tmp_path: Path, entry: str) -> None:
    ended = launch(program, tmp_path, entry, 1, 64, np.zeros(64, np.int32))
    assert ended.code == 0, ended.errors
    assert ended.buffers["b0"].tolist() == ([0] * 5 + [1] * 27) * 2


def test_an_arrival_that_nobody_waits_for_is_of_its_block(program: HostBuild, tmp_path: Path) -> None:
    ended = launch(program, tmp_path, "left_behind", 3, 64, np.zeros(3, np.int32))
    assert ended.buffers["b0"].tolist() == [1] * 3


def test_who_never_came_is_told(program: HostBuild, tmp_path: Path) -> None:
    ended = launch(program, tmp_path, "missing_arrival", (2, 1), 96, np.zeros(1, np.int32))
    assert ended.code == 3
    assert ended.error.startswith("error barrier kernel missing_arrival, block (0, 0, 0): threads wait for one another")
    assert f"threads 32-95 wait at barrier_sync 7 ({line('named_barriers', 'in vain')})" in ended.error
    assert "threads 0-31 have exited" in ended.error
    assert ended.error.endswith("barrier 7 has arrivals of 64 of 96 threads")


def test_two_counts_for_one_completion(program: HostBuild, tmp_path: Path) -> None:
    ended = launch(program, tmp_path, "two_counts", 1, 64)
    assert ended.error.startswith("error barrier kernel two_counts")
    assert f"called barrier_sync 2 at {line('named_barriers', 'of two warps')} for 64 threads" in ended.error
    assert f"the first arrival at {line('named_barriers', 'of four warps')} expects 128" in ended.error


@pytest.mark.parametrize(
    ("number", "threads", "says"),
    [
        (0, 64, "expected a barrier number of 1 to 15"),
        (16, 64, "expected a barrier number of 1 to 15"),
        (1, 0, "for 0 threads; expected a multiple of 32 up to 1024"),
        (1, 48, "for 48 threads; expected a multiple of 32 up to 1024"),
        (1, 1056, "for 1056 threads; expected a multiple of 32 up to 1024"),
    ],
)
def test_numbers_and_counts_have_limits(
    program: HostBuild, tmp_path: Path, number: int, threads: int, says: str
) -> None:
    ended = launch(program, tmp_path, "any_barrier", 1, 64, f"u32:{number}", f"u32:{threads}")
    assert ended.code == 3
    assert f"barrier_sync {number} at {line('named_barriers', 'whichever')}" in ended.error
    assert says in ended.error


def test_a_warp_comes_as_a_whole(program: HostBuild, tmp_path: Path) -> None:
    ended = launch(program, tmp_path, "half_a_warp", 1, 32)
    assert f"thread 16 (lane 16) called barrier_sync 4 at {line('named_barriers', 'second half')}" in ended.error
    assert f"lane 0 of its warp called barrier_sync 4 at {line('named_barriers', 'first half')}" in ended.error


@pytest.mark.parametrize(
    ("entry", "threads", "place"),
    [("object_without_a_lane", 32, "all but one"), ("object_of_a_short_block", 48, "48 of 64")],
)
def test_an_object_counts_threads(program: HostBuild, tmp_path: Path, entry: str, threads: int, place: str) -> None:
    ended = launch(program, tmp_path, entry, 1, threads)
    assert ended.code == 3
    assert f"barrier_sync 5 at {line('named_barriers', f'// {place}')}" in ended.error
    assert "some lanes of its warp have exited or do not exist, and an mbarrier needs their arrivals" in ended.error


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_an_object_and_a_number_are_two_barriers(program: HostBuild, tmp_path: Path, seed: int) -> None:
    ended = launch(program, tmp_path, "object_and_number", 1, 64, seed=seed)
    assert ended.code == 3
    assert "whose number another barrier uses at" in ended.error
    assert all(line("named_barriers", f"// the {place}") in ended.error for place in ("object", "number"))


def test_an_object_that_nobody_started_is_told(program: HostBuild, tmp_path: Path) -> None:
    ended = launch(program, tmp_path, "object_not_started", 1, 32)
    assert ended.code == 3
    assert f"at {line('named_barriers', 'of what')}" in ended.error
    assert "expected a barrier number of 1 to 15" in ended.error


@pytest.mark.parametrize("seed", [0, 3])
def test_the_right_ring_is_no_race(watched: HostBuild, tmp_path: Path, seed: int) -> None:
    for ring in (RIGHT, OBJECTS[0]):
        ended = through_the_ring(watched, tmp_path, ring, seed, SETARCH)
        assert (ended.code, ended.errors) == (0, "")
    ended = launch(watched, tmp_path, "pair", 1, 96, np.zeros(96, np.int32), "i32:9", seed=seed, under=SETARCH)
    assert (ended.code, ended.errors) == (0, "")
    assert ended.buffers["b0"].tolist() == [360] * 32 + [36] * 64


@pytest.mark.parametrize(
    ("ring", "places"),
    [(NEITHER, ("// filled", "// taken")), (OBJECTS[3], ("// put into the place", "// got from the place"))],
)
def test_without_barriers_there_is_a_race_with_both_lines(
    watched: HostBuild, tmp_path: Path, ring: str, places: tuple[str, str]
) -> None:
    ended = through_the_ring(watched, tmp_path, ring, 0, SETARCH)
    assert "data race" in ended.errors
    for place in places:
        assert line("named_barriers", place) in ended.errors


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(
    ("entry", "threads", "places"),
    [("third_party", 96, ("by the first", "by the third")), ("arrives_only", 64, ("// before", "// not after"))],
)
def test_nothing_else_is_ordered(
    watched: HostBuild, tmp_path: Path, entry: str, threads: int, places: tuple[str, ...], seed: int
) -> None:
    ended = launch(watched, tmp_path, entry, 1, threads, np.zeros(1, np.int32), seed=seed, under=SETARCH)
    assert ended.error == ""
    assert "data race" in ended.errors
    for place in places:
        assert line("named_barriers", place) in ended.errors


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
def test_a_gpu_has_the_instructions(arch: str) -> None:
    try:
        built = compile_cubin(FOLDER, FOLDER / "named_barriers.cu", ENTRIES, arch=arch)
    except ToolMissing as missing:
        pytest.skip(str(missing))
    assert list(built.symbols) == ENTRIES
