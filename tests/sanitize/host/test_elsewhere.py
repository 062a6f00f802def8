"""Kernels in the manner of other people's, built for each sanitizer: the same bytes and no finding; a race is one."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from audit.compile.host import HostBuild
from audit.compile.instrumentation import Sanitizer

from ...simt.programs import Call, Ended, build, launch, launch_all, line
from ...simt.test_cooperative_groups import ENTRIES
from .test_programs import UNDER

i32, f32 = np.arange(64, dtype=np.int32), np.arange(64, dtype=np.float32)
COUNT = "i32:64"

CALLS = (
    Call("layernorm_warps", 1, (64, 1), (0 * f32, f32[:2], f32[:2], f32, f32[:32], f32[:32], "i32:2", "i32:32")),
    Call("online_softmax", 2, (32, 1), (0 * f32, f32, "i32:32")),
    Call("block_reduce<float, 128>", 2, (128, 1), (f32, f32[:2], "u32:64"), 512),
    Call("vector_add", 1, (32, 1), (f32, f32, 0 * f32, "i32:16")),
    Call("histogram", 2, (128, 1), (i32.astype("u1"), np.zeros(256, "u4"), "i32:16")),
    Call("transpose<32, 8>", 1, (32, 8), (0 * f32, f32, "i32:8", "i32:8")),
    Call("scan", 1, (64, 1), (i32, 0 * i32, COUNT)),
    Call("filter", 2, (32, 1), (0 * i32, np.zeros(1, "i4"), i32 - 40, COUNT)),
    Call("any_group", 1, (128, 1), (0 * i32[:17], np.arange(128, dtype="i4"))),
    Call("tile_facts<16>", 1, (64, 1), (np.zeros(640, "u4"),)),
    Call("wide", 1, (32, 1), (np.zeros(32), np.zeros(96, "f4"), np.zeros(128, "i4"))),
    Call("handed_over<true>", 1, (64, 1), (0 * i32,)),
    Call("filled_rows<true>", 1, (64, 1), (0 * i32,)),
)
RACES = {"handed_over<false>": ("// written", "// read"), "filled_rows<false>": ("// filled", "// fetched")}


@cache
def program(sanitizer: Sanitizer) -> HostBuild:
    entries = [*(call.entry for call in CALLS), *RACES] if sanitizer else ENTRIES  # the plain program is built once
    return build("elsewhere", entries, sanitizer=sanitizer)


def ran(sanitizer: Sanitizer, folder: Path) -> Ended:
    """All of them in one process: valgrind takes its time to begin."""
    called = {call.entry.partition("<")[0]: call for call in CALLS}
    return launch_all(program(sanitizer), folder, called, under=UNDER.get(sanitizer, ()))


@pytest.mark.parametrize("sanitizer", UNDER)
def test_nothing_is_found_where_nothing_is(sanitizer: Sanitizer, tmp_path: Path) -> None:
    ended = ran(sanitizer, tmp_path)
    assert (ended.code, ended.errors) == (0, "")
    plain = ran("", tmp_path).buffers
    assert len(plain) >= len(CALLS)
    for name, array in plain.items():
        got, expected = ended.buffers[name].tolist(), array.tolist()
        if name.startswith("filter"):  # where a number goes depends on who comes first
            got, expected = sorted(got), sorted(expected)
        assert got == expected, name


@pytest.mark.parametrize("entry", RACES)
def test_without_its_sync_it_is_a_race_with_both_lines(entry: str, tmp_path: Path) -> None:
    ended = launch(program("thread"), tmp_path, entry, 1, 64, 0 * i32, under=UNDER["thread"])
    reports = ended.errors.split("WARNING: ThreadSanitizer: data race")[1:]
    assert reports
    sides = {int(number) for number in re.findall(r"#\d .*elsewhere\.cu:(\d+)", ended.errors)}
    assert {int(line("elsewhere", words).partition(":")[2]) for words in RACES[entry]} <= sides
