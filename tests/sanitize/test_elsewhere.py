"""Kernels in the manner of other people's, built for each sanitizer: the same bytes and no finding; a race is one."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from audit.build.host import HostBuild
from audit.build.instrumentation import Sanitizer

from ..simt.programs import Array, Ended, build, launch, line
from .test_host_programs import UNDER

i32, f32 = np.arange(64, dtype=np.int32), np.arange(64, dtype=np.float32)
COUNT = "i32:64"

# entry -> grid, block, arguments, dynamic shared memory
CALLS: dict[str, tuple[int, tuple[int, int], tuple[Array | str, ...], int]] = {
    "layernorm_warps": (1, (64, 1), (0 * f32, f32[:2], f32[:2], f32, f32[:32], f32[:32], "i32:2", "i32:32"), 0),
    "online_softmax": (2, (32, 1), (0 * f32, f32, "i32:32"), 0),
    "block_reduce<float, 128>": (2, (128, 1), (f32, f32[:2], "u32:64"), 512),
    "vector_add": (1, (32, 1), (f32, f32, 0 * f32, "i32:16"), 0),
    "histogram": (2, (128, 1), (i32.astype("u1"), np.zeros(256, "u4"), "i32:16"), 0),
    "transpose<32, 8>": (1, (32, 8), (0 * f32, f32, "i32:8", "i32:8"), 0),
    "scan": (1, (64, 1), (i32, 0 * i32, COUNT), 0),
    "filter": (2, (32, 1), (0 * i32, np.zeros(1, "i4"), i32 - 40, COUNT), 0),
    "any_group": (1, (128, 1), (0 * i32[:17], np.arange(128, dtype="i4")), 0),
    "tile_facts<16>": (1, (64, 1), (np.zeros(640, "u4"),), 0),
    "wide": (1, (32, 1), (np.zeros(32), np.zeros(96, "f4"), np.zeros(128, "i4")), 0),
    "handed_over<true>": (1, (64, 1), (0 * i32,), 0),
    "filled_rows<true>": (1, (64, 1), (0 * i32,), 0),
}
RACES = {"handed_over<false>": ("// written", "// read"), "filled_rows<false>": ("// filled", "// fetched")}


@cache
def program(sanitizer: Sanitizer) -> HostBuild:
    return build("elsewhere", [*CALLS, *RACES], sanitizer=sanitizer)


def ran(entry: str, sanitizer: Sanitizer, folder: Path) -> Ended:
    grid, block, args, shared = CALLS[entry]
    under = UNDER.get(sanitizer, ())
    return launch(program(sanitizer), folder, entry, grid, block, *args, shared=shared, under=under)


@pytest.mark.parametrize("sanitizer", UNDER)
@pytest.mark.parametrize("entry", CALLS)
def test_nothing_is_found_where_nothing_is(entry: str, sanitizer: Sanitizer, tmp_path: Path) -> None:
    ended = ran(entry, sanitizer, tmp_path)
    assert (ended.code, ended.errors) == (0, "")
    for name, array in ran(entry, "", tmp_path).buffers.items():
        got, expected = ended.buffers[name].tolist(), array.tolist()
        if entry == "filter":  # where a number goes depends on who comes first
            got, expected = sorted(got), sorted(expected)
        assert got == expected, name


@pytest.mark.parametrize("entry", RACES)
def test_without_its_sync_it_is_a_race_with_both_lines(entry: str, tmp_path: Path) -> None:
    ended = launch(program("thread"), tmp_path, entry, 1, 64, 0 * i32, under=UNDER["thread"])
    reports = ended.errors.split("WARNING: ThreadSanitizer: data race")[1:]
    assert reports
    sides = {int(number) for number in re.findall(r"#\d .*elsewhere\.cu:(\d+)", ended.errors)}
    assert {int(line("elsewhere", words).partition(":")[2]) for words in RACES[entry]} <= sides
