"""Host code is left out, lines keep their numbers, and what device code needs stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from audit.compile.declarations import Unbalanced, declarations
from audit.compile.host import build_host
from audit.compile.host_code import without_host_code
from audit.errors import CompileError

HEAD = """#include <stdio.h>
#include <vector>
#include <string>
#include <cublas_v2.h>
#include <torch/extension.h>
#include <cuda_runtime.h>
#define CEIL_DIV(m, n) (((m) + (n) - 1) / (n))
#define cudaCheck(err) (cuda_check(err, __FILE__, __LINE__))
#define DEVICE_INLINE __device__ __forceinline__
"""
KERNEL = """
__global__ void scale(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i];
}
"""

# Each is host code around a kernel `scale`, as whole files of GPU projects have it.
HOST_CODE = {
    "check and main": """
void cuda_check(cudaError_t error, const char* file, int line) {
  if (error != cudaSuccess) { printf("[%s] at %s:%d\\n", cudaGetErrorString(error), file, line); exit(1); }
}
int main(int argc, char** argv) {
  float* d; cudaCheck(cudaMalloc(&d, 4096));
  scale<<<CEIL_DIV(1024, 256), 256>>>(d, d, 1024);
  cudaCheck(cudaDeviceSynchronize()); return 0;
}
""",
    "handles and globals": """
cublasHandle_t handle; static size_t workspace_size = 32 << 20; std::vector<float> values(10);
static void* workspace = nullptr; cudaStream_t streams[4] = {}; extern cudaEvent_t event;
""",
    "launchers": """
template <typename T> void launch(T* y, const T* x, int n, cudaStream_t s) {
  scale<<<CEIL_DIV(n, 256), 256, 0, s>>>(x, y, n); cudaCheck(cudaGetLastError());
}
template void launch<float>(float*, const float*, int, cudaStream_t);
extern "C" void launch_float(float* y, const float* x, int n) { launch(y, x, n, 0); }
extern "C" { void other(float* y) { launch_float(y, y, 1); } }
static inline cudaError_t last() { return cudaGetLastError(); }
""",
    "classes": """
struct Buffer {
  float* p; std::vector<int> sizes;
  explicit Buffer(size_t n) : p{nullptr}, sizes() { cudaCheck(cudaMalloc(&p, n)); }
  ~Buffer() { cudaFree(p); }
  Buffer& operator=(const Buffer&) = delete;
};
class Context : public torch::Base { cublasHandle_t handle; public: void run() const; };
void Context::run() const { cublasSgemm(handle); }
""",
    "bindings": """
using torch::Tensor; using namespace torch::indexing; namespace py = pybind11;
typedef cublasHandle_t Handle; using Stream = cudaStream_t;
Tensor forward(Tensor x) { auto y = torch::empty_like(x); scale<<<1, 1>>>(x.data_ptr<float>(), y.data_ptr<float>(), 1);
  return y; }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward, "forward"); }
TORCH_LIBRARY(ops, m) { m.def("forward(Tensor x) -> Tensor"); }
""",
    "references": """
namespace cpu { namespace {
std::vector<float> reference(const std::vector<float>& x) { std::vector<float> y;
  for (auto v : x) y.push_back(2 * v); return y; }
} }
std::string name(int i) { auto f = [&](int j) { return std::to_string(i + j); }; return f(2); }
""",
    "a table of pointers": """
void (*kernels[])(const float*, float*, int) = {scale, &scale};
void run(int which) { kernels[which]<<<1, 1>>>(nullptr, nullptr, 0); }
""",
    "branches": """
int run(int n) {
#ifdef CHECK
  cudaCheck(cudaGetLastError());
#else
  (void)n;
#endif
  return cudaGetLastError();
}
""",
}


@pytest.mark.parametrize("name", HOST_CODE)
def test_a_whole_file_builds(name: str, tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(HEAD + KERNEL + HOST_CODE[name])
    assert build_host(tmp_path, tmp_path / "k.cu", ["scale"]).executable.is_file()


def test_all_of_it_in_several_files_keeps_its_lines(tmp_path: Path) -> None:
    (tmp_path / "common.h").write_text(HEAD + "".join(HOST_CODE.values()).replace("scale<<<", "other<<<"))
    text = '#include "common.h"\n' + "".join(HOST_CODE.values()) + KERNEL
    (tmp_path / "k.cu").write_text(text.replace("2.0f", "absent"))
    with pytest.raises(CompileError) as caught:
        build_host(tmp_path, tmp_path / "k.cu", ["scale"])
    line = text[: text.index("2.0f")].count("\n") + 1
    assert f"k.cu:{line}:" in str(caught.value)
    assert "'absent' was not declared" in str(caught.value)


DEVICE_CODE = {
    "constant": "const int kBlock = 128; enum Mode { plain, doubled };",
    "variables": "__constant__ float table[4]; __device__ int counter = 0;",
    "forward": "__device__ float later(float); float later(float v) { return v; }",
    "macro": "DEVICE_INLINE float twice(float v) { return 2 * v; }",
    "constexpr": "constexpr int twice(int v) { return 2 * v; }\ntemplate <int N> constexpr int kTwice = twice(N);",
    "operator": "struct V { float x; };\n__host__ __device__ inline V operator+(V a, V b) { return {a.x + b.x}; }",
    "class": "template <typename T> struct P { T v[4]; __device__ T operator[](int i) const { return v[i]; } };",
    "alias": "template <typename T> using Pointer = T*; typedef unsigned int u32; namespace ns { using W = u32; }",
    "instance": "template <int N> __global__ void t(int* p) { *p = N; }\ntemplate __global__ void t<3>(int*);",
    "lambda": "__device__ auto f = [](float v) { return v; };",
    "specialised": "template <typename T> struct W;\ntemplate <> struct W<float> { static constexpr int n = 4; };",
    "deleted": "struct N { N(const N&) = delete; N() = default; __device__ N(int); };",
    "bounds": "template <int N> __global__ void __launch_bounds__(N, 2) b(int* p) { *p = N; }",
    "pointer": "__device__ int one(int v) { return v; }\n__device__ int (*chosen)(int) = one;",
}  # fmt: skip


@pytest.mark.parametrize("name", DEVICE_CODE)
def test_what_device_code_needs_stays(name: str) -> None:
    """Whatever a kernel names, without which it would not compile."""
    users = (
        "__global__ void user() { kBlock; Mode m; twice(1); kTwice<2>; V a; P<int> p; Pointer<int> q; ns::W w; "
        "W<float> s; N n; }"
    )
    text = HEAD + DEVICE_CODE[name] + "\n" + users + "\nvoid host() { cudaFree(0); }\n"
    left = without_host_code({"k.cu": text})["k.cu"]
    assert DEVICE_CODE[name] in left
    assert "cudaFree" not in left
    assert left.count("\n") == text.count("\n")


def test_what_an_entry_names_stays() -> None:
    text = "constexpr int kRows = 6; constexpr int kOther = 7;\ntemplate <int N> __global__ void k() {}\n"
    left = without_host_code({"k.cu": text}, ["k<kRows>"])["k.cu"]
    assert "kRows" in left
    assert "kOther" not in left


def test_a_type_of_one_file_that_another_needs_stays() -> None:
    files = {"k.cu": "__global__ void k(S* s) { s->x = 1; }\n", "s.h": "struct S { int x; void host(); };\n"}
    assert without_host_code(files)["s.h"] == "struct S { int x;  };\n"


def test_a_variable_is_named_by_its_name_alone() -> None:
    """Not by the namespace of its type, and not by the types that its template takes."""
    text = "static const std::map<int, Launcher> launchers = {{1, run}};\nA<3>::B b{1}, *c;\nint bits : 3;\n"
    assert [one.names for one in declarations(text)] == [("launchers",), ("b", "c"), ("bits",)]


def test_braces_that_branches_share_are_left_alone() -> None:
    text = "#ifdef A\nvoid f(int a) {\n#else\nvoid f() {\n#endif\n}\n"
    with pytest.raises(Unbalanced):
        declarations(text)
    assert without_host_code({"k.cu": text}) == {"k.cu": text}


def test_a_file_that_compiles_as_it_is_stays_as_it_is(tmp_path: Path) -> None:
    """A host function that compiles may be what a macro's text calls."""
    text = "static int plain(int v) { return v + 1; }\n__global__ void k(int* p) { *p = plain(1); }\n"
    (tmp_path / "k.cu").write_text(text)
    assert build_host(tmp_path, tmp_path / "k.cu", ["k"]).executable.is_file()
