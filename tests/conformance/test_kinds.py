"""Kinds of fault that a run on the CPU must find, each beside a right kernel that it must pass."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conformance.projects import commanded, record_of, verdicts, write_project


class Kind(NamedTuple):
    """Kernels `good` and `bad`, what the bad one's verdict is, and words that its results hold."""

    cuda: str
    verdict: str
    words: str
    types: str = "f32 f32"
    reference: str = "i['x'].astype('f4').astype(float)"
    launch: str = "(1,), (32,), 0"
    other: str = ""  # the launch of `bad`, where it is another one
    n: int = 32
    inputs: str = "r.integers(1, 9, c.n)"


T = "int t = blockIdx.x * blockDim.x + threadIdx.x;"
KINDS = {
    "state_kept": Kind(
        "__device__ int calls;\n"
        f"__global__ void good(const float* x, float* y, int n) {{ {T} y[t] = x[t]; if (t == 0) ++calls; }}\n"
        f"__global__ void bad(const float* x, float* y, int n) {{ {T} y[t] = x[t] + (calls > 9); __syncthreads();\n"
        "  if (t == 0) ++calls; }\n",
        "fail",
        "repeat: ",
    ),
    "active_mask_of_a_branch": Kind(
        "template <bool Bug> __device__ void f(const int* x, int* y) {\n"
        "  int t = threadIdx.x; unsigned all = __ballot_sync(~0u, x[t] > 4); y[t] = 0;\n"
        "  if (x[t] > 4) { unsigned m = Bug ? __activemask() : all; y[t] = __popc(__ballot_sync(m, 1)); }\n}\n"
        "__global__ void good(const int* x, int* y, int n) { f<false>(x, y); }\n"
        "__global__ void bad(const int* x, int* y, int n) { f<true>(x, y); }\n",
        "fail",
        "repeat: ",
        "i32 i32",
        "(i['x'] > 4) * (i['x'] > 4).sum()",
    ),
    "signed_maximum_of_an_unnamed_lane": Kind(
        "template <bool Bug> __device__ void f(const int* x, int* y) {\n"
        "  int t = threadIdx.x; y[t] = x[t];\n"
        "  if (t < 16) { int other = __shfl_down_sync(0xffffu, x[t], 8);\n"
        "    y[t] = Bug || t < 8 ? max(x[t], other) : x[t]; }\n}\n"
        "__global__ void good(const int* x, int* y, int n) { f<false>(x, y); }\n"
        "__global__ void bad(const int* x, int* y, int n) { f<true>(x, y); }\n",
        "fail",
        "bytes: ",
        "i32 i32",
        "np.concatenate([np.maximum(i['x'][:8], i['x'][8:16]), i['x'][8:]])",
    ),
    "float_maximum_of_an_unnamed_lane": Kind(
        "template <bool Bug> __device__ void f(const float* x, float* y) {\n"
        "  int t = threadIdx.x; y[t] = x[t];\n"
        "  if (t < 16) { float other = __shfl_down_sync(0xffffu, x[t], 8);\n"
        "    y[t] = Bug || t < 8 ? fmaxf(x[t], other) : x[t]; }\n}\n"
        "__global__ void good(const float* x, float* y, int n) { f<false>(x, y); }\n"
        "__global__ void bad(const float* x, float* y, int n) { f<true>(x, y); }\n",
        "fail",
        "bytes: ",
        reference="np.concatenate([np.maximum(i['x'][:8], i['x'][8:16]), i['x'][8:]])",
    ),
    "unsigned_minimum_of_an_unnamed_lane": Kind(
        "template <bool Bug> __device__ void f(const unsigned* x, unsigned* y) {\n"
        "  int t = threadIdx.x; y[t] = x[t];\n"
        "  if (t < 16) { unsigned other = __shfl_down_sync(0xffffu, x[t], 8);\n"
        "    y[t] = Bug || t < 8 ? min(x[t], other) : x[t]; }\n}\n"
        "__global__ void good(const unsigned* x, unsigned* y, int n) { f<false>(x, y); }\n"
        "__global__ void bad(const unsigned* x, unsigned* y, int n) { f<true>(x, y); }\n",
        "fail",
        "repeat: ",
        "u32 u32",
        "np.concatenate([np.minimum(i['x'][:8], i['x'][8:16]), i['x'][8:]])",
    ),
    "unwritten_shared_minimum": Kind(
        "template <bool Bug> __device__ void f(const float* x, float* y) {\n"
        "  __shared__ float s[64]; int t = threadIdx.x; s[t] = x[t]; if (!Bug) s[t + 32] = x[t]; __syncthreads();\n"
        "  y[t] = fminf(s[t], s[t + 32]);\n}\n"
        "__global__ void good(const float* x, float* y, int n) { f<false>(x, y); }\n"
        "__global__ void bad(const float* x, float* y, int n) { f<true>(x, y); }\n",
        "fail",
        "repeat: ",
    ),
    "launch_bounds_of_a_template": Kind(
        f"template <int N> __global__ void __launch_bounds__(N, 2) k(const float* x, float* y, int n) {{ {T} y[t] = x[t]; }}\n"
        f"__global__ void good(const float* x, float* y, int n) {{ {T} y[t] = x[t]; }}\n",
        "fail",
        "expected at most 16 threads a block (__launch_bounds__ at kernels/launch_bounds_of_a_template.cu:1), but the "
        "launch has 32",
        other="k<16>|(1,), (32,), 0",
    ),
    "an_architecture's_branch": Kind(
        f"__global__ void good(const float* x, float* y, int n) {{ {T} y[t] = x[t]; }}\n"
        f"__global__ void bad(const float* x, float* y, int n) {{ {T}\n"
        "#if __CUDA_ARCH__ >= 900\n  y[t] = x[t] + 1;\n#elif __CUDA_ARCH__ >= 800\n  y[t] = x[t];\n#else\n  y[t] = x[t];\n#endif\n}\n",
        "fail",
        "bytes: ",
    ),
    "assembly_in_an_architecture's_branch": Kind(
        f"__global__ void good(const float* x, float* y, int n) {{ {T} y[t] = x[t]; }}\n"
        "#define ARCH\n"
        f"#ifdef OTHER\n__global__ void bad(const float* x, float* y, int n) {{ {T}\n"
        "#ifdef __CUDA_ARCH__\n"
        '  asm volatile("st.global.f32 [%0], %1;" :: "l"(y + t), "f"(x[t]));\n#else\n  y[t] = x[t];\n#endif\n}\n#endif\n',
        "inconclusive",
        "not supported here: kernels/assembly_in_an_architecture's_branch.cu:6:",
    ),
    "shift_by_the_width": Kind(
        "__global__ void good(const unsigned* x, unsigned* y, int n) { int t = threadIdx.x; y[t] = 1u << t; }\n"
        "__global__ void bad(const unsigned* x, unsigned* y, int n) { int t = threadIdx.x; y[t] = (1u << (t + 1)) >> 1; }\n",
        "inconclusive",
        "shift_by_the_width.cu:2: a shift of a 'unsigned int' by 32",
        "u32 u32",
        "1 << np.arange(32)",
    ),
    "negative_shift": Kind(
        "__global__ void good(const int* x, int* y, int n) { int t = threadIdx.x; y[t] = x[t] >> 1; }\n"
        "__global__ void bad(const int* x, int* y, int n) { int t = threadIdx.x; y[t] = x[t] >> (1 - x[t] * (t == 3)); }\n",
        "inconclusive",
        "negative_shift.cu:2: a shift of a 'int' by -",
        "i32 i32",
        "i['x'] >> 1",
    ),
    "conversion_of_nan": Kind(
        "__global__ void good(const float* x, int* y, int n) { int t = threadIdx.x; y[t] = (int)x[t]; }\n"
        "__global__ void bad(const float* x, int* y, int n) { int t = threadIdx.x;\n  y[t] = (int)(t ? x[t] : x[t] / 0.0f * 0.0f); }\n",
        "inconclusive",
        "conversion_of_nan.cu:3: a conversion of",
        "f32 i32",
    ),
    "conversion_too_large": Kind(
        "__global__ void good(const float* x, int* y, int n) { int t = threadIdx.x; y[t] = (int)x[t]; }\n"
        "__global__ void bad(const float* x, int* y, int n) { int t = threadIdx.x; y[t] = (int)(x[t] * 1e10f); }\n",
        "inconclusive",
        "('float') to 'int'",
        "f32 i32",
    ),
    "misaligned_4": Kind(
        f"__global__ void good(const float* x, float* y, int n) {{ {T} y[t] = x[t]; }}\n"
        "__global__ void bad(const float* x, float* y, int n) { int t = threadIdx.x; y[t] = x[t];\n"
        "  if (t == 0) y[t] += *(const float*)((const char*)x + 2) * 0; }\n",
        "fail",
        "misaligned_4.cu:3: misaligned load: a 'const float' needs a multiple of 4, but the address is 2 bytes past one",
    ),
    "read_only_path": Kind(
        "template <bool Bug> __device__ void f(const float* x, float* y) { int t = threadIdx.x; y[t] = 2 * x[t]; __syncthreads();\n"
        "  float4 v = Bug ? __ldg((const float4*)y + t / 4) : ((const float4*)y)[t / 4]; __syncthreads();\n"
        "  y[t] = (&v.x)[t % 4] / 2; }\n"
        "__global__ void good(const float* x, float* y, int n) { f<false>(x, y); }\n"
        "__global__ void bad(const float* x, float* y, int n) { f<true>(x, y); }\n",
        "fail",
        "read_only_path.cu:2: __ldg reads 16 bytes of y.bin that this launch has written",
    ),
    "grid_z": Kind(
        "__global__ void good(const float* x, float* y, int n) { y[blockIdx.x] = x[blockIdx.x]; }\n"
        "__global__ void bad(const float* x, float* y, int n) { if (blockIdx.z < n) y[blockIdx.z] = x[blockIdx.z]; }\n",
        "fail",
        "expected grid z of 1 to 65535, but got 65536",
        launch="(32,), (1,), 0",
        other="bad|(1, 1, 65536), (1,), 0",
    ),
    "block_z": Kind(
        "__global__ void good(const float* x, float* y, int n) { y[threadIdx.x] = x[threadIdx.x]; }\n"
        "__global__ void bad(const float* x, float* y, int n) { if (threadIdx.z < n) y[threadIdx.z] = x[threadIdx.z]; }\n",
        "fail",
        "expected block z of 1 to 64, but got 65",
        other="bad|(1,), (1, 1, 65), 0",
    ),
    "static_shared": Kind(
        "template <int N> __device__ void f(const float* x, float* y) { __shared__ float s[N]; s[threadIdx.x] = x[threadIdx.x];\n"
        "  y[threadIdx.x] = s[threadIdx.x]; }\n"
        "__global__ void good(const float* x, float* y, int n) { f<12 * 1024>(x, y); }\n"
        "__global__ void bad(const float* x, float* y, int n) { f<12 * 1024 + 1>(x, y); }\n",
        "fail",
        "raises static shared memory to 49156 bytes; the limit is 49152",
    ),
    "dynamic_shared": Kind(
        "__global__ void good(const float* x, float* y, int n) { extern __shared__ float s[]; s[threadIdx.x] = x[threadIdx.x];\n"
        "  y[threadIdx.x] = s[threadIdx.x]; }\n"
        "__global__ void bad(const float* x, float* y, int n) { extern __shared__ float s[]; __shared__ float more[512];\n"
        "  more[threadIdx.x] = s[threadIdx.x] = x[threadIdx.x]; y[threadIdx.x] = more[threadIdx.x]; }\n",
        "fail",
        "the limit of sm_90 is 232448",
        launch="(1,), (32,), 227 * 1024",
    ),
    "a_wait_that_ends": Kind(
        "template <bool Bug> __device__ void f(const float* x, float* y) {\n"
        "  __shared__ volatile int flag; int t = threadIdx.x; if (t == 0) flag = 0; __syncthreads();\n"
        "  if (t < 16) {\n"
        "    while (flag == 0) {\n    }\n"
        "  } else if (t == 20 && !Bug) {\n    __threadfence_block(); flag = 1;\n  }\n"
        "  y[t] = x[t];\n}\n"
        "__global__ void good(const float* x, float* y, int n) { f<false>(x, y); }\n"
        "__global__ void bad(const float* x, float* y, int n) { f<true>(x, y); }\n",
        "fail",
        "threads 0-15 at kernels/a_wait_that_ends.cu:4 `while (flag == 0) {`; threads 16-31 exited",
    ),
    "a_look_back": Kind(
        "template <bool Bug> __device__ void f(const float* x, float* y, volatile int* flags) {\n"
        "  const int b = blockIdx.x;\n"
        "  if (b > 0)\n    while (flags[b - 1] != 1) {\n    }\n"
        "  __threadfence(); y[b] = x[b]; __threadfence();\n"
        "  if (!Bug || b < 7) flags[b] = 1;\n}\n"
        "__global__ void zero(volatile int* flags) { flags[threadIdx.x] = 0; }\n"
        "__global__ void good(const float* x, float* y, int n, volatile int* flags) { f<false>(x, y, flags); }\n"
        "__global__ void bad(const float* x, float* y, int n, volatile int* flags) { f<true>(x, y, flags); }\n",
        "fail",
        "thread 0 at kernels/a_look_back.cu:4 `while (flags[b - 1] != 1) {`",
        launch="(32,), (1,), 0",
    ),
}  # fmt: skip
TYPES = {"f32": "np.float32", "i32": "np.int32", "u32": "np.uint32"}


def declaration(name: str, kind: Kind) -> str:
    types = kind.types.split()
    arguments = '("x", "y", np.int32(c.n)' + (', "flags")' if "flags" in kind.cuda else ")")
    before = 'Launch("zero", (1,), (32,), 0, ("flags",)), ' if "flags" in kind.cuda else ""
    entry, _, launch = (kind.other or f"bad|{kind.launch}").partition("|")
    workspace = ', Buffer("flags", "i32", "k=32", "workspace")' if "flags" in kind.cuda else ""
    defines = '{"OTHER": "1"}' if "OTHER" in kind.cuda else "{}"
    return f"""
op = Operator({plain(name)!r}, axes=[Axis("n", {kind.n})],
    buffers=lambda c: [Buffer("x", "{types[0]}", "n", "in"), Buffer("y", "{types[1]}", "n", "out"){workspace}],
    inputs=lambda c, r: {{"x": np.asarray({kind.inputs}).astype({TYPES[types[0]]})}},
    references=[Reference("fp64", lambda c, i: {{"y": np.asarray({kind.reference}, float)}})], bounds=[exact("y")],
    variants=[
        Variant("good", Source({f"kernels/{name}.cu"!r}), launches=lambda c: [{before}Launch("good", {kind.launch}, {arguments})]),
        Variant("bad", Source({f"kernels/{name}.cu"!r}, {defines}), parent="good",
            launches=lambda c: [{before}Launch("{entry}", {launch}, {arguments})]),
    ])
"""


def plain(name: str) -> str:
    """A name of a shape."""
    return name.replace("'", "")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kinds") / "project"
    write_project(folder, {name: (kind.cuda, declaration(name, kind)) for name, kind in KINDS.items()})
    commanded(folder, "run", "--shape", "all", "--time-limit", "4")
    return folder


@pytest.mark.parametrize("name", KINDS)
def test_the_right_one_passes_and_the_wrong_one_is_found(name: str, project: Path) -> None:
    found = verdicts(project, plain(name))
    assert found["good"] == ("pass", "")
    verdict, details = found["bad"]
    assert verdict == KINDS[name].verdict, details
    assert KINDS[name].words in details


def test_what_device_code_prints_is_in_the_record(tmp_path: Path) -> None:
    cuda = (
        "#include <stdio.h>\n__global__ void good(const float* x, float* y, int n) {\n"
        '  for (int k = 0; k < 500; ++k) if (threadIdx.x == 0) printf("line %d of %d\\n", k, n);\n'
        "  y[threadIdx.x] = x[threadIdx.x];\n}\n"
        "__global__ void bad(const float* x, float* y, int n) { y[threadIdx.x] = x[threadIdx.x]; }\n"
    )
    write_project(tmp_path / "p", {"printing": (cuda, declaration("printing", Kind(cuda, "pass", "")))})
    code, said = commanded(tmp_path / "p", "run", "--shape", "printing")
    assert code == 0, said
    audit = record_of(tmp_path / "p", "printing")["audits"][0]
    (detail,) = [one["detail"] for one in audit["results"] if "printed" in one["detail"]]
    assert "line 0 of 32" in detail
    assert "line 499 of 32" in detail
    assert "characters left out" in detail
    assert len(detail) < 2300
