"""A launch beyond `__launch_bounds__` is refused, as on a GPU, however a source writes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from audit.compile.host import build_host
from tests.simt.programs import launch

WRITTEN = {
    "after void": ("", "__global__ void __launch_bounds__(64) k(int* p)", "k"),
    "before void": ("", "__launch_bounds__(64, 2) __global__ void k(int* p)", "k"),
    "template": ("", "template <int N>\n__global__ void __launch_bounds__(N * 32) k(int* p)", "k<2>"),
    "name of a namespace": (
        "namespace n { template <int A, int B> struct T { static constexpr int threads = A * B; }; }",
        "__global__ void __launch_bounds__(n::T<32, 2>::threads, 1) k(int* p)",
        "k",
    ),
    "macro": ("#define BOUNDS __launch_bounds__(64)", "__global__ void BOUNDS k(int* p)", "k"),
    "macro with arguments": (
        "#define BOUNDS(threads, blocks) __launch_bounds__((threads) / 2, blocks)",
        "__global__ void BOUNDS(64 + 64, 1) k(int* p)",
        "k",
    ),
    "a macro of another file": ('#include "bounds.h"', "BOUNDS __global__ void k(int* p)", "k"),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_block_may_have_so_many_threads_and_no_more(name: str, tmp_path: Path) -> None:
    head, kernel, entry = WRITTEN[name]
    (tmp_path / "bounds.h").write_text("#define BOUNDS __launch_bounds__(64)\n")
    (tmp_path / "k.cu").write_text(f"{head}\n{kernel} {{\n  __shared__ int s; s = 1; p[0] = s;\n}}\n")
    program = build_host(tmp_path, tmp_path / "k.cu", [entry])
    assert launch(program, tmp_path, entry, 1, 64, np.zeros(1, "i4")).code == 0
    ended = launch(program, tmp_path, entry, 1, (8, 3, 3), np.zeros(1, "i4"))
    assert ended.error == (
        f"error launch kernel {entry}: expected at most 64 threads a block (__launch_bounds__ at k.cu:"
        f"{3 if kernel.startswith('template') else 2}), but the launch has 72; a GPU refuses it"
    )


def test_a_macro_that_is_a_whole_kernel(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(
        "#define KERNEL(name, n) \\\n  __global__ void __launch_bounds__(n) name(int* p) { \\\n    *p = n; }\n"
        "KERNEL(k, 32)\nKERNEL(other, 64)\n__global__ void unbound(int* p) { *p = 0; }\n"
    )
    program = build_host(tmp_path, tmp_path / "k.cu", ["k", "other", "unbound"])
    for entry, code in (("k", 3), ("other", 0), ("unbound", 0)):
        assert launch(program, tmp_path, entry, 1, 64, np.zeros(1, "i4")).code == code
