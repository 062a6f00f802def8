"""wmma and mma.sync: layouts against an obvious product of small integers, bits against the model itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from audit.compile.host import HostBuild

from . import tensor_core_oracle as oracle
from .programs import build, launch, line

SHAPES = {(16, 16): "16, 16", (32, 8): "32, 8", (8, 32): "8, 32"}
ORDERS = {(True, True): "Row, Row", (True, False): "Row, Col", (False, True): "Col, Row", (False, False): "Col, Col"}
ENTRIES = [f"product<{shape}, {order}>" for shape in SHAPES.values() for order in ORDERS.values()]


@pytest.fixture(scope="module")
def program() -> HostBuild:
    return build("tensor", [*ENTRIES, "instruction", "diverged"])


def small(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(-8, 9, shape).astype(np.float16)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("order", ORDERS)
def test_wmma_multiplies_matrices(
    program: HostBuild, tmp_path: Path, shape: tuple[int, int], order: tuple[bool, bool]
) -> None:
    m, n = shape
    rng = np.random.default_rng(m)
    a, b, c = small(rng, m, 16), small(rng, 16, n), small(rng, m, n).astype(np.float32)
    stored = [matrix if rows else matrix.T for matrix, rows in zip((a, b), order, strict=True)]
    # Padded rows, so that a stride that is ignored shows.
    padded = [np.pad(matrix, ((0, 0), (0, 8)), constant_values=99).copy() for matrix in stored]
    ended = launch(
        program,
        tmp_path,
        f"product<{SHAPES[shape]}, {ORDERS[order]}>",
        1,
        32,
        *padded,
        c,
        np.zeros((n, m), np.float32),
        *(f"i32:{matrix.shape[1]}" for matrix in padded),
    )
    expected = (2 * a.astype(np.float64) @ b.astype(np.float64) + c) / 2
    assert ended.code == 0, ended.errors
    assert np.array_equal(ended.buffers["b3"].T, expected)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_instruction(program: HostBuild, tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b, c = small(rng, 4, 16, 16), small(rng, 4, 16, 8), small(rng, 4, 16, 8).astype(np.float32)
    ended = launch(program, tmp_path, "instruction", 1, 128, a, b, c, np.zeros((4, 16, 8), np.float32), seed=seed)
    expected = a.astype(np.float64) @ b.astype(np.float64) + c
    assert np.array_equal(ended.buffers["b3"], expected)


def test_tensor_core_operations_need_their_warp(program: HostBuild, tmp_path: Path) -> None:
    ended = launch(program, tmp_path, "diverged", 1, 32, np.zeros(32, np.float32))
    assert ended.error.startswith("error collective kernel diverged, block (0, 0, 0)")
    ended = launch(program, tmp_path, "diverged", 1, 16, np.zeros(32, np.float32))
    assert f"mma_m16n8k16 at {line('tensor', 'threadIdx.x < 16')} needs the 32 lanes of a warp" in ended.error


@pytest.mark.parametrize(("arch", "model"), [("sm_70", "sm_70"), ("sm_86", "sm_80"), ("sm_90", "sm_90")])
def test_bits_are_those_of_the_architecture(tmp_path: Path, arch: str, model: str) -> None:
    rng = np.random.default_rng(5)
    a, b = (rng.normal(size=size).astype(np.float16) for size in ((16, 16), (16, 8)))
    c = rng.normal(size=(16, 8)).astype(np.float32)
    program = build("tensor", ["instruction"], arch=arch)
    ended = launch(program, tmp_path, "instruction", 1, 32, a, b, c, np.zeros((16, 8), np.float32))
    got = ended.buffers["b3"].view(np.uint32)
    columns = b.T.copy().view(np.uint16)
    for i, row in enumerate(a.view(np.uint16)):
        for j, column in enumerate(columns):
            bits = int(c.view(np.uint32)[i, j])
            assert got[i, j] == oracle.chain(row.tolist(), column.tolist(), bits, model)
