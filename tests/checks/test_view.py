"""A view gives buffers their dtype, dimensions and names, and knows what must be written and what still is poison."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from audit.checks import View

from .planting import changed, put


def test_buffers_come_in_their_dtype_and_dimensions(control: View) -> None:
    step = control.steps[0]
    assert [buffer.name for buffer in control.results] == ["y"]
    array, words = control.array(step, "y"), control.words(step, "y")
    assert (array.dtype, array.shape, words.dtype) == (np.float32, (7, 33), np.uint32)
    assert np.array_equal(array.view(np.uint32), words)
    assert np.allclose(array.sum(axis=1), 1)


def test_an_element_has_an_address_in_words(control: View) -> None:
    assert control.element("y", 2 * 33 + 5) == control.element("y", (2, 5)) == "y[rows=2, n=5]"


def test_without_a_contract_everything_is_written(control: View) -> None:
    assert control.written(control.steps[0])["y"].all()
    operator = dataclasses.replace(control.operator, written=lambda _c, _i: {"y": np.arange(33) < 3})
    mask = dataclasses.replace(control, operator=operator).written(control.steps[0])["y"]
    assert (mask.shape, int(mask.sum())) == ((7, 33), 21)


def test_derived_arrays_are_made_once_a_step(control: View) -> None:
    calls = []

    def double(_case: object, _inputs: object, got: dict[str, np.ndarray]) -> np.ndarray:
        calls.append(1)
        return 2 * got["y"]

    view = dataclasses.replace(control, operator=dataclasses.replace(control.operator, derived={"double": double}))
    step = dataclasses.replace(view.steps[0])
    assert np.array_equal(view.got(step)["double"], 2 * view.got(step)["y"])
    assert len(calls) == 1


def test_poison_is_known_again(control: View) -> None:
    assert not control.poisoned(control.steps[0], "y").any()
    words = np.frombuffer(bytes.fromhex(control.steps[0].poison["y"]), np.float32)
    position = np.ravel_multi_index((1, 2), control.array(control.steps[0], "y").shape)
    left = changed(control, put((1, 2), words[position % words.size]))
    assert np.argwhere(left.poisoned(left.steps[0], "y")).tolist() == [[1, 2]]


def test_a_view_cannot_be_changed(control: View) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        control.parent = None  # type: ignore[misc]
