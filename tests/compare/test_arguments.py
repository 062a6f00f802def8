"""What each parameter is given, and what is refused with the place, the expectation and the value."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from audit import formats
from audit.compare.arguments import buffers_for, fitted, scalar_for
from audit.compare.parameters import Parameter, parameter
from audit.compare.signature import Signature
from audit.compare.sizes import extents, rooms
from audit.compare.values import checked
from audit.errors import PlanError, ProjectError
from audit.spec import Buffer


def of(words: str, name: str = "k") -> Signature:
    """A kernel with these parameters, separated by commas."""
    listed = tuple(
        parameter(tuple(one.replace("*", " * ").split()), at, {}) for at, one in enumerate(words.split(","), 1)
    )
    return Signature(name, name, listed)


def typed(kind: str) -> Parameter:
    """A parameter `n` of a type."""
    return parameter((*kind.split(), "n"), 1, {})


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("int", 7, np.int32(7)), ("int", np.array(7)[()], np.int32(7)), ("int", True, np.int32(1)),
        ("int", 7.0, np.int32(7)), ("bool", np.bool_(True), np.uint32(1)), ("char", -3, np.int32(-3)),
        ("unsigned char", 200, np.uint32(200)), ("short", -300, np.int32(-300)), ("size_t", 2**63, np.uint64(2**63)),
        ("long", -(2**40), np.int64(-(2**40))), ("unsigned", np.int64(2**32 - 1), np.uint32(2**32 - 1)),
        ("float", 1, np.float32(1)), ("float", np.float64(0.1), np.float32(0.1)), ("double", 0.1, np.float64(0.1)),
        ("float", float("inf"), np.float32("inf")), ("Handle", np.uint64(5), np.uint64(5)),
    ],
)  # fmt: skip
def test_a_number_as_its_parameter_takes_it(kind: str, value: Any, expected: np.generic) -> None:
    found = scalar_for(typed(kind), value)
    assert (type(found), found) == (type(expected), expected)


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        ("int", 7.5, "an integer from -2147483648"), ("int", 2**31, "an integer from"), ("int", float("nan"), "nan"),
        ("int", float("inf"), "inf"), ("unsigned", -1, "from 0 to"), ("bool", 2, "from 0 to 1"),
        ("char", 200, "from -128 to 127"), ("float", 1e300, "a value that fits"), ("__half", 1.0, "cannot pass"),
        ("S", 3, "a struct cannot be passed by value"), ("int", None, "a number from inputs()"),
        ("int", np.zeros(3), "a number from inputs()"), ("float2", 1.0, "a type of C"),
    ],
)  # fmt: skip
def test_a_number_that_does_not_fit_is_refused(kind: str, value: Any, words: str) -> None:
    with pytest.raises(PlanError, match=r"n \(") as raised:
        scalar_for(typed(kind), value)
    assert words in str(raised.value)


def buffers(
    *words: str, values: dict[str, Any], output: str = "", workspace: str = ""
) -> tuple[list[Buffer], list[str]]:
    """The buffers of kernels with these parameters."""
    sizes = (
        rooms(option, [size] if size else []) for option, size in (("--output", output), ("--workspace", workspace))
    )
    return buffers_for([of(one) for one in words], values, *sizes)


def test_roles_shapes_and_dtypes() -> None:
    values = {"x": np.zeros((7, 4), np.float32), "s": np.zeros(3, np.float32), "n": 7, "z": None}
    found, missing = buffers(
        "const float4* x, float* s, __nv_bfloat16* y, const int* z",
        "const float* x, const float* s, __nv_bfloat16* y, short* w",
        values=values, output="y=n,3", workspace="w=2*n/4",
    )  # fmt: skip
    assert missing == []
    assert [(one.name, one.dtype, one.role, one.dims) for one in found] == [
        ("x", "f32", "in", "n=7 d1=4"), ("s", "f32", "inout", "d0=3"), ("y", "bf16", "out", "n=7 d1=3"),
        ("w", "i16", "scratch", "d0=4"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "values", "output", "words"),
    [
        ("float* y", "double* y", {}, "y=3", "float* in OLD and double* in NEW"),
        ("float** y", "float* y", {}, "y=3", "a table of pointers"),
        ("const float* x", "const float* x", {"x": 5}, "", "expected an array from inputs(), but got 5"),
        ("const float* x", "const float* x", {}, "", "what does x (const float*) hold?"),
        ("float* y", "float* y", {}, "", "how large is y (float*)?"),
        ("void* y", "void* y", {}, "y=3", "what is an element of y (void*)?"),
        ("float* y", "float* y", {"y": np.zeros(3)}, "y=3", "but got both"),
        ("float* y", "float* y", {}, "y=rows", "an integer of inputs() (none)"),
    ],
)
def test_what_is_missing_or_contradicts_is_named(
    old: str, new: str, values: dict[str, Any], output: str, words: str
) -> None:
    _, (missing, *_) = buffers(old, new, values=values, output=output)
    assert words in missing


def test_an_extent_of_a_vector_type_counts_vectors() -> None:
    (found,), _ = buffers("float4* y", "float4* y", values={}, output="y=7")
    assert found.dims == "d0=7 d1=4"


@pytest.mark.parametrize(
    ("dtype", "given", "expected"),
    [
        ("f32", np.array([0.1]), np.array([0.1], np.float32)),
        ("f32", np.arange(3), np.arange(3, dtype=np.float32)),
        ("i32", np.arange(3), np.arange(3, dtype=np.int32)),
        ("u8", np.array([True]), np.array([1], np.uint8)),
        ("bf16", np.array([1.0, 1.00390625, 1.01171875]), np.array([1.0, 1.0, 1.015625], ml_dtypes.bfloat16)),
        ("e4m3", np.array([1.0]), np.array([1.0], ml_dtypes.float8_e4m3fn)),
    ],
)
def test_an_array_as_its_buffer_holds_it(dtype: str, given: Any, expected: Any) -> None:
    found = fitted("inputs()", Buffer("x", dtype, "n=3", "in"), given)
    assert found.dtype == expected.dtype
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("dtype", "given"),
    [
        ("i32", np.array([2**40])), ("u32", np.array([-1])), ("i32", np.array([1.0])), ("f32", np.array([2**25 + 1])),
        ("u8", np.array([256])), ("i64", np.array([2**63], np.uint64)),
    ],
)  # fmt: skip
def test_numbers_that_a_buffer_cannot_hold_are_refused(dtype: str, given: Any) -> None:
    with pytest.raises(ProjectError, match=r"inputs\(\)\['x'\]: expected"):
        fitted("inputs()", Buffer("x", dtype, "n=1", "in"), given)


@pytest.mark.parametrize("value", ["text", np.array([None]), np.array([1j]), {"a": 1}, len, [[1], [2, 3]]])
def test_values_that_are_no_numbers_are_refused(value: Any) -> None:
    with pytest.raises(ProjectError, match=r"here\['x'\]: expected an array of numbers"):
        checked("here", {"x": value})


def test_arrays_cannot_be_changed_by_another_function() -> None:
    with pytest.raises(ValueError, match="read-only"):
        checked("here", {"x": np.zeros(3)})["x"][0] = 1


def test_extents() -> None:
    values = {"rows": 7, "n": np.int64(100), "b": True}
    assert extents("--grid", ["rows", "n/32", "rows*n/128"], values) == (7, 4, 6)
    for word in ("b", "-1", "n/0", "1/2/3", "", "rows*", "2.5"):
        with pytest.raises(PlanError, match="--grid: expected an integer"):
            extents("--grid", [word], values)


def test_bfloat16_rounds_once_to_nearest_even() -> None:
    codes = np.arange(2**16, dtype=np.uint16)
    exact = formats.decode_bf16(codes)
    finite = np.isfinite(exact)
    assert (formats.encode_bf16(exact)[finite] == codes[finite]).all()
    below, above = codes[0x0000:0x7F7F], codes[0x0001:0x7F80]
    middle = (formats.decode_bf16(below).astype(np.float64) + formats.decode_bf16(above)) / 2
    assert (formats.encode_bf16(middle) == np.where(below % 2 == 0, below, above)).all()
    assert (formats.encode_bf16(np.nextafter(middle, np.inf)) == above).all()
    assert (formats.encode_bf16(np.nextafter(middle, 0)) == below).all()
    assert formats.encode_bf16(np.array([np.inf, -np.inf, np.nan, 3.4e38])).tolist() == [0x7F80, 0xFF80, 0x7FFF, 0x7F80]
    assert formats.ulp_distance_bf16(below, above).max() == 1
