"""Programs built for a sanitizer: right kernels give the bytes of a plain build, and nothing is found in them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from audit.compile.instrumentation import Sanitizer

from ...simt.programs import Call, Ended, build, launch_all

UNDER: dict[Sanitizer, Sequence[str]] = {
    "thread": ("setarch", os.uname().machine, "-R"),
    "address": ("env", "ASAN_OPTIONS=halt_on_error=0:detect_leaks=0"),
    "valgrind": ("valgrind", "--quiet", "--error-exitcode=66"),
}
i32 = partial(np.zeros, dtype=np.int32)
u32 = partial(np.zeros, dtype=np.uint32)
TYPES = (np.float64, np.int64, np.float32, np.uint32, np.float16)
SUMS = (np.int32, np.uint32, np.uint64, np.float32, np.float64)

# Launches of kernels of tests/simt that have no fault.
CALLS = {
    "barriers": (
        Call("reverse", 2, 256, (np.arange(512, dtype=np.int32), i32(512))),
        Call("early_exit", 1, 100, (i32(100),)),
        Call("votes", 1, 128, (i32(128),)),
        Call("order", 1, 96, (i32(192), i32(1))),
    ),
    "warps": (
        Call("halves", 1, 64, (i32(64),)),
        Call("votes", 1, 64, (u32(6 * 64),)),
        Call("handover", 1, 64, (i32(64),)),
        Call("short_warp", 1, 50, (i32(50),)),
        Call("types", 1, 32, tuple(np.zeros(32, kind) for kind in TYPES)),
    ),
    "atomics": (
        Call("sums", 3, 64, tuple(np.zeros(1, kind) for kind in SUMS)),
        Call("tickets", 3, 64, (i32(192), u32(1), i32(1))),
    ),
    "shared": (Call("templated<32, int>", 1, 32, (i32(32),)),),
}


def ran(file: str, sanitizer: Sanitizer, folder: Path) -> Ended:
    """All launches of a file, in one process: valgrind takes its time to begin."""
    program = build(file, [call.entry for call in CALLS[file]], sanitizer=sanitizer)
    called = {call.entry.partition("<")[0]: call for call in CALLS[file]}
    return launch_all(program, folder, called, under=UNDER.get(sanitizer, ()))


@pytest.mark.parametrize("sanitizer", UNDER)
@pytest.mark.parametrize("file", CALLS)
def test_right_kernels_give_the_same_bytes(file: str, sanitizer: Sanitizer, tmp_path: Path) -> None:
    ended = ran(file, sanitizer, tmp_path)
    assert (ended.code, ended.errors) == (0, "")
    plain = ran(file, "", tmp_path).buffers
    assert len(plain) >= len(CALLS[file])
    for name, array in plain.items():
        assert array.tobytes() == ended.buffers[name].tobytes(), name
