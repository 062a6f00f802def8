"""The capture set in this repository: it is whole, its hashes hold, and its README states its own figures."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from audit.capture.facts import facts_table, measure
from audit.capture.recipe import read_recipe
from audit.capture.store import Capture, CaptureStore
from audit.formats import decode_e4m3

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
SET = CAPTURES / "smollm2-135m"
IDS = [f"smollm2-135m/layer{layer}/rank{rank}" for layer in (0, 18, 28) for rank in range(3)]


@pytest.fixture(scope="module")
def captures() -> list[Capture]:
    store = CaptureStore(CAPTURES)
    return [store.load(name) for name in IDS]


def test_all_nine_captures_are_there() -> None:
    store = CaptureStore(CAPTURES)
    assert [ref.id for ref in store.list() if ref.set == "smollm2-135m"] == IDS
    (census,) = (c for c in store.census() if c.set == "smollm2-135m")
    assert str(census) == "smollm2-135m: captured 9 of 9"


def test_the_set_is_small() -> None:
    assert sum(path.stat().st_size for path in SET.iterdir()) <= 8 << 20


def test_payloads_are_what_the_manifest_says(captures: list[Capture]) -> None:
    for capture in captures:
        for name, array in capture.arrays.items():
            assert hashlib.sha256(array.tobytes()).hexdigest() == capture.payload_sha256[name]
    digests = [sha for capture in captures for sha in capture.payload_sha256.values()]
    assert len(set(digests)) == 27


def test_shapes_types_and_values_fit_the_contract(captures: list[Capture]) -> None:
    for capture in captures:
        q, k, v = (capture.arrays[name] for name in "qkv")
        assert (q.shape, q.dtype) == ((8, 3, 64), np.float16)
        for codes in (k, v):
            assert (codes.shape, codes.dtype) == ((128, 16, 1, 64), np.uint8)
            assert np.abs(decode_e4m3(codes)).max() == 448  # finite, and the scale's rule was used
        assert np.isfinite(q).all()
        assert capture.tokens == 2048
        assert capture.scales["scale"] == 0.125
        assert capture.scales["k_scale"] != capture.scales["v_scale"]
        assert capture.scales["scale"] * capture.scales["k_scale"] >= 2.0**-60


def test_views_of_every_shape(captures: list[Capture]) -> None:
    for capture in captures:
        for rows in range(1, 9):
            assert capture.query(rows).shape == (rows, 3, 64)
            assert capture.query(rows).tobytes() == capture.arrays["q"][8 - rows :].tobytes()
            assert capture.lengths(rows).tolist() == list(range(2049 - rows, 2049))


def test_the_recording_was_proven() -> None:
    manifest, _ = CaptureStore(CAPTURES).manifest("smollm2-135m")
    proof = manifest.proof
    assert proof.calls_per_layer == {str(layer): 1 for layer in range(30)}
    assert proof.logits_equal_to_stock
    assert proof.causal_mask_checked
    assert proof.later_tokens_do_not_reach_earlier_rows
    assert proof.attention_error <= 1e-5
    assert proof.logits_error_uncached <= 1e-4


def test_the_set_is_that_of_its_recipe() -> None:
    recipe = read_recipe(SET / "recipe.toml")
    manifest, _ = CaptureStore(CAPTURES).manifest("smollm2-135m")
    assert manifest.name == recipe.name
    assert manifest.expected.layers == recipe.layers
    assert (manifest.tokens.count, manifest.geometry.rows, manifest.geometry.page) == (
        recipe.tokens, recipe.rows, recipe.page,
    )  # fmt: skip
    assert (manifest.model.sha256, manifest.model.version) == (recipe.model.sha256, recipe.model.version)
    assert (manifest.text.origin, manifest.text.licence) == (recipe.text.origin, recipe.text.licence)
    assert dict(manifest.environment.variables) == dict(recipe.run.environment)


def test_the_readme_states_the_measured_figures(captures: list[Capture]) -> None:
    readme = (SET / "README.md").read_text()
    for line in facts_table(tuple(measure(capture) for capture in captures)).splitlines():
        assert line in readme
