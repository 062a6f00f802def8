"""Recipes: the one in the repository reads, and each mistake is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from audit.capture.recipe import read_recipe
from audit.errors import CaptureError

RECIPE = Path(__file__).parents[2] / "fixtures" / "captures" / "smollm2-135m" / "recipe.toml"


def test_the_recipe_of_the_fixture_reads() -> None:
    recipe = read_recipe(RECIPE)
    assert (recipe.name, recipe.layers, recipe.tokens, recipe.rows, recipe.page) == (
        "smollm2-135m", (0, 18, 28), 2048, 8, 16,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("version = 1\n", "version = 2\n", "version"),
        ("rows = 8", "rows = 8\nsurplus = 1", "surplus"),
        ("rows = 8", "rows = 2048", "rows: expected 1 to 2047, fewer than tokens"),
        ("rows = 8", "", "rows"),
        ('name = "smollm2-135m"', 'name = "../smollm2-135m"', "name: expected a plain name"),
        ("text.txt", "../text.txt", "text.file: expected a plain name"),
        ("text.txt", "manifest.json", "text.file"),
        ("text.txt", "layer00.safetensors", "text.file"),
        ("kv_heads = 3", "kv_heads = 0", "geometry.kv_heads"),
        ("page = 16", "page = 20", "page: expected a positive multiple of 16"),
        ("layers = [0, 18, 28]", "layers = [0, 18, 0]", "layers: expected distinct"),
        ("layers = [0, 18, 28]", "layers = [0, 30]", "layers: expected 0 to 29"),
        ("query_heads = 9", "query_heads = 10", "multiple of 3 KV heads"),
        ("threads = 1", "threads = 0", "run.threads"),
        ("MKL_CBWR", "LD_PRELOAD", "LD_PRELOAD"),
        ("[model]", "[model", "expected a capture recipe"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = RECIPE.read_text()
    assert old in text
    (tmp_path / "recipe.toml").write_text(text.replace(old, new, 1))
    with pytest.raises(CaptureError) as refusal:
        read_recipe(tmp_path / "recipe.toml")
    assert message in str(refusal.value)


def test_a_missing_or_binary_recipe_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="expected a capture recipe"):
        read_recipe(tmp_path / "absent.toml")
    (tmp_path / "recipe.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(CaptureError, match="expected a capture recipe"):
        read_recipe(tmp_path / "recipe.toml")
