"""Records a capture set from its recipe: loads the model, runs it under the hook, and quantises the tensors."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from audit.capture import manifest as schema
from audit.capture.manifest import Expected, Manifest, ManifestEntry, Text, Tokens
from audit.capture.model import LoadedModel, geometry, load_model
from audit.capture.publish import encode_layer, layer_file
from audit.capture.recipe import Recipe
from audit.capture.tensorfile import open_inside
from audit.errors import CaptureError

MAX_TEXT_BYTES = 16 << 20


class Recording(msgspec.Struct, frozen=True, eq=False):
    """A set that is not yet on disk: its manifest, and its other files by name."""

    manifest: Manifest
    files: dict[str, bytes]


def record_capture(recipe: Recipe, folder: Path, say: Callable[[str], None] = lambda _line: None) -> Recording:
    """Run the recipe, whose text is in `folder`, without writing anything. `say` receives lines of progress.

    Raises CaptureError if the model, the text or a proof is not as stated, ToolMissing if a package is missing.
    """
    with open_inside(folder, recipe.text.file, MAX_TEXT_BYTES) as stream:
        text = stream.read()
    say(f"loading {recipe.model.name} from {recipe.model.package} {recipe.model.version}")
    model = load_model(recipe)
    return record_with(model, recipe, text, say)


def record_with(model: LoadedModel, recipe: Recipe, text: bytes, say: Callable[[str], None]) -> Recording:
    """Like `record`, with the loaded model and the bytes of the text."""
    from audit.capture.hook import observe_attention
    from audit.capture.quantise import RULES, quantise

    ids = model.tokenise(text.decode())[: recipe.tokens]
    if len(ids) != recipe.tokens:
        raise CaptureError(
            f"{recipe.text.file}: expected {recipe.tokens:,} tokens, but got {len(ids):,}; lengthen the text"
        )
    say(f"running {recipe.tokens - recipe.rows:,} tokens, then {recipe.rows} in one step; twice, and once uncached")
    recorded = observe_attention(model.network, ids, rows=recipe.rows, layers=recipe.layers)
    sizes = geometry(recipe)
    files: dict[str, bytes] = {}
    records: list[ManifestEntry] = []
    for layer, call in recorded.layers.items():
        ranks = [quantise(call.q, call.k, call.v, rank=rank, page=recipe.page) for rank in range(sizes.kv_heads)]
        files[layer_file(layer)], added = encode_layer(layer, sizes.step, call.scale, ranks)
        records.extend(added)
    _require_distinct(records)
    files[recipe.text.file] = text
    manifest = Manifest(
        schema=schema.SCHEMA,
        version=schema.VERSION,
        name=recipe.name,
        model=model.origin,
        text=Text(
            file=recipe.text.file,
            nbytes=len(text),
            sha256=hashlib.sha256(text).hexdigest(),
            origin=recipe.text.origin,
            licence=recipe.text.licence,
        ),
        tokens=Tokens(count=len(ids), sha256=token_digest(ids)),
        geometry=sizes,
        rules=RULES,
        environment=model.environment,
        proof=recorded.proof,
        expected=Expected(layers=recipe.layers, ranks=tuple(range(sizes.kv_heads))),
        records=tuple(records),
    )
    # The new manifest must pass the reader's own checks before anything is written.
    schema.decode_manifest(schema.encode_manifest(manifest), "the new manifest", recipe.name)
    return Recording(manifest, files)


def token_digest(ids: Sequence[int]) -> str:
    """sha256 of token ids as little-endian 32-bit integers."""
    return hashlib.sha256(struct.pack(f"<{len(ids)}i", *ids)).hexdigest()


def _require_distinct(records: Sequence[ManifestEntry]) -> None:
    """Require different tensors for every layer and rank: equal ones mean one tensor captured under two names."""
    for name in ("q", "k", "v"):
        digests = {record.tensors[name].sha256 for record in records}
        if len(digests) != len(records):
            raise CaptureError(
                f"{name}: expected {len(records)} different tensors, one for each layer and rank, but got "
                f"{len(digests)}; the hook captured one tensor under several names"
            )
