"""The recipe of a capture set, read from TOML: the model, the text that it reads, and the layers to keep."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from audit import foreign
from audit.capture.manifest import MANIFEST_FILE, PLAIN_NAME, Part
from audit.errors import CaptureError
from audit.foreign import ForeignError
from audit.printable import one_line

Variable = Literal["ATEN_CPU_CAPABILITY", "MKL_CBWR", "ONEDNN_MAX_CPU_ISA", "OMP_NUM_THREADS"]
MAX_RECIPE_BYTES = 1 << 20


class ModelRecipe(Part, frozen=True):
    """A model inside an installed package, which is never imported; `file` is a glob over the package's files."""

    name: str
    package: str
    version: str
    file: str
    sha256: str
    licence: str


class TextRecipe(Part, frozen=True):
    """The text beside the recipe; the model reads its first `tokens` tokens."""

    file: str
    origin: str
    licence: str


class GeometryRecipe(Part, frozen=True):
    """The model's sizes, stated before the run, so that a wrong model cannot pass as the right one."""

    layers: int
    query_heads: int
    kv_heads: int
    head_dim: int


class RunRecipe(Part, frozen=True):
    """The thread count, and environment variables to set before torch is loaded."""

    threads: int
    environment: dict[Variable, str]


class Recipe(Part, frozen=True):
    """A recipe: of `tokens` tokens, the last `rows` are one verification step."""

    schema: Literal["kernel-audit.capture-recipe"]
    version: Literal[1]
    name: str
    layers: tuple[int, ...]
    tokens: int
    rows: int
    page: int
    model: ModelRecipe
    text: TextRecipe
    geometry: GeometryRecipe
    run: RunRecipe


def read_recipe(path: Path) -> Recipe:
    """Read and check a recipe. Raises CaptureError."""
    try:
        recipe = msgspec.convert(foreign.read_toml(path, MAX_RECIPE_BYTES), Recipe)
    except (ForeignError, msgspec.ValidationError) as error:
        raise CaptureError(f"{path}: expected a capture recipe, but: {one_line(error)}") from error
    g = recipe.geometry
    for holds, field, expected, actual in (
        (bool(PLAIN_NAME.fullmatch(recipe.name)), "name", "a plain name without any folder", recipe.name),
        (_is_free(recipe.text.file), "text.file", "a plain name, other than the set's own files", recipe.text.file),
        (0 < recipe.rows < recipe.tokens, "rows", f"1 to {recipe.tokens - 1}, fewer than tokens", recipe.rows),
        (recipe.page > 0 and recipe.page % 16 == 0, "page", "a positive multiple of 16", recipe.page),
        (bool(recipe.layers) and len(set(recipe.layers)) == len(recipe.layers), "layers", "distinct", recipe.layers),
        (all(0 <= layer < g.layers for layer in recipe.layers), "layers", f"0 to {g.layers - 1}", recipe.layers),
        (g.kv_heads > 0, "geometry.kv_heads", "at least 1", g.kv_heads),
        (g.kv_heads > 0 and g.query_heads % g.kv_heads == 0, "geometry.query_heads",
         f"a multiple of {g.kv_heads} KV heads", g.query_heads),
        (recipe.run.threads > 0, "run.threads", "at least 1", recipe.run.threads),
    ):  # fmt: skip
        if not holds:
            raise CaptureError(f"{path}: {field}: expected {expected}, but got {actual!r}")
    return recipe


def _is_free(name: str) -> bool:
    return bool(PLAIN_NAME.fullmatch(name)) and name != MANIFEST_FILE and not name.endswith(".safetensors")
