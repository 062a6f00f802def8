"""The numpy tensor-core product against rationals, and where it must not be IEEE arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

from . import slow_contract
from .project_references import tensor_core

Array = np.ndarray


def f16(rng: np.random.Generator, kind: str, shape: tuple[int, int]) -> Array:
    x = rng.normal(size=shape)
    if kind == "wide":
        x *= 2.0 ** rng.integers(-22, 13, shape)
    elif kind == "subnormal":
        x *= 2.0 ** rng.integers(-26, -12, shape)
    elif kind == "sparse":
        x *= rng.random(shape) < 0.3
    elif kind == "cancelling":
        x[:, 1::2] = -x[:, ::2] * (1 + rng.normal(size=x[:, ::2].shape) * 2.0**-11)
    return x.astype(np.float16)


def addend(rng: np.random.Generator, kind: str, shape: tuple[int, int]) -> Array:
    size = {"zero": 0.0, "small": 1e-9, "like": 1.0, "large": 1e12, "subnormal": 1e-42}[kind]
    return (rng.normal(size=shape) * size).astype(np.float32)


def rationals(x: Array) -> list[Fraction]:
    return [Fraction(float(value)) for value in x]


@pytest.mark.parametrize("model", ["sm_70", "sm_80", "sm_90"])
@pytest.mark.parametrize("kind", ["normal", "wide", "subnormal", "sparse", "cancelling"])
@pytest.mark.parametrize("c_kind", ["zero", "small", "like", "large", "subnormal"])
def test_product_is_the_model_in_rationals(model: str, kind: str, c_kind: str) -> None:
    rng = np.random.default_rng([3, *map(ord, model + kind + c_kind)])
    a, b = f16(rng, kind, (4, 32)), f16(rng, kind, (5, 32)).T
    if kind == "cancelling":
        b[1::2] = b[::2]
    c = addend(rng, c_kind, (4, 5))
    core = tensor_core.MODELS[model]
    got = tensor_core.product(a, b, c, core)
    assert got.dtype == np.float32
    for m, n in np.ndindex(got.shape):
        want = Fraction(float(c[m, n]))
        for k in range(0, 32, core.length):
            terms = slice(k, k + core.length)
            want = slow_contract.tensor_step(rationals(a[m, terms]), rationals(b[terms, n]), want, core.fraction_bits)
        assert Fraction(float(got[m, n])) == want
        assert want != 0 or not np.signbit(got[m, n])


def one_step(a: list[float], b: list[float], c: float) -> np.float32:
    left, right = np.zeros((1, 16), np.float16), np.zeros((16, 1), np.float16)
    left[0, : len(a)], right[: len(b), 0] = a, b
    return np.float32(tensor_core.product(left, right, np.full((1, 1), c, np.float32))[0, 0])


def test_terms_are_truncated_before_the_sum() -> None:
    # Each 2^-26 is below 2^(0 - 25): sixteen of them vanish, though together they are 2^-22.
    assert one_step([1] + [2.0**-13] * 15, [1] + [2.0**-13] * 15, 0) == 1
    assert one_step([1] + [2.0**-12] * 15, [1] + [2.0**-12] * 15, 0) == 1 + 7 * 2.0**-23  # 15 * 2^-24, cut to 23


def test_truncation_is_toward_zero_for_negative_terms() -> None:
    assert one_step([1, -(2.0**-13)], [1, 2.0**-13], 0) == 1
    assert one_step([-1, 2.0**-13], [1, 2.0**-13], 0) == -1


def test_products_are_not_normalised() -> None:
    # 1.5 * 1.5 = 2.25 counts as exponent 0: the term 2^-25 is kept, and the sum is cut only by f32.
    assert one_step([1.5, -1.5, 2.0**-12], [1.5, 1.5, 2.0**-13], 0) == 2.0**-25
    assert one_step([2, -2, 2.0**-12], [1, 1, 2.0**-13], 0) == 0


def test_zero_terms_take_no_part_in_the_maximum() -> None:
    tiny = 2.0**-24
    assert one_step([tiny, 0], [tiny, 65504], 0) == 2.0**-48
    assert one_step([tiny, 1], [tiny, 0], 2.0**-140) == 2.0**-48


def test_zero_results_are_positive() -> None:
    for value in (
        one_step([-0.0], [1], -0.0),
        one_step([1, -1], [1, 1], 0),
        one_step([], [], -0.0),
        one_step([-0.0] * 16, [1] * 16, -0.0),
    ):
        assert value == 0
        assert not np.signbit(value)


def test_rounding_to_f32_is_toward_zero() -> None:
    assert one_step([1, 2.0**-12], [1, 2.0**-12 * 1.5], 0) == 1
    assert one_step([-1, 2.0**-12], [1, -(2.0**-12) * 1.5], 0) == -1
    largest = np.finfo(np.float32).max
    assert one_step([65504] * 16, [65504] * 16, float(largest)) == largest


def test_specials() -> None:
    def word(a: list[float], b: list[float], c: float) -> int:
        return int(one_step(a, b, c).view(np.uint32))

    inf, nan = np.inf, np.nan
    assert word([nan], [1], 0) == word([inf], [0], 0) == word([inf, inf], [1, -1], 0) == 0x7FFFFFFF
    assert word([inf], [1], -inf) == word([1], [1], nan) == 0x7FFFFFFF
    assert one_step([inf, 1], [-1, 5], 3) == -inf
    assert one_step([1], [1], inf) == inf


def test_finite_columns_beside_specials_follow_the_model() -> None:
    rng = np.random.default_rng(0)
    a, b = f16(rng, "wide", (3, 32)), f16(rng, "wide", (4, 32)).T
    c = addend(rng, "like", (3, 4))
    want = tensor_core.product(a, b, c)
    b[5, 2] = np.nan
    got = tensor_core.product(a, b, c)
    assert np.array_equal(np.delete(got, 2, 1), np.delete(want, 2, 1))
    assert np.isnan(got[:, 2]).all()
