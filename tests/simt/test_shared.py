"""Shared memory: identity, poison, bounds, alignment, limits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from audit.compile.host import HostBuild

from .programs import build, launch, line

ENTRIES = (
    "templated<32, int>",
    "templated<64, float>",
    "functions",
    "dynamic",
    "past_dynamic",
    "past_static",
    "large",
    "too_large",
    "alignment",
)
POISON = 0x7FA07FA0


@pytest.fixture(scope="module")
def program() -> HostBuild:
    return build("shared", ENTRIES)


@pytest.mark.parametrize(("n", "entry", "kind"), [(32, "int", np.int32), (64, "float", np.float32)])
def test_templates(program: HostBuild, tmp_path: Path, n: int, entry: str, kind: type) -> None:
    ended = launch(program, tmp_path, f"templated<{n}, {entry}>", 5, n, np.zeros(n, kind), threads=2)
    total = sum(10 * t for t in range(n)) + sum(range(n))
    assert ended.buffers["b0"].tolist() == [total + n * 2 * 4 + t for t in range(n)]


def test_objects_of_device_functions(program: HostBuild, tmp_path: Path) -> None:
    ended = launch(program, tmp_path, "functions", 1, 2, np.zeros(4, np.int32))
    assert ended.buffers["b0"].tolist() == [1, 1, POISON, POISON]


def test_dynamic_memory_is_poisoned_for_every_block(program: HostBuild, tmp_path: Path) -> None:
    words = 232448 // 4
    ended = launch(program, tmp_path, "dynamic", 3, 1, f"i32:{words}", np.zeros(6, np.int32), shared=4 * words)
    assert ended.buffers["b0"].tolist() == [POISON, 5] * 3


def test_poison_is_a_nan_of_every_float() -> None:
    word = np.array([POISON], np.uint32)
    assert np.isnan(word.view(np.float32)).all()
    assert np.isnan(word.view(np.float16)).all()
    assert not POISON >> 22 & 1, "signalling"


@pytest.mark.parametrize("words", [3, 4, 7, 8])
def test_a_write_past_dynamic_memory(program: HostBuild, tmp_path: Path, words: int) -> None:
    ended = launch(program, tmp_path, "past_dynamic", 1, 1, f"i32:{words}", shared=4 * words)
    assert ended.code == 3
    assert ended.error.startswith("error memory kernel past_dynamic, block (0, 0, 0)")


@pytest.mark.parametrize(
    ("at", "says"), [(10, f"past the end of shared `ten` ({line('shared', 'int ten')})"), (-1, "before the start of")]
)
def test_a_write_past_static_memory(program: HostBuild, tmp_path: Path, at: int, says: str) -> None:
    assert launch(program, tmp_path, "past_static", 1, 1, "i32:9").code == 0
    ended = launch(program, tmp_path, "past_static", 1, 1, f"i32:{at}")
    assert ended.error.startswith("error memory kernel past_static, block (0, 0, 0)")
    assert says in ended.error


def test_limits(program: HostBuild, tmp_path: Path) -> None:
    out = np.zeros(1, np.int32)
    assert launch(program, tmp_path, "large", 1, 32, out).buffers["b0"].tolist() == [1]
    ended = launch(program, tmp_path, "too_large", 1, 32, out)
    assert ended.error.startswith("error launch")
    assert "`more` raises static shared memory to 49153 bytes; the limit is 49152" in ended.error
    ended = launch(program, tmp_path, "large", 1, 32, out, shared=232448 - 48 * 1024 + 1)
    assert "shared memory to 232449 bytes (49152 static, 183297 dynamic); the limit of sm_90 is 232448" in ended.error
    ended = launch(program, tmp_path, "large", 1, 32, out, shared=232449)
    assert "232449 bytes of dynamic shared memory; the limit of sm_90 is 232448" in ended.error


def test_objects_are_aligned_as_declared_and_no_better(program: HostBuild, tmp_path: Path) -> None:
    ended = launch(program, tmp_path, "alignment", 1, 1, np.zeros(2, np.uint64))
    assert ended.buffers["b0"].tolist() == [8, 64]
