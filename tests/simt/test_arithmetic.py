"""Conversions and intrinsics, against numpy's or exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from audit.compile.host import HostBuild

from .programs import build, launch


@pytest.fixture(scope="module")
def program() -> HostBuild:
    return build(
        "arithmetic",
        ["to_half", "to_float", "halves", "to_fp8", "from_fp8", "integers", "rounding", "contraction"],
    )


def floats() -> np.ndarray:
    """Every f16, its neighbours in f32 and the midpoints between; then random bits."""
    halves = np.arange(0x10000, dtype=np.uint32).astype(np.uint16).view(np.float16).astype(np.float32)
    halves = halves[np.isfinite(halves)]
    middles = ((halves[1:].astype(np.float64) + halves[:-1]) / 2).astype(np.float32)
    bits = np.random.default_rng(1).integers(0, 2**32, 50_000, np.uint32).view(np.float32)
    around = [np.nextafter(middles, np.float32(side)) for side in (-np.inf, np.inf)]
    special = np.array([65504, 65519.996, 65520, 65536, 1e30, np.inf, -np.inf, 2.0**-25, 2.0**-24], np.float32)
    return np.concatenate([halves, middles, *around, bits[~np.isnan(bits)], special])


def test_float_to_half(program: HostBuild, tmp_path: Path) -> None:
    x = floats()
    ended = launch(program, tmp_path, "to_half", 1, 64, x, np.zeros(len(x), np.uint16), f"i32:{len(x)}")
    with np.errstate(over="ignore"):
        assert np.array_equal(ended.buffers["b1"], x.astype(np.float16).view(np.uint16))
    nan = np.array([0x7FC00001, 0xFFA00000], np.uint32).view(np.float32)
    ended = launch(program, tmp_path, "to_half", 1, 1, nan, np.zeros(2, np.uint16), "i32:2")
    assert ended.buffers["b1"].tolist() == [0x7FFF, 0x7FFF]


def test_half_to_float(program: HostBuild, tmp_path: Path) -> None:
    bits = np.arange(0x10000, dtype=np.uint32).astype(np.uint16)
    ended = launch(program, tmp_path, "to_float", 1, 64, bits, np.zeros(len(bits), np.float32), f"i32:{len(bits)}")
    got, expected = ended.buffers["b1"], bits.view(np.float16).astype(np.float32)
    finite = ~np.isnan(expected)
    assert np.array_equal(got.view(np.uint32)[finite], expected.view(np.uint32)[finite])
    assert set(got.view(np.uint32)[~finite].tolist()) == {0x7FFFFFFF}


def exactly_rounded(value: Fraction) -> np.float16:
    """The f16 nearest to an exact value, ties to even; found by comparing, not by rounding twice."""
    guess = np.float16(float(value)) if abs(value) < 65520 else np.float16(np.inf if value > 0 else -np.inf)
    if np.isinf(guess):
        return guess
    around = {np.nextafter(guess, np.float16(-np.inf)), guess, np.nextafter(guess, np.float16(np.inf))}
    finite = [half for half in around if np.isfinite(half)]
    return min(finite, key=lambda half: (abs(Fraction(float(half)) - value), int(half.view(np.uint16)) & 1))


def test_half_arithmetic_is_rounded_once(program: HostBuild, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    n = 3000
    a, b, c = (rng.integers(0, 2**16, n, np.uint32).astype(np.uint16).view(np.float16) for _ in range(3))
    keep = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    a, b, c = a[keep], b[keep], c[keep]
    # A sum that binary64 cannot hold: 2^14 * 2^15, less the smallest number, around a tie.
    a, b, c = (
        np.concatenate([x, np.array(extra, np.float16)])
        for x, extra in ((a, [1.0009765625, 2**-12]), (b, [1.00048828125 * 2, 2**-12]), (c, [-(2.0**-24), 2.0**-24]))
    )
    ended = launch(program, tmp_path, "halves", 1, 32, a, b, c, np.zeros((6, len(a)), np.float16), f"i32:{len(a)}")
    got = ended.buffers["b3"]
    for i in range(len(a)):
        x, y, z = (Fraction(float(value[i])) for value in (a, b, c))
        exact = [x + y, x - y, x * y, x * y + z, x * y + 1]
        assert [float(half) for half in got[:5, i]] == [float(exactly_rounded(value)) for value in exact], (x, y, z)
    assert np.array_equal(got[5], np.maximum(-a, b))


def e4m3_values() -> np.ndarray:
    """The value of codes 0..0x7E, from the format's definition."""
    return np.array(
        [m * 2.0**-9 if e == 0 else (8 + m) * 2.0 ** (e - 10) for e in range(16) for m in range(8)][:127], np.float64
    )


def test_fp8_to_half(program: HostBuild, tmp_path: Path) -> None:
    ended = launch(program, tmp_path, "from_fp8", 1, 256, np.zeros((2, 256), np.uint16))
    e4m3, e5m2 = ended.buffers["b0"]
    values = e4m3_values().astype(np.float16)
    assert np.array_equal(e4m3[:127], values.view(np.uint16))
    assert np.array_equal(e4m3[128:255], (-values).view(np.uint16))
    assert e4m3[127] == e4m3[255] == 0x7FFF
    codes = np.arange(256, dtype=np.uint16)
    numbers = (codes & 0x7F) <= 0x7C
    assert np.array_equal(e5m2[numbers], (codes << 8)[numbers])
    assert set(e5m2[~numbers].tolist()) == {0x7FFF}


def test_float_to_fp8(program: HostBuild, tmp_path: Path) -> None:
    values = e4m3_values()
    middles = (values[1:] + values[:-1]) / 2
    x = np.concatenate([values, middles, middles * (1 - 2.0**-20), middles * (1 + 2.0**-20), [463.9, 464.1, 1e9]])
    x = np.concatenate([x, -x]).astype(np.float32)
    ended = launch(program, tmp_path, "to_fp8", 1, 32, x, np.zeros((4, len(x)), np.uint8), f"i32:{len(x)}")
    saturated, unsaturated, _, typed = ended.buffers["b1"]
    for value, code, open_code in zip(x, saturated, unsaturated, strict=True):
        magnitude = abs(float(value))
        nearest = min(range(127), key=lambda k: (abs(values[k] - magnitude), k & 1))
        sign = 0x80 if np.signbit(value) else 0
        assert code == sign | nearest
        assert open_code == sign | (nearest if magnitude <= 464 else 0x7F)
    assert np.array_equal(typed, saturated)


def test_integer_intrinsics(program: HostBuild, tmp_path: Path) -> None:
    x = np.random.default_rng(3).integers(0, 2**32, 100, np.uint32)
    x[:4] = [0, 1, 0x80000000, 0xFFFFFFFF]
    ended = launch(program, tmp_path, "integers", 1, 32, x, np.zeros((100, 9), np.uint32), "i32:100")
    for word, row in zip(x.tolist(), ended.buffers["b1"].tolist(), strict=True):
        binary = f"{word:032b}"
        signed = word - 2**32 if word >= 2**31 else word
        assert row == [
            binary.count("1"),
            len(binary) - len(binary.lstrip("0")),
            binary[::-1].find("1") + 1,
            int(binary[::-1], 2),
            word * 0x9E3779B9 >> 32,
            word & 0xFFFF | 0x6677 << 16,
            ((0x80000001 << 32 | word) << 4 >> 32) & 0xFFFFFFFF,
            (min(signed, -1) + max(word, 7)) % 2**32,
            word,
        ]


def test_conversions_to_integers(program: HostBuild, tmp_path: Path) -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.7, 3e9, -3e9, np.nan, 2147483520.0], np.float32)
    ended = launch(program, tmp_path, "rounding", 1, 32, x, np.zeros((len(x), 4), np.int32), f"i32:{len(x)}")
    low, high = -(2**31), 2**31 - 1
    for value, row in zip(x.tolist(), ended.buffers["b1"].tolist(), strict=True):
        exact = [0] * 4 if np.isnan(value) else [f(value) for f in (np.rint, np.trunc, np.floor, np.ceil)]
        assert row == [max(low, min(high, int(whole))) for whole in exact]


def test_nothing_is_contracted(program: HostBuild, tmp_path: Path) -> None:
    x = np.array([1 + 2.0**-12, 1 + 2.0**-12, -(1 + 2.0**-11), np.nan, 3, 0], np.float32)
    y = launch(program, tmp_path, "contraction", 1, 1, x, np.zeros(6, np.float32)).buffers["b1"]
    assert y[:4].tolist() == [0.0, 0.0, 2.0**-24, 6.0]
    assert not np.signbit(y[4])
    assert np.signbit(y[5])
