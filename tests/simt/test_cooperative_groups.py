"""Kernels as they are written elsewhere, with cooperative groups, against numpy; NVIDIA's compiler takes them too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from audit.compile.cuda import compile_cubin
from audit.compile.host import HostBuild
from audit.errors import ToolMissing

from .programs import FOLDER, Array, build, launch, line

ENTRIES = [
    "layernorm_warps",
    "online_softmax",
    "block_reduce<float, 128>",
    "block_reduce<int, 64>",
    "vector_add",
    "copy_ints",
    "histogram",
    "transpose<32, 8>",
    "scan",
    "filter",
    "any_group",
    "gelu",
    *(f"tile_facts<{size}>" for size in (1, 2, 4, 8, 16, 32)),
    "coalesced_facts",
    "wide",
    "handed_over<true>",
    "filled_rows<true>",
    "uneven",
    "tile_in_a_branch",
]
SEEDS = [0, 5]
rng = np.random.default_rng(2)


@pytest.fixture(scope="module")
def program() -> HostBuild:
    return build("elsewhere", ENTRIES)


@pytest.mark.parametrize("nvcc", ["", "none"])
def test_nvidias_compilers_take_the_same_text(monkeypatch: pytest.MonkeyPatch, nvcc: str) -> None:
    monkeypatch.setenv("KERNEL_AUDIT_NVCC", nvcc)
    try:
        built = compile_cubin(FOLDER, FOLDER / "elsewhere.cu", ENTRIES)
    except ToolMissing as missing:
        pytest.skip(str(missing))
    assert list(built.symbols) == ENTRIES


def close(got: Array, expected: Array, bound: float = 2e-6) -> None:
    assert np.max(np.abs(got - expected)) <= bound * np.max(np.abs(expected))


@pytest.mark.parametrize("seed", SEEDS)
def test_layernorm(program: HostBuild, tmp_path: Path, seed: int) -> None:
    rows, columns = 6, 100
    x, w, b = (rng.normal(1, 2, size).astype("f4") for size in ((rows, columns), columns, columns))
    outs = (np.zeros_like(x), *(np.zeros(rows, "f4") for _ in range(2)))
    ended = launch(
        program, tmp_path, "layernorm_warps", 2, 128, *outs, x, w, b, f"i32:{rows}", f"i32:{columns}", seed=seed
    )
    wide = x.astype("f8")
    mean, deviation = wide.mean(1), np.sqrt(wide.var(1) + 1e-5)
    close(ended.buffers["b0"], (wide - mean[:, None]) / deviation[:, None] * w + b)
    close(ended.buffers["b1"], mean)
    close(ended.buffers["b2"], 1 / deviation)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_struct_is_reduced(program: HostBuild, tmp_path: Path, seed: int) -> None:
    x = rng.normal(0, 3, (3, 75)).astype("f4")
    ended = launch(program, tmp_path, "online_softmax", 3, 32, np.zeros_like(x), x, "i32:75", seed=seed)
    e = np.exp(x.astype("f8") - x.max(1, keepdims=True))
    close(ended.buffers["b0"], e / e.sum(1, keepdims=True))


@pytest.mark.parametrize("seed", SEEDS)
def test_templated_block_reduce(program: HostBuild, tmp_path: Path, seed: int) -> None:
    ints, floats = np.arange(1000, dtype="i4"), np.arange(1000, dtype="f4") / 8
    ended = launch(
        program, tmp_path, "block_reduce<int, 64>", 3, 64, ints, np.zeros(3, "i4"), "u32:1000", shared=256, seed=seed
    )
    assert ended.buffers["b1"].sum() == ints.sum()
    ended = launch(
        program, tmp_path, "block_reduce<float, 128>", 2, 128, floats, np.zeros(2, "f4"), "u32:1000", shared=512
    )
    assert ended.buffers["b1"].sum() == floats.sum()


def test_vector_types(program: HostBuild, tmp_path: Path) -> None:
    a, b = (rng.normal(size=400).astype("f4") for _ in range(2))
    ended = launch(program, tmp_path, "vector_add", 2, 64, a, b, np.zeros(400, "f4"), "i32:100")
    assert ended.buffers["b2"].tobytes() == (a + b).tobytes()
    ints = np.arange(404, dtype="i4")
    ended = launch(program, tmp_path, "copy_ints", 2, 32, ints, np.zeros(404, "i4"), "i32:101")
    assert ended.buffers["b1"].tobytes() == ints.tobytes()


@pytest.mark.parametrize("seed", SEEDS)
def test_histogram(program: HostBuild, tmp_path: Path, seed: int) -> None:
    data = rng.integers(0, 256, 4000, dtype=np.uint8)
    bins = np.zeros(256, "u4")
    ended = launch(program, tmp_path, "histogram", 3, 128, data, bins, "i32:1000", seed=seed, threads=2)
    assert ended.buffers["b1"].tolist() == np.bincount(data, minlength=256).tolist()


@pytest.mark.parametrize("seed", SEEDS)
def test_transpose(program: HostBuild, tmp_path: Path, seed: int) -> None:
    x = rng.normal(size=(40, 70)).astype("f4")
    out = np.zeros((70, 40), "f4")
    ended = launch(program, tmp_path, "transpose<32, 8>", (3, 2), (32, 8), out, x, "i32:70", "i32:40", seed=seed)
    assert ended.buffers["b0"].tobytes() == x.T.tobytes()


@pytest.mark.parametrize("seed", SEEDS)
def test_scan(program: HostBuild, tmp_path: Path, seed: int) -> None:
    x = rng.integers(-9, 9, 250, dtype=np.int32)
    ended = launch(program, tmp_path, "scan", 1, 256, x, np.zeros(250, "i4"), "i32:250", seed=seed)
    assert ended.buffers["b1"].tolist() == np.cumsum(x).tolist()


@pytest.mark.parametrize("seed", SEEDS)
def test_coalesced_threads_share_an_atomic(program: HostBuild, tmp_path: Path, seed: int) -> None:
    x = rng.integers(-9, 9, 200, dtype=np.int32)
    ended = launch(program, tmp_path, "filter", 2, 128, np.zeros(200, "i4"), np.zeros(1, "i4"), x, "i32:200", seed=seed)
    kept = x[x > 0]
    assert ended.buffers["b1"].tolist() == [kept.size]
    assert sorted(ended.buffers["b0"][: kept.size]) == sorted(kept)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_group_of_any_kind(program: HostBuild, tmp_path: Path, seed: int) -> None:
    x = rng.integers(-99, 99, 128, dtype=np.int32)
    ended = launch(program, tmp_path, "any_group", 1, 128, np.zeros(17, "i4"), x, seed=seed)
    assert ended.buffers["b0"].tolist() == [x.sum(), *x.reshape(16, 8).sum(1)]


def test_halves(program: HostBuild, tmp_path: Path) -> None:
    x = rng.normal(size=60).astype("f2")
    ended = launch(program, tmp_path, "gelu", 1, 32, x, "i32:30")
    v = x.astype("f8")
    close(ended.buffers["b0"].astype("f8"), v * (1 + np.tanh(0.7978845608 * (v + 0.044715 * v**3))), 2e-3)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("size", [1, 2, 4, 8, 16, 32])
def test_tiles_of_every_size(program: HostBuild, tmp_path: Path, size: int, seed: int) -> None:
    ended = launch(program, tmp_path, f"tile_facts<{size}>", 1, (16, 2, 2), np.zeros((64, 10), "u4"), seed=seed)
    for t, row in enumerate(ended.buffers["b0"].tolist()):
        first, rank = t // size * size, t % size
        lanes = range(first, first + size)
        some, every = any(i % 32 == 5 for i in lanes), all(i < 40 for i in lanes)
        assert row == [
            rank,
            t // size,
            64 // size,
            first + size - 1,
            t - (rank > 0),
            t + (rank < size - 1),
            first + (rank ^ (size // 2)),
            sum(1 << i - first for i in lanes if i % 3 == 0),
            some + 2 * every,
            sum(1 << i - first for i in lanes if i % 2 == t % 2),
        ]


@pytest.mark.parametrize("seed", SEEDS)
def test_coalesced_groups_count_by_rank(program: HostBuild, tmp_path: Path, seed: int) -> None:
    ended = launch(program, tmp_path, "coalesced_facts", 1, 64, np.zeros((64, 10), "u4"), seed=seed)
    lanes = [i for i in range(32) if i % 3 != 0]
    for t, row in enumerate(ended.buffers["b0"].tolist()):
        if t % 32 % 3 == 0:
            continue
        group = [t // 32 * 32 + i for i in lanes]
        rank = group.index(t)
        assert row == [
            rank,
            len(group),
            group[2],
            group[rank - 2] if rank >= 2 else t,
            group[rank + 2] if rank + 2 < len(group) else t,
            sum(1 << i for i, other in enumerate(group) if other % 32 < 10),
            sum(1 << i for i, other in enumerate(group) if other // 16 == t // 16),
            (1 << len(group)) - 1 + 1,
            sum(group),
            max(group[: rank + 1]),
        ]


@pytest.mark.parametrize("seed", SEEDS)
def test_wide_values_nested_tiles_and_warp_reductions(program: HostBuild, tmp_path: Path, seed: int) -> None:
    outs = (np.zeros(32), np.zeros((32, 3), "f4"), np.zeros((32, 4), "i4"))
    ended = launch(program, tmp_path, "wide", 1, 32, *outs, seed=seed)
    t = np.arange(32)
    assert ended.buffers["b0"].tolist() == (6 * (t ^ 1) + 6.75).tolist()
    assert ended.buffers["b1"].tolist() == np.stack([(t + 1) % 32 + i for i in range(3)], 1).tolist()
    assert ended.buffers["b2"].tolist() == [[sum(range(32)) - 32 * 7, -7, 0, 800 + i // 4] for i in range(32)]


def test_a_tile_that_does_not_divide_the_block_is_an_error(program: HostBuild, tmp_path: Path) -> None:
    ended = launch(program, tmp_path, "uneven", 1, 48, np.zeros(48, "i4"))
    assert ended.code == 3
    assert "tests/simt" not in ended.error
    assert "elsewhere.cu:" in ended.error
    assert "tiled_partition of 48 threads into tiles of 32; expected a divisor" in ended.error


@pytest.mark.parametrize("seed", SEEDS)
def test_lanes_of_a_tile_that_wait_at_two_places(program: HostBuild, tmp_path: Path, seed: int) -> None:
    ended = launch(program, tmp_path, "tile_in_a_branch", 1, 8, np.zeros(8, "i4"), seed=seed)
    assert ended.code == 3
    assert f"0-3 wait at __syncwarp ({line('elsewhere', 'waits in vain')}) with mask 0x000000ff" in ended.error
    assert f"4-7 wait at __any_sync ({line('elsewhere', 'as these do')}) with mask 0x000000ff" in ended.error
