"""What the CPU has not ends in a compile error at its line that names it: never in a program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from audit.compile.host import build_host
from audit.errors import CompileError

GROUPS = "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"

# What stands in front of a kernel; lines of it, each with what the error at that line must say.
SOURCES: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "grid": (
        GROUPS,
        [
            ("cg::this_grid().sync();", "grid_group::sync.* is not supported on the CPU"),
            ("cg::sync(cg::this_grid());", r"sync\(grid_group\), a barrier of all blocks, is not supported on the CPU"),
            ("if (!cg::this_grid().is_valid()) return;", "is_valid.* is not supported on the CPU"),
            ("auto cluster = cg::this_cluster();", "this_cluster.* is not supported on the CPU"),
            ("auto all = cg::this_multi_grid();", "this_multi_grid.* is not supported on the CPU"),
        ],
    ),
    "partitions": (
        GROUPS,
        [
            ("auto t = cg::tiled_partition<64>(cg::this_thread_block());", "tiles of more than 32 threads is not"),
            ("auto c = cg::tiled_partition<4>(cg::coalesced_threads());", "tiled_partition of coalesced"),
            ("auto d = cg::tiled_partition(cg::coalesced_threads(), 4);", "tiled_partition of coalesced"),
            ("auto l = cg::labeled_partition(cg::coalesced_threads(), out[0]);", "labeled_partition.* is not"),
            ("auto b = cg::binary_partition(cg::coalesced_threads(), true);", "binary_partition.* is not supported"),
        ],
    ),
    "groups": (
        GROUPS + "#include <cooperative_groups/scan.h>\n",
        [
            ("auto token = cg::this_thread_block().barrier_arrive();", "barrier_arrive.* is not supported on the CPU"),
            ("__shared__ cg::block_tile_memory<256> memory;", "block_tile_memory.* is not supported on the CPU"),
            ("out[0] = cg::reduce(cg::this_thread_block(), 1, cg::plus<int>());", "reduce.* over a whole thread_block"),
            ("cg::invoke_one(cg::this_thread_block(), [&] { out[0] = 1; });", "invoke_one.* is not supported"),
            ("cg::reduce_store_async(cg::this_thread(), out, 1, cg::plus<int>());", "reduce_store_async.* is not"),
        ],
    ),
    "own types": (
        GROUPS,
        [
            ("cg::cluster_group* cluster = nullptr;", "cluster_group is not supported on the CPU"),
            ("cg::multi_grid_group* grid = nullptr;", "multi_grid_group is not supported on the CPU"),
            ("auto six = cg::experimental::tiled_partition<64>(0);", "experimental"),
            ("cg::memcpy_async(cg::this_thread_block(), out, out, 4);", "memcpy_async"),
        ],
    ),
    "textures": (
        "",
        [
            ("cudaTextureObject_t texture = 0;", "a texture is not supported on the CPU"),
            ("out[0] = tex2D<float>(1, 0.5f, 0.5f);", "tex2D.*: a texture is not supported on the CPU"),
            ("out[0] = tex1Dfetch<int>(1, 0);", "tex1Dfetch.*: a texture is not supported on the CPU"),
            ("cudaSurfaceObject_t surface = 0;", "a surface is not supported on the CPU"),
            ("surf2Dwrite(1.0f, 1, 0, 0);", "surf2Dwrite.*: a surface is not supported on the CPU"),
        ],
    ),
    "launches": (
        "",
        [
            ("cudaLaunchKernel(out, 1, 1);", "cudaLaunchKernel.*: a launch from a kernel is not supported on the CPU"),
            ("cudaDeviceSynchronize();", "cudaDeviceSynchronize.*: a launch from a kernel is not supported on the CPU"),
            ("cudaGridDependencySynchronize();", "cudaGridDependencySynchronize.* is not supported on the CPU"),
            ("out[0] = clock64();", "clock64.*: the GPU's clock is not supported on the CPU"),
            ("__pipeline_commit();", "__pipeline_commit.*: an asynchronous copy .* is not supported on the CPU"),
        ],
    ),
    "dynamic parallelism": ("__global__ void other();\n", [("other<<<1, 32>>>();", "expected primary-expression")]),
    "assembly": (
        '#define LANE(x) asm("mov.u32 %0, %%laneid;" : "=r"(x))\n',
        [
            ('asm volatile("bar.sync 1, 64;" ::: "memory");', "inline assembly, `bar.sync 1, 64;`, is not supported"),
            ('if (out) __asm__("ret;");', "inline assembly, `ret;`, is not supported on the CPU"),
            ("unsigned lane; LANE(lane);", "inline assembly, `mov.u32 %0, %%laneid;`, is not supported on the CPU"),
        ],
    ),
    "not declared": (
        "",
        [
            ("out[0] = __shfl(out[0], 0);", "__shfl"),
            ("out[0] = __ballot(1);", "__ballot"),
            ("__nv_bfloat16 x;", "__nv_bfloat16"),
            ("cudaMalloc(&out, 4);", "cudaMalloc"),
            ("cuda::barrier<0> barrier;", "cuda"),
        ],
    ),
    "other widths": (
        "#include <cuda_fp16.h>\n",
        [
            ("out[0] = __frsqrt_rn(1.0f);", "__frsqrt_rn"),
            ("__half2 h; atomicAdd(&h, h);", "atomicAdd"),
            ("float f; atomicMax(&f, 1.0f);", "atomicMax"),
            ("out[0] = hexp(__half(1.0f)) > __half(0.0f);", "hexp"),
            ("__nv_fp8_e4m3 x;", "__nv_fp8_e4m3"),
        ],
    ),
}


def refused(folder: Path, text: str) -> str:
    """The errors of a source that must not compile."""
    (folder / "k.cu").write_text(text)
    with pytest.raises(CompileError) as caught:
        build_host(folder, folder / "k.cu", ["k"])
    return str(caught.value)


@pytest.mark.parametrize("name", SOURCES)
def test_a_use_is_an_error_that_names_it(name: str, tmp_path: Path) -> None:
    head, uses = SOURCES[name]
    first = head.count("\n") + 2
    for pair in (uses[i : i + 2] for i in range(0, len(uses), 2)):  # the compiler stops at five messages
        body = "".join(f"{use}\n" for use, _ in pair)
        said = refused(tmp_path, f"{head}__global__ void k(int* out) {{\n{body}}}\n")
        for number, (use, words) in enumerate(pair, first):
            line = 1 if "LANE" in use else number  # an error inside a macro is one of the macro's line
            assert re.search(rf"^k\.cu:{line}:\d+: (fatal )?error: .*{words}", said, re.MULTILINE), (use, said)
        assert "<<<" not in body or "(a launch `<<<...>>>` in device code" in said


@pytest.mark.parametrize(
    "header",
    ["cuda_bf16.h", "cuda/barrier", "cuda/pipeline", "cuda/atomic", "cub/cub.cuh", "curand_kernel.h",
     "cooperative_groups/memcpy_async.h", "cuda_pipeline.h", "cute/tensor.hpp"],
)  # fmt: skip
def test_the_use_of_a_header_names_it_even_where_one_is_installed(
    header: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolkit = tmp_path / "toolkit" / header
    toolkit.parent.mkdir(parents=True)
    toolkit.write_text("")
    monkeypatch.setenv("CPATH", str(tmp_path / "toolkit"))
    said = refused(tmp_path, f"#include <{header}>\n__global__ void k(int* out) {{ *out = of_the_header(); }}\n")
    assert said.startswith("k.cu:2:38: error: 'of_the_header' was not declared in this scope")
    assert said.endswith(f"(k.cu:1: <{header}> is not here for the CPU and was left out)")


@pytest.mark.parametrize("words", ["__cluster_dims__(2, 1, 1)", "__block_size__((64, 1, 1))"])
def test_attributes_of_clusters(words: str, tmp_path: Path) -> None:
    said = refused(tmp_path, f"__global__ void {words} k(int* out) {{ *out = 1; }}\n")
    assert "k.cu:1:" in said
    assert f"error: {words.partition('(')[0]}: clusters are not supported on the CPU" in said


def test_a_parameter_that_no_launch_can_give(tmp_path: Path) -> None:
    said = refused(
        tmp_path, "struct Own { __device__ Own(const Own&) {} float x[4]; };\n__global__ void k(Own own) {}\n"
    )
    assert "a kernel parameter must be copyable byte for byte" in said


def test_a_value_too_wide_for_a_shuffle(tmp_path: Path) -> None:
    text = GROUPS + (
        "struct Wide { double x[5]; };\n"
        "__global__ void k(Wide* p) { *p = cg::tiled_partition<32>(cg::this_thread_block()).shfl(*p, 0); }\n"
    )
    assert "a shuffle of a group moves values of at most 32 bytes" in refused(tmp_path, text)


def test_what_the_preprocessor_drops_is_no_error(tmp_path: Path) -> None:
    text = """
#ifdef __CUDACC__
#include <cuda/barrier>
#endif
__global__ void k(int* out) {
#ifdef __CUDACC__
  asm volatile("membar.gl;");
#else
  asm volatile("" : "+m"(*out));  // no instructions
#endif
  *out = 1;
}
#if defined(__CUDACC__) && !defined(__CUDACC_RTC__)
int main() { k<<<1, 1>>>(nullptr); }
#endif
"""
    (tmp_path / "k.cu").write_text(text)
    assert build_host(tmp_path, tmp_path / "k.cu", ["k"]).executable.is_file()
