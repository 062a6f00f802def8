"""Kernels, their scopes, templates and parameters, as a source declares them."""

from __future__ import annotations

from pathlib import Path

import pytest

from audit.compare.preprocess import preprocess
from audit.compare.signature import Signature, signature_of
from audit.errors import PlanError

SOURCE = r"""
#ifndef __CUDACC__
#define __global__
#endif
#define KERNEL(name) extern "C" __global__ void name
#define BOUNDED __global__ void __launch_bounds__(128, 2)
#define SCALE(T, suffix) __global__ void scale_##suffix(const T* x, T* y, int n) { }
#define RESTRICT __restrict__
#define PAIR const float* x, float* y
typedef float scalar_t;
using V = float4;
typedef float* fp;
using cfp = const float*;
enum Mode : unsigned { A, B };
enum class Other { X };
struct S { int a; float b; };
template <typename T, int N = 4> __global__ void declared(const T* __restrict__ x, T y[], T a, int n = (1 < 2));
template <typename T, int N> __global__ void declared(const T* __restrict__ x, T* y, T a, int n) { }
namespace outer { namespace inner {
template <int R, int D = 256> __launch_bounds__(R * 32) __global__ void split(float const *x, float *const y,
    std::size_t n, unsigned int, Mode m, Other o) { }
} __global__ void twice(float** xs, S s, void* p) { } }
namespace a::b { __global__ void twice(int n) { } }
KERNEL(softmax)(const scalar_t* RESTRICT x, fp y, cfp z, V* q) { if (1) { } }
BOUNDED bounded(PAIR, unsigned char c, [[maybe_unused]] bool b, const __half h, long long int q, unsigned) { }
SCALE(double, f64)
#if 0
__global__ void dead(int a) { }
#elif defined(FAST) && FAST > 2
__global__ void chosen(int a) { }
#else
__global__ void chosen(float* a) { }
#endif
template __global__ void declared<float, 4>(const float*, float*, float, int);
static __global__ __attribute__((noinline)) void alone(float* __restrict y, struct S* UNKNOWN s) { }
__global__ void nothing(void) { }
__global__ void over(int n) { }
__global__ void over(float n) { }
int main() { softmax<<<1, 2>>>(a); }
"""


def signature(tmp_path: Path, entry: str, **defines: str) -> Signature:
    """The kernel of SOURCE that an entry names."""
    (tmp_path / "kernels.cu").write_text(SOURCE)
    return signature_of(preprocess(tmp_path / "kernels.cu", defines), entry, "kernels.cu")


@pytest.mark.parametrize(
    ("entry", "launched", "parameters"),
    [
        ("declared<float>", "declared<float>", "x:float:1:const y:float:1 a:float:0 n:int:0"),
        ("declared<float4, 8>", "declared<float4,8>", "x:float4:1:const y:float4:1 a:float4:0 n:int:0"),
        (
            "split<6>",
            "outer::inner::split<6>",
            "x:float:1:const y:float:1 n:size_t:0 argument 4:unsigned int:0 m:unsigned:0 o:int:0",
        ),
        ("outer::twice", "outer::twice", "xs:float:2 s:S:0 p:void:1"),
        ("a::b::twice", "a::b::twice", "n:int:0"),
        ("softmax", "softmax", "x:float:1:const y:float:1 z:float:1:const q:float4:1"),
        (
            "bounded",
            "bounded",
            "x:float:1:const y:float:1 c:unsigned char:0 b:bool:0 h:__half:0:const q:long long int:0 "
            "argument 7:unsigned:0",
        ),
        ("scale_f64", "scale_f64", "x:double:1:const y:double:1 n:int:0"),
        ("chosen", "chosen", "a:float:1"),
        ("alone", "alone", "y:float:1 s:S:1"),
        ("nothing", "nothing", ""),
    ],
)
def test_a_kernel_by_its_entry(tmp_path: Path, entry: str, launched: str, parameters: str) -> None:
    found = signature(tmp_path, entry)
    assert found.entry.replace(" ", "") == launched
    shown = (f"{one.name}:{one.type}:{one.pointers}{':const' if one.const else ''}" for one in found.parameters)
    assert " ".join(shown) == parameters


def test_a_macro_of_the_command_line_decides_a_condition(tmp_path: Path) -> None:
    assert signature(tmp_path, "chosen", FAST="3").parameters[0].type == "int"


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("twice", "one of outer::twice, a::b::twice, but got twice"),
        ("declared", "such as 'declared<float, 128>', but got no template arguments"),
        ("absent", "but got absent"),
        ("dead", "but got dead"),
        ("", "but got none; name one"),
        ("alone<1>", "which is no template"),
        ("split<1, 2, 3>", "with a value for each"),
        ("over", "2 overloads"),
    ],
)
def test_an_entry_that_names_no_one_kernel(tmp_path: Path, entry: str, words: str) -> None:
    with pytest.raises(PlanError) as raised:
        signature(tmp_path, entry)
    assert words in str(raised.value)


def test_a_kernel_and_its_types_in_an_included_file(tmp_path: Path) -> None:
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc/types.h").write_text('#include "types.h"\nusing real = double;\n')
    (tmp_path / "inc/k.cuh").write_text('#include "types.h"\n__global__ void k(real* y) { }\n')
    (tmp_path / "a.cu").write_text('#include "inc/k.cuh"\n#include <absent.h>\n')
    source = preprocess(tmp_path / "a.cu", {})
    assert signature_of(source, "", "a.cu").parameters[0].type == "double"
    assert [file.name for file in source.files] == ["a.cu", "k.cuh", "types.h"]
