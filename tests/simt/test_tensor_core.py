"""The tensor-core model: fast == plain == integer oracle, bit for bit, and answers worked out by hand."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from . import tensor_core_oracle as oracle
from .tensor_core_operands import (
    FAMILIES,
    Bits16,
    Bits32,
    f16_with_fields,
    f32_with_fields,
    floats,
    operands,
    sprinkle,
)

SIMT = Path(__file__).parents[2] / "audit" / "simt"
BASELINE = [
    "-std=c++17",
    "-O2",
    "-mavx2",
    "-mfma",
    "-mf16c",
    "-ffp-contract=off",
    "-Wall",
    "-Wextra",
    "-Werror",
]
SANITIZED = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
SOURCES = ["tensor_core.cc", "tensor_core_plain.cc"]
ARCHITECTURES = ["sm_70", "sm_80", "sm_90"]

SHIM = r"""
#include <stdexcept>
#include "tensor_core.h"
// `count` independent products, one after the other in each array; 1 if the shape was refused.
extern "C" int products(int plain, int arch, int count, int m, int n, int k, const std::uint16_t* a,
                        const std::uint16_t* b, const float* c, float* d) {
  const auto product = plain ? simt::tensor_core_f16_plain : simt::tensor_core_f16;
  try {
    for (int i = 0; i < count; ++i, a += m * k, b += k * n, c += m * n, d += m * n)
      product(static_cast<simt::Arch>(arch), m, n, k, a, b, c, d);
  } catch (const std::invalid_argument&) {
    return 1;
  }
  return 0;
}
"""

# Heap arrays of exact size, so that a stray access of the fast form meets a red zone; c is d.
SANITIZED_MAIN = r"""
#include <cstdio>
#include <vector>
#include "tensor_core.h"
int main() {
  unsigned state = 1;
  for (auto arch : {simt::Arch::sm_70, simt::Arch::sm_80, simt::Arch::sm_90})
    for (int m : {0, 1, 15, 16, 17})
      for (int n : {0, 8, 16, 24})
        for (int k : {8, 16, 48}) {
          std::vector<std::uint16_t> a(m * k), b(k * n);
          std::vector<float> d(m * n);
          auto* words = reinterpret_cast<std::uint32_t*>(d.data());
          for (auto& x : a) x = static_cast<std::uint16_t>((state = state * 1664525u + 1013904223u) >> 16);
          for (auto& x : b) x = static_cast<std::uint16_t>((state = state * 1664525u + 1013904223u) >> 16);
          for (int i = 0; i < m * n; ++i) words[i] = state = state * 1664525u + 1013904223u;
          simt::tensor_core_f16(arch, m, n, k, a.data(), b.data(), d.data(), d.data());
        }
  std::puts("done");
}
"""

Product = Callable[..., Bits32]


def compile_with_gxx(output: Path, *arguments: str | Path) -> Path:
    gxx = shutil.which("g++")
    if gxx is None:
        pytest.fail("expected a C++17 compiler named g++ on PATH, found none; install g++ 12 or newer")
    command = [gxx, *map(str, arguments), f"-I{SIMT}", "-o", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
    return output


@pytest.fixture(scope="session")
def product(tmp_path_factory: pytest.TempPathFactory) -> Product:
    """product(architecture, a[count,m,k], b[count,k,n], c[count,m,n]) -> d, all as bit patterns."""
    folder = tmp_path_factory.mktemp("tensor_core")
    (folder / "shim.cc").write_text(SHIM)
    sources = [folder / "shim.cc", *(SIMT / x for x in SOURCES)]
    library = ctypes.CDLL(
        str(compile_with_gxx(folder / "shim.so", *BASELINE, "-Wconversion", "-shared", "-fPIC", *sources))
    )

    def call(
        architecture: str, a: Bits16, b: Bits16, c: Bits32, *, plain: bool = False, in_place: bool = False
    ) -> Bits32:
        a, b, c = (np.ascontiguousarray(x) for x in (a, b, c))
        count, m, k = a.shape
        n = b.shape[2]
        assert (a.dtype, b.dtype, c.dtype) == (np.uint16, np.uint16, np.uint32)
        assert (b.shape, c.shape) == ((count, k, n), (count, m, n))
        d = c.copy() if in_place else np.full_like(c, 0xDEADBEEF)
        source = d if in_place else c
        refused = library.products(
            plain,
            ARCHITECTURES.index(architecture),
            *(count, m, n, k),
            *(ctypes.c_void_p(x.ctypes.data) for x in (a, b, source, d)),
        )
        if refused:
            raise ValueError(f"shape m={m} n={n} k={k} was refused")
        return d

    return call


def oracle_product(architecture: str, a: Bits16, b: Bits16, c: Bits32) -> Bits32:
    d = np.empty_like(c)
    for i, row, column in np.ndindex(c.shape):
        d[i, row, column] = oracle.chain(
            a[i, row].tolist(), b[i, :, column].tolist(), int(c[i, row, column]), architecture
        )
    return d


def assert_same_bits(actual: Bits32, expected: Bits32, a: Bits16, b: Bits16, c: Bits32) -> None:
    wrong = np.argwhere(actual != expected)
    if len(wrong):
        i, row, column = wrong[0]
        pytest.fail(
            f"{len(wrong)} of {actual.size} results differ; the first at {i, row, column}: expected "
            f"{expected[i, row, column]:#010x}, got {actual[i, row, column]:#010x} from "
            f"c={c[i, row, column]:#010x} a={a[i, row]} b={b[i, :, column]}"
        )


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("family", FAMILIES)
def test_fast_equals_plain_in_bulk(product: Product, architecture: str, family: str) -> None:
    """33 x 77,824 = 2.6 million results."""
    for k, count in ((8, 32), (16, 192), (32, 48), (64, 32)):
        a, b, c = operands(family, seed=1, count=count, k=k)
        assert_same_bits(product(architecture, a, b, c), product(architecture, a, b, c, plain=True), a, b, c)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("family", FAMILIES)
def test_both_forms_equal_the_integer_oracle(product: Product, architecture: str, family: str) -> None:
    """33 x 1,024 = 33,792 results."""
    for k in (8, 16, 32, 64):
        a, b, c = operands(family, seed=2, count=1, k=k)
        expected = oracle_product(architecture, a, b, c)
        assert_same_bits(product(architecture, a, b, c), expected, a, b, c)
        assert_same_bits(product(architecture, a, b, c, plain=True), expected, a, b, c)


def test_the_families_tell_the_architectures_apart_and_reach_special_results(product: Product) -> None:
    """Equality above says little unless the operands make F, L, the specials and the signs matter."""
    for family in ("normal", "wide", "cancelling", "same_exponent"):
        a, b, c = operands(family, seed=1, count=16, k=16)
        d70, d80, d90 = (product(architecture, a, b, c) for architecture in ARCHITECTURES)
        for one, other in ((d70, d80), (d80, d90), (d70, d90)):
            assert np.mean(one != other) > 0.01, family
    a, b, c = operands("special", seed=1, count=16, k=16)
    d = product("sm_90", a, b, c)
    finite = (d & 0x7F800000) != 0x7F800000
    shares = [np.mean(d == x) for x in (oracle.NAN, oracle.INFINITY, oracle.MINUS_INFINITY)]
    assert min(*shares, np.mean(finite)) > 0.05


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize(("m", "n", "k"), [(1, 8, 8), (7, 24, 16), (17, 8, 48), (40, 40, 32), (16, 16, 8)])
def test_shapes_that_are_not_whole_tiles(product: Product, architecture: str, m: int, n: int, k: int) -> None:
    rng = np.random.default_rng([m, n, k])
    a, b = f16_with_fields(rng, (3, m, k), 5, 25), f16_with_fields(rng, (3, k, n), 5, 25)
    sprinkle(rng, b, 0.01, [0x7C00, 0xFC00, 0x0000])
    c = f32_with_fields(rng, (3, m, n), 110, 140)
    expected = product(architecture, a, b, c, plain=True)
    assert_same_bits(product(architecture, a, b, c), expected, a, b, c)
    assert_same_bits(product(architecture, a, b, c, in_place=True), expected, a, b, c)


@pytest.mark.parametrize(("m", "n", "k"), [(16, 4, 16), (16, 16, 0), (16, 16, 4), (16, 16, 24), (16, 17, 16)])
def test_a_shape_outside_the_contract_is_refused(product: Product, m: int, n: int, k: int) -> None:
    a, b, c = np.zeros((1, m, k), np.uint16), np.zeros((1, k, n), np.uint16), np.zeros((1, m, n), np.uint32)
    with pytest.raises(ValueError, match="was refused"):
        product("sm_90", a, b, c)


HALF = st.one_of(
    st.integers(0, 0xFFFF),
    st.sampled_from([0, 0x8000, 1, 0x8001, 0x03FF, 0x0400, 0x3C00, 0xBC00, 0x3FFF, 0x7BFF, 0xFBFF]),
    st.sampled_from([0x7C00, 0xFC00, 0x7C01, 0xFE00]),
)
FLOAT = st.one_of(
    st.integers(0, 2**32 - 1),
    st.sampled_from([0, 0x80000000, 1, 0x80000001, 0x007FFFFF, 0x00800000, 0x3F800000, 0x7F7FFFFF, 0xFF7FFFFF]),
    st.sampled_from([0x7F800000, 0xFF800000, 0x7F800001, 0x7FC00000, 0xFFC00000]),
)


@settings(max_examples=400, deadline=None)
@given(data=st.data(), architecture=st.sampled_from(ARCHITECTURES), k=st.sampled_from([8, 16, 32, 64]))
def test_one_element_equals_the_integer_oracle(
    product: Product, data: st.DataObject, architecture: str, k: int
) -> None:
    finite = data.draw(st.booleans())
    half = HALF.filter(lambda x: x & 0x7C00 != 0x7C00) if finite else HALF
    # A small pool of values: repeats make equal exponents and cancellation likely.
    pool = data.draw(st.lists(half, min_size=1, max_size=6))
    a = data.draw(st.lists(st.sampled_from(pool), min_size=k, max_size=k))
    b = data.draw(st.lists(st.sampled_from(pool), min_size=k, max_size=k))
    signs = data.draw(st.integers(0, 2**k - 1))
    a = [x ^ (signs >> i & 1) << 15 for i, x in enumerate(a)]
    c = data.draw(FLOAT)
    expected = oracle.chain(a, b, c, architecture)
    a_matrix = np.array(a, np.uint16).reshape(1, 1, k)
    b_matrix = np.zeros((1, k, 8), np.uint16)
    b_matrix[0, :, 5] = b
    c_matrix = np.full((1, 1, 8), c, np.uint32)
    for plain in (False, True):
        assert product(architecture, a_matrix, b_matrix, c_matrix, plain=plain)[0, 0, 5] == expected


# --- answers that need no model ---


LARGE, MINUS_LARGE, SMALL = (2.0**15, 1.0), (-(2.0**15), 1.0), (2.0**-12, 2.0**-12)


def one(product: Product, arch: str, terms: dict[int, tuple[float, float]], c: float = 0.0, k: int = 16) -> float:
    """c plus the products {position: (a, b)}, all other operands +0; fast, plain and oracle must agree."""
    a = np.zeros((1, 1, k), np.float16)
    b = np.zeros((1, k, 8), np.float16)
    for position, (x, y) in terms.items():
        a[0, 0, position], b[0, position, :] = x, y
    bits = a.view(np.uint16), b.view(np.uint16), floats(np.full((1, 1, 8), c))
    d = product(arch, *bits)
    assert_same_bits(d, product(arch, *bits, plain=True), *bits)
    assert_same_bits(d, oracle_product(arch, *bits), *bits)
    return float(d.view(np.float32)[0, 0, 0])


def test_how_many_bits_a_term_keeps(product: Product) -> None:
    """Beside 1 the unit is 2^-F: two terms of 2^-24, or four of 2^-25, make a last place of 1 or vanish."""
    two = {0: (1.0, 1.0), 1: (2.0**-12, 2.0**-12), 2: (2.0**-12, 2.0**-12)}
    four = {0: (1.0, 1.0)} | dict.fromkeys((1, 2, 3), (2.0 ** (-12), 2.0 ** (-13)))  # the fourth is c
    up = 1 + 2.0**-23
    expected = {"sm_70": (1.0, 1.0), "sm_80": (up, 1.0), "sm_90": (up, up)}
    for arch in ARCHITECTURES:
        assert (one(product, arch, two), one(product, arch, four, c=2.0**-25)) == expected[arch]


def test_how_many_products_share_a_step(product: Product) -> None:
    """2^-24 is lost in the step that holds 2^15 and survives in a later one, 2^15 - 2^15 having become 0."""
    survives = {
        3: [],
        4: ["sm_70"],
        7: ["sm_70"],
        8: ["sm_70", "sm_80"],
        15: ["sm_70", "sm_80"],
        16: ARCHITECTURES,
    }
    for position, architectures in survives.items():
        for arch in ARCHITECTURES:
            d = one(product, arch, {0: LARGE, 1: MINUS_LARGE, position: SMALL}, k=32)
            assert d == (2.0**-24 if arch in architectures else 0.0), (position, arch)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_steps_run_in_ascending_k(product: Product, arch: str) -> None:
    assert one(product, arch, {0: LARGE, 16: MINUS_LARGE, 32: SMALL}, k=48) == 2.0**-24
    assert one(product, arch, {0: SMALL, 16: MINUS_LARGE, 32: LARGE}, k=48) == 0.0


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_term_is_truncated_toward_zero(product: Product, arch: str, sign: int) -> None:
    """1 - 1 + x shows what is left of x: nothing of 3/4 of a unit of 2^-F, one unit of 1 3/4."""
    f = oracle.ARCHITECTURES[arch][0]
    for units, kept in ((0.75, 0), (1.75, 1)):
        x = (sign * units * 2.0**-12, 2.0 ** (12 - f))
        assert one(product, arch, {0: (1, 1), 1: (-1, 1), 2: x}) == sign * kept * 2.0**-f


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_sum_is_truncated_toward_zero(product: Product, arch: str, sign: int) -> None:
    """From 4 to 8 the last place is 2^-21. 5.25 and 3 * 2^-23 is three quarters of the way to the next."""
    terms = {0: (sign * 1.75, 1), 1: (sign * 1.75, 1), 2: (sign * 1.5 * 2.0**-11, 2.0**-11)}
    assert one(product, arch, terms, c=sign * 1.75) == sign * 5.25


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_exponents_are_those_of_the_operands(product: Product, arch: str) -> None:
    f = oracle.ARCHITECTURES[arch][0]
    unit = (2.0**-12, 2.0 ** (12 - f))
    # 1.5*1.5 has exponent 0, not the 1 of 2.25: the unit stays 2^-F. With a 2 in it, it is 2^(1-F).
    assert one(product, arch, {0: (1.5, 1.5), 1: (-1.5, 1.5), 2: unit}) == 2.0**-f
    assert one(product, arch, {0: (2.0, 1.0), 1: (-2.0, 1.0), 2: unit}) == 0.0
    # The subnormal 2^-24 has exponent -14, so 2^-46 is lost beside it; beside a zero it is not.
    least, tiny = 2.0**-24, (2.0**-24, 2.0**-22)
    assert one(product, arch, {0: (least, 1), 1: (-least, 1), 2: tiny}) == 0.0
    assert one(product, arch, {0: (0.0, 1), 1: (0.0, 65504.0), 2: tiny}) == 2.0**-46


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_largest_sum_of_a_step(product: Product, arch: str, sign: int) -> None:
    """L products of 65504^2 and a c of the same exponent: past 2^31 units where L is 16."""
    f, length = oracle.ARCHITECTURES[arch]
    c = (2 - 2.0**-23) * 2.0**30
    exact = length * 65504**2 + int(c)
    place = 2 ** (exact.bit_length() - 24)
    d = one(product, arch, dict.fromkeys(range(length), (sign * 65504.0, 65504.0)), c=sign * c)
    assert d == sign * (exact // place * place), f


def test_specials(product: Product) -> None:
    inf, nan = float("inf"), float("nan")
    for arch in ARCHITECTURES:
        for terms, c, expected in (
            ({0: (inf, 1)}, 0.0, inf),
            ({15: (inf, -(2.0**-24))}, 0.0, -inf),
            ({0: (-inf, -inf)}, 1.0, inf),
            ({0: (inf, 1), 1: (65504, 65504)}, inf, inf),
            ({}, -inf, -inf),
            ({0: (inf, 0.0)}, 0.0, nan),
            ({0: (0.0, -inf)}, 0.0, nan),
            ({0: (inf, 1), 1: (-inf, 1)}, 0.0, nan),
            ({0: (inf, 1), 15: (-1, inf)}, 0.0, nan),  # in different steps on sm_70 and sm_80
            ({0: (inf, 1), 31: (-1, inf)}, 0.0, nan),
            ({31: (-inf, 1)}, inf, nan),
            ({7: (1, nan)}, 0.0, nan),
            ({7: (nan, 0)}, inf, nan),
            ({}, nan, nan),
        ):
            d = one(product, arch, terms, c=c, k=32)
            assert d == expected or (np.isnan(d) and np.isnan(expected)), (arch, terms, c)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_f16_times_one(product: Product, arch: str, plain: bool) -> None:
    """In either operand: the exact conversion to binary32, but -0 is +0, and every NaN 0x7FFFFFFF."""
    every = np.arange(2**16, dtype=np.uint16)
    with np.errstate(invalid="ignore"):
        expected = floats(every.view(np.float16))
    expected[0x8000] = 0
    expected[(every & 0x7FFF) > 0x7C00] = oracle.NAN
    a, b, c = (
        np.zeros((1, 1, 8), np.uint16),
        np.zeros((1, 8, 2**16), np.uint16),
        np.zeros((1, 1, 2**16), np.uint32),
    )
    a[0, 0, 3], b[0, 3, :] = 0x3C00, every
    assert_same_bits(product(arch, a, b, c, plain=plain), expected.reshape(c.shape), a, b, c)
    a, b, c = (
        np.zeros((1, 2**16, 8), np.uint16),
        np.zeros((1, 8, 8), np.uint16),
        np.zeros((1, 2**16, 8), np.uint32),
    )
    a[0, :, 3], b[0, 3, :] = every, 0x3C00
    assert_same_bits(product(arch, a, b, c, plain=plain)[:, :, :1], expected.reshape(1, -1, 1), a, b, c)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_c_alone_comes_back(product: Product, arch: str, plain: bool) -> None:
    """With zero products: every finite c unchanged, subnormals included; -0 becomes +0, NaN the one NaN."""
    rng = np.random.default_rng(3)
    c = rng.integers(0, 2**32, (256, 16, 16), dtype=np.uint32)
    c[:64] &= 0x807FFFFF
    c[0, 0, :4] = [0x80000000, 0x00000000, 0x7F800000, 0xFF800000]
    zero = np.zeros((256, 16, 16), np.uint16)
    expected = c.copy()
    expected[c == 0x80000000] = 0
    expected[(c & 0x7FFFFFFF) > 0x7F800000] = oracle.NAN
    d = product(arch, zero, zero | 0x8000, c, plain=plain)
    assert_same_bits(d, expected, zero, zero, c)


def test_no_stray_access_and_no_undefined_behaviour(tmp_path: Path) -> None:
    (tmp_path / "main.cc").write_text(SANITIZED_MAIN)
    sources = [tmp_path / "main.cc", *(SIMT / x for x in SOURCES)]
    program = compile_with_gxx(tmp_path / "main", *BASELINE, *SANITIZED, *sources)
    done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_the_benchmark_runs_and_meets_ten_million_a_second(tmp_path: Path) -> None:
    """The required rate in 16-term products a core; an idle core does over ten times as much."""
    sources = [Path(__file__).with_name("tensor_core_bench.cc"), *(SIMT / x for x in SOURCES)]
    program = compile_with_gxx(tmp_path / "bench", *BASELINE, *sources)
    done = subprocess.run([program, "100"], capture_output=True, text=True, check=True, timeout=120)
    rates = {tuple(line.split()[:2]): float(line.split()[2]) for line in done.stdout.splitlines()}
    assert set(rates) == {(arch, form) for arch in ARCHITECTURES for form in ("fast", "plain")}
    for arch in ARCHITECTURES:
        assert rates[arch, "fast"] >= 10, done.stdout
