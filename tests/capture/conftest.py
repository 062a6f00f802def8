"""A small capture set made by the real quantiser and the real publisher, without any model."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from audit.capture import manifest as schema
from audit.capture.manifest import (
    Environment,
    Expected,
    Geometry,
    Manifest,
    ManifestEntry,
    Model,
    Proof,
    Text,
    Tokens,
)
from audit.capture.publish import encode_layer, layer_file, publish
from audit.capture.quantise import RULES, quantise
from audit.capture.record import Recording

TOKENS, ROWS, PAGE, HEADS, RANKS, DIM = 40, 8, 16, 4, 2, 8
LAYERS = (2, 11)
TEXT = b"To be, or not to be, that is the question.\n"


def make_recording(seed: int = 0) -> Recording:
    """Layers 2 and 11 of a made-up model of 4 heads and 2 ranks; 40 tokens fill two pages and half a third."""
    rng = np.random.default_rng(seed)
    files: dict[str, bytes] = {}
    records: list[ManifestEntry] = []
    for layer in LAYERS:
        q = rng.standard_normal((HEADS, ROWS, DIM)).astype(np.float32)
        k, v = (rng.standard_normal((RANKS, TOKENS, DIM)).astype(np.float32) for _ in "kv")
        ranks = [quantise(q, k, v, rank=rank, page=PAGE) for rank in range(RANKS)]
        files[layer_file(layer)], added = encode_layer(layer, 1, 0.125, ranks)
        records.extend(added)
    files["text.txt"] = TEXT
    manifest = Manifest(
        schema=schema.SCHEMA,
        version=schema.VERSION,
        name="small",
        model=Model(
            name="made up", package="none", version="0", file="none", nbytes=0, sha256="0" * 64, licence="none"
        ),
        text=Text(
            file="text.txt",
            nbytes=len(TEXT),
            sha256=hashlib.sha256(TEXT).hexdigest(),
            origin="Hamlet",
            licence="public domain",
        ),
        tokens=Tokens(count=TOKENS, sha256="0" * 64),
        geometry=Geometry(
            tokens=TOKENS,
            rows=ROWS,
            page=PAGE,
            query_heads=HEADS,
            kv_heads=RANKS,
            group=HEADS // RANKS,
            head_dim=DIM,
            step=1,
        ),
        rules=RULES,
        environment=Environment(
            packages={}, python="3.11", machine="none", cpu_capability="none", threads=1, variables={}
        ),
        proof=Proof(
            calls_per_layer={},
            logits_equal_to_stock=True,
            causal_mask_checked=True,
            later_tokens_do_not_reach_earlier_rows=True,
            attention_error=0.0,
            logits_error_uncached=0.0,
        ),
        expected=Expected(layers=LAYERS, ranks=tuple(range(RANKS))),
        records=tuple(records),
    )
    return Recording(manifest, files)


@pytest.fixture
def recording() -> Callable[[int], Recording]:
    """Makes a recording from a seed."""
    return make_recording


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder of capture sets that holds one set, `small`."""
    made = make_recording()
    publish(tmp_path / "captures" / "small", made.manifest, made.files)
    return tmp_path / "captures"
