"""The CUDA sources compile for sm_90 without spilling, and say how much shared memory a launch must give."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
GROUPED = KERNELS / "grouped"
GEOMETRIES = [(6, 256), (3, 64)]
ENTRY = re.compile(r"Compiling entry function '(\w+)'.*?(\d+) bytes spill stores, (\d+) bytes spill loads", re.DOTALL)

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc on PATH")


def _compile(kernel: str, folder: Path, statements: str, source: Path | None = None) -> tuple[int, str]:
    """nvcc's exit code and output for `statements` after the kernel's source, as a cubin for sm_90."""
    unit = folder / "unit.cu"
    unit.write_text(f'#include "{source or GROUPED / f"{kernel}.cu"}"\n{statements}\n', encoding="utf-8")
    flags = ["-arch=sm_90", "--fmad=false", "-std=c++17", "-Xptxas", "-v", "-cubin"]
    command = ["nvcc", *flags, str(unit), "-o", str(folder / "unit.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    return done.returncode, done.stdout + done.stderr


def _instantiations(kernel: str) -> str:
    """Takes the address of every entry, which makes the compiler emit it."""
    entries = [f"grouped_{kernel}_{part}<{g}, {d}>" for g, d in GEOMETRIES for part in ("splits", "merge")]
    return "\n".join(f"void* entry_{i} = reinterpret_cast<void*>({entry});" for i, entry in enumerate(entries))


@needs_nvcc
@pytest.mark.parametrize("kernel", ["control", "shared_kv"])
def test_every_entry_compiles_without_spills(kernel: str, tmp_path: Path) -> None:
    code, output = _compile(kernel, tmp_path, _instantiations(kernel))
    assert code == 0, output
    assert "warning" not in output
    found = ENTRY.findall(output)
    assert len(found) == 2 * len(GEOMETRIES)
    assert {(stores, loads) for _, stores, loads in found} == {("0", "0")}


@needs_nvcc
def test_a_size_formula_that_is_off_does_not_compile(tmp_path: Path) -> None:
    text = (GROUPED / "control.cu").read_text(encoding="utf-8")
    planted = text.replace("__half p[kTileRows][kTileTokens + 8];", "__half p[kTileRows][kTileTokens + 16];")
    assert planted != text
    source = tmp_path / "planted.cu"
    source.write_text(planted, encoding="utf-8")
    code, output = _compile("control", tmp_path, _instantiations("control"), source)
    assert code != 0
    assert "the launch uses the formula" in output


@needs_nvcc
@pytest.mark.parametrize(
    ("kernel", "sizes"),
    [
        (
            "control",
            {"control::split_memory_bytes<256>": 97_536, "control::split_memory_bytes<64>": 29_952},
        ),
        (
            "shared_kv",
            {
                "grouped::split_memory_bytes<256, SharedKv<6>::row_tiles, 8>": 87_616,
                "grouped::split_memory_bytes<64, SharedKv<3>::row_tiles, 8>": 36_224,
            },
        ),
    ],
)
def test_the_sizes_in_the_comments_are_the_real_ones(kernel: str, sizes: dict[str, int], tmp_path: Path) -> None:
    statements = [f'static_assert({expression} == {size}, "not so");' for expression, size in sizes.items()]
    code, output = _compile(kernel, tmp_path, "\n".join(statements))
    assert code == 0, output
    text = (GROUPED / f"{kernel}.cu").read_text(encoding="utf-8")
    for size in sizes.values():
        assert f"{size:,}" in text
        assert size % 32 == 0  # a fragment's address is a multiple of 32 from either end of the memory
        assert size <= 200 * 1024


def test_control_includes_nothing_of_the_project() -> None:
    included = re.findall(r"^#include (\S+)", (GROUPED / "control.cu").read_text(encoding="utf-8"), re.MULTILINE)
    assert included == ["<cuda_fp16.h>", "<mma.h>"]


def test_sources_hold_nothing_that_a_cpu_cannot_run() -> None:
    sources = [*KERNELS.rglob("*.cu"), *KERNELS.rglob("*.cuh")]
    assert len(sources) > 2
    for source in sources:
        code = re.sub(r"//.*", "", source.read_text(encoding="utf-8"))
        assert not re.search(r"\basm\b|\bfmaxf\b|\b(__)?exp2?f?\(", code), source
