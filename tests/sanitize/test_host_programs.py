"""Programs built for a sanitizer: right kernels give the bytes of a plain build, and nothing is found in them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audit.build.host import HostBuild
from audit.build.instrumentation import Sanitizer

from ..simt.programs import Array, build, launch

UNDER: dict[Sanitizer, Sequence[str]] = {
    "thread": ("setarch", os.uname().machine, "-R"),
    "address": ("env", "ASAN_OPTIONS=halt_on_error=0:detect_leaks=0"),
    "valgrind": ("valgrind", "--quiet", "--error-exitcode=66"),
}
i32 = partial(np.zeros, dtype=np.int32)
u32 = partial(np.zeros, dtype=np.uint32)


class Call:
    """One launch of a kernel of tests/simt that has no fault."""

    def __init__(self, file: str, entry: str, grid: int, block: int, *args: Array | str, shared: int = 0) -> None:
        self.file, self.entry, self.grid, self.block, self.args, self.shared = file, entry, grid, block, args, shared


CALLS = (
    Call("barriers", "reverse", 2, 256, np.arange(512, dtype=np.int32), i32(512)),
    Call("barriers", "early_exit", 1, 100, i32(100)),
    Call("barriers", "votes", 1, 128, i32(128)),
    Call("barriers", "order", 1, 96, i32(192), i32(1)),
    Call("warps", "halves", 1, 64, i32(64)),
    Call("warps", "votes", 1, 64, u32(6 * 64)),
    Call("warps", "handover", 1, 64, i32(64)),
    Call("warps", "short_warp", 1, 50, i32(50)),
    Call(
        "warps", "types", 1, 32, *(np.zeros(32, k) for k in (np.float64, np.int64, np.float32, np.uint32, np.float16))
    ),
    Call("atomics", "sums", 3, 64, *(np.zeros(1, k) for k in (np.int32, np.uint32, np.uint64, np.float32, np.float64))),
    Call("atomics", "tickets", 3, 64, i32(192), u32(1), i32(1)),
    Call("shared", "templated<32, int>", 1, 32, i32(32)),
)


@cache
def program(file: str, sanitizer: Sanitizer) -> HostBuild:
    return build(file, sorted({call.entry for call in CALLS if call.file == file}), sanitizer=sanitizer)


def ran(call: Call, sanitizer: Sanitizer, folder: Path) -> Any:
    under = UNDER.get(sanitizer, ())
    return launch(
        program(call.file, sanitizer),
        folder,
        call.entry,
        call.grid,
        call.block,
        *call.args,
        shared=call.shared,
        under=under,
    )


@pytest.mark.parametrize("sanitizer", UNDER)
@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call.file}-{call.entry}")
def test_a_right_kernel_gives_the_same_bytes(call: Call, sanitizer: Sanitizer, tmp_path: Path) -> None:
    ended = ran(call, sanitizer, tmp_path)
    assert (ended.code, ended.errors) == (0, "")
    for name, array in ran(call, "", tmp_path).buffers.items():
        assert array.tobytes() == ended.buffers[name].tobytes(), name
