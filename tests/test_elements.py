"""Elements: every code of every dtype is a number and comes back, packed ones in halves of bytes, low half first."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from audit import arena, elements, formats
from audit.arena import Snapshot
from audit.errors import ProjectError
from audit.spec import DTYPES, PACKED, Buffer, Case

CASE = Case("s", "op", {"rows": 3, "n": 4})


@pytest.mark.parametrize("dtype", DTYPES)
def test_bytes_become_numbers_and_bytes_again(dtype: str) -> None:
    data = np.random.default_rng(5).integers(0, 2 if dtype == "bool" else 256, 64, np.uint8)
    codes = elements.codes_of(data, dtype)
    numbers = elements.numbers_of(codes, dtype)
    assert numbers.dtype == DTYPES[dtype]
    assert (elements.codes_in(numbers) == codes).all()
    assert elements.bytes_in(numbers, dtype).tobytes() == data.tobytes()
    assert elements.bytes_in(codes, dtype).tobytes() == data.tobytes()
    assert elements.is_number(numbers.dtype)
    assert elements.is_float(numbers.dtype) == (dtype in formats.FLOATS.values())


def test_the_first_of_two_packed_elements_is_the_low_half() -> None:
    assert elements.codes_of(np.array([0x21, 0x43], np.uint8), "u4").tolist() == [1, 2, 3, 4]
    signed = elements.numbers_of(elements.codes_of(np.array([0x8F], np.uint8), "i4"), "i4")
    assert signed.astype(int).tolist() == [-1, -8]


@pytest.mark.parametrize("dtype", sorted(PACKED))
def test_a_packed_buffer_counts_elements_in_its_dimensions_and_bytes_in_its_size(dtype: str) -> None:
    buffer = Buffer("w", dtype, "rows n", "in")
    assert (buffer.shape(CASE), buffer.nbytes(CASE)) == ((3, 4), 6)
    given = np.arange(12).reshape(3, 4).astype(DTYPES[dtype])
    data = np.frombuffer(arena.encode_input(buffer, CASE, {"w": given}), np.uint8)
    assert data.size == 6
    back = arena.typed(Snapshot(data, ()), buffer, CASE)
    assert (back.dtype, back.shape) == (given.dtype, given.shape)
    assert (back == given).all()


def test_a_packed_buffer_of_odd_rows_is_refused() -> None:
    with pytest.raises(ProjectError, match=r"buffer w: dimension n=3: expected an even size, since two of u4 share"):
        Buffer("w", "u4", "rows=2 n=3", "in").nbytes(CASE)


@pytest.mark.parametrize("dtype", ["bf16", "e4m3", "e5m2", "e2m1"])
def test_every_number_of_a_narrow_format_comes_back_and_every_middle_goes_to_the_even_one(dtype: str) -> None:
    bits = 4 if dtype == "e2m1" else 8 * DTYPES[dtype].itemsize
    codes = np.arange(2 ** (bits - 1)).astype(f"u{DTYPES[dtype].itemsize}")
    with np.errstate(invalid="ignore"):  # signalling NaNs
        values = formats.stored_values(dtype, codes).astype(np.float64)
    ascending = values[np.isfinite(values)]
    assert (np.diff(ascending) > 0).all()
    assert (formats.encoded(dtype, ascending).astype(np.float64) == ascending).all()
    below, above = ascending[:-1], ascending[1:]
    middle = (below + above) / 2
    even = np.where(np.arange(below.size) % 2 == 0, below, above)
    assert (formats.encoded(dtype, middle).astype(np.float64) == even).all()
    assert (formats.encoded(dtype, -np.nextafter(middle, np.inf)).astype(np.float64) == -above).all()
    assert (formats.encoded(dtype, np.nextafter(middle, 0)).astype(np.float64) == below).all()
    steps = formats.ulp_distance(formats.encoded(dtype, -below), formats.encoded(dtype, above))
    assert steps.tolist() == [2 * at + 1 for at in range(below.size)]


def test_ml_dtypes_rounds_f64_twice_and_this_module_does_not() -> None:
    just_above = np.array([1 + 2**-8 + 2**-40])
    assert just_above.astype(ml_dtypes.bfloat16).astype(float) == 1.0  # what a cast of the library does
    assert formats.encoded("bf16", just_above).astype(float) == 1 + 2**-7


@pytest.mark.parametrize(
    ("dtype", "value", "is_beyond"),
    [
        ("f32", 1e39, True), ("f32", np.inf, False), ("f32", np.nan, False), ("f16", 65519.9, False),
        ("f16", 65520, True), ("bf16", 3.3962e38, True), ("bf16", 3.39e38, False), ("e4m3", 464, False),
        ("e4m3", 464.001, True), ("e4m3", -np.inf, True), ("e4m3", np.nan, False), ("e5m2", 61439, False),
        ("e5m2", 61440, True), ("e5m2", np.inf, False), ("e2m1", 6.99, False), ("e2m1", 7, True),
        ("e2m1", np.nan, True), ("e2m1", np.inf, True),
    ],
)  # fmt: skip
def test_what_a_format_does_not_have(dtype: str, value: float, is_beyond: bool) -> None:
    assert formats.beyond(dtype, np.array([value], np.float64)).tolist() == [is_beyond]
