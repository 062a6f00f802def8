"""What a family makes of a buffer, and what of it is kept."""

from __future__ import annotations

import numpy as np
import pytest

from audit import formats
from audit.families import FAMILIES, changed_arrays, is_family, keeps, moved
from audit.spec import Array, Buffer, Case

CASE = Case("q", "op", {"rows": 16, "n": 100})
RNG = np.random.default_rng(3)
NORMAL = RNG.normal(size=(16, 100)).astype(np.float32)


def changed(name: str, array: Array, dtype: str = "f32") -> Array | None:
    dims = " ".join(f"d{at}={size}" for at, size in enumerate(array.shape))
    return changed_arrays(name, CASE, [Buffer("x", dtype, dims, "in")], {"x": array}).get("x")


@pytest.mark.parametrize("name", FAMILIES)
def test_each_changes_normal_numbers_and_keeps_their_range_unless_it_says_otherwise(name: str) -> None:
    array = changed(name, NORMAL)
    assert array is not None
    assert (array.dtype, array.shape) == (NORMAL.dtype, NORMAL.shape)
    within = (array >= NORMAL.min()) & (array <= NORMAL.max())
    assert within.all() or FAMILIES[name].outside
    assert not np.signbit(array[array == 0]).any(), "a zero became -0"
    again = changed(name, NORMAL)
    assert again is not None
    assert again.tobytes() == array.tobytes()


def test_what_each_makes() -> None:
    made = {name: changed(name, NORMAL) for name in FAMILIES}
    assert (made["negative"] <= 0).all()
    assert np.unique(made["ties"]).size == 3
    assert np.isin(made["ties"], NORMAL).all()
    assert (made["zeros"] == 0).all()
    assert (made["ones"] == 1).all()
    largest = np.abs(NORMAL).max()
    assert ((made["huge"] > 900 * largest).sum(axis=-1) == 1).all()
    signs = np.sign(made["alternating"])
    assert (signs[:, ::2] >= 0).all()
    assert (signs[:, 1::2] <= 0).all()
    assert np.abs(made["denormal"]).max() < np.finfo(np.float32).tiny
    assert np.log2(np.abs(made["wide"]).min()) < -30
    assert (np.diff(made["ramp"]) > 0).all()
    assert np.ptp(made["close"]) < np.ptp(NORMAL) / 7
    assert np.isneginf(made["masked"]).any(axis=-1).all()
    assert np.isfinite(made["masked"]).any(axis=-1).all()


@pytest.mark.parametrize("dtype", ["f64", "f16", "bf16", "e4m3", "e5m2"])
@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "masked"])
def test_every_floating_dtype_has_each(name: str, dtype: str) -> None:
    stored = formats.encoded(dtype, RNG.normal(size=(4, 40)))
    array = changed(name, stored, dtype)
    assert array is not None
    assert array.dtype == stored.dtype
    assert np.isfinite(formats.stored_values(dtype, array)).all()


KEPT = {
    "nonnegative": np.abs(NORMAL),
    "sorted": np.sort(NORMAL, axis=-1),
    "falling": -np.sort(NORMAL, axis=-1),
    "symmetric": NORMAL[:, :16] + NORMAL[:, :16].T,
    "dominant": NORMAL[:, :16] + 100 * np.eye(16, dtype=np.float32),
    "probabilities": np.exp(NORMAL) / np.exp(NORMAL).sum(axis=-1, keepdims=True),
    "unit": NORMAL / np.linalg.norm(NORMAL, axis=-1, keepdims=True),
    "constant": np.full((3, 5), np.float32(1e-5)),
    "integers": RNG.integers(-50, 50, (8, 30)).astype(np.float32),
    "permutation": RNG.permutation(np.arange(-30, 30)).astype(np.float32),
    "signs": np.where(NORMAL > 0, np.float32(1), np.float32(-1)),
    "sparse": np.where(np.abs(NORMAL) > 1, NORMAL, np.float32(0)),
}


def holds(what: str, array: Array) -> bool:
    rows = array.astype(np.float64)
    steps = np.diff(rows)
    found = {
        "nonnegative": rows.min() >= 0,
        "sorted": (steps >= 0).all(),
        "falling": (steps <= 0).all(),
        "symmetric": np.array_equal(rows, rows.T),
        "dominant": what == "dominant" and (2 * np.abs(np.diagonal(rows)) >= np.abs(rows).sum(axis=-1)).all(),
        "probabilities": np.allclose(rows.sum(axis=-1), 1, atol=1e-2),
        "unit": np.allclose((rows**2).sum(axis=-1), 1, atol=1e-2),
        "constant": np.ptp(rows) == 0,
        "integers": (rows == np.rint(rows)).all(),
        "permutation": np.unique(rows).size == rows.size,
        "signs": np.isin(rows, (-1, 1)).all(),
        "sparse": what == "sparse" and (rows[KEPT["sparse"] == 0] == 0).all(),
    }
    return bool(found[what])


@pytest.mark.parametrize("what", KEPT)
def test_what_holds_of_the_generated_array_holds_of_the_changed_one(what: str) -> None:
    assert holds(what, KEPT[what])
    usual = [name for name in FAMILIES if name != "masked"]
    found = [array for name in usual if (array := changed(name, KEPT[what])) is not None]
    assert all(holds(what, array) for array in found)
    if what in ("nonnegative", "integers", "sparse"):
        assert found, "nothing is left that could find anything"


def test_a_lower_limit_stays_below_its_upper_one() -> None:
    low, high = NORMAL - 1, NORMAL + 1
    buffers = [Buffer(name, "f32", "rows n", "in") for name in ("low", "high")]
    for name in FAMILIES:
        after = {"low": low, "high": high, **changed_arrays(name, CASE, buffers, {"low": low, "high": high})}
        assert (after["low"] <= after["high"]).all(), name


def test_infinities_and_nothing_at_all_are_left_alone() -> None:
    assert changed("negative", np.array([1.0, -2.0, np.inf], np.float32)) is None
    assert changed("negative", np.zeros((0, 3), np.float32)) is None
    assert not keeps(np.array([1.0, 2.0]), np.array([0.0, 2.0]))


def test_an_integer_buffer_changes_to_integers() -> None:
    stored = RNG.integers(-9, 9, (4, 25), np.int32)
    assert (changed("negative", stored, "i32") <= 0).all()  # type: ignore[operator]
    assert changed("wide", stored, "i32") is None


def test_names() -> None:
    assert all(map(is_family, [*FAMILIES, "seed2", "seed17"]))
    assert not any(map(is_family, ["seed1", "seed", "seed02", "positive", ""]))


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16", "e4m3"])
def test_moved_elements_lie_one_ulp_away_and_equal_ones_stay_equal_where_they_move_together(dtype: str) -> None:
    stored = formats.encoded(dtype, np.repeat(RNG.normal(size=50), 4))
    distance = {
        "bf16": formats.ulp_distance_bf16, "e4m3": formats.ulp_distance_e4m3
    }.get(dtype, formats.ulp_distance)  # fmt: skip
    singly, together = moved(stored, dtype, np.random.default_rng(0)), moved(stored, dtype, None)
    for array in (singly, together):
        apart = distance(array, stored)
        zero = formats.stored_values(dtype, stored) == 0
        assert (apart[~zero] == 1).all()
        assert (apart[zero] == 0).all()
    groups = together.reshape(-1, 4)
    assert (groups == groups[:, :1]).all()
    assert not (singly.reshape(-1, 4) == singly.reshape(-1, 4)[:, :1]).all()


def test_masks_zeros_and_infinities_do_not_move() -> None:
    mask = np.array([0, 1, 1, 0, 1], np.float32)
    assert moved(mask, "f32", np.random.default_rng(0)).tobytes() == mask.tobytes()
    special = np.array([0, np.inf, -np.inf, 3, 5], np.float32)
    assert moved(special, "f32", np.random.default_rng(0))[:3].tobytes() == special[:3].tobytes()
