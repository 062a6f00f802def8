"""Writes a capture set: every file is written aside, then renamed into place, the manifest last."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from audit.capture import manifest as schema
from audit.capture.manifest import MANIFEST_FILE, Manifest, ManifestEntry, Tensor, contiguous
from audit.capture.quantise import QuantisedTensor
from audit.capture.tensorfile import serialise
from audit.errors import CaptureError


def layer_file(layer: int) -> str:
    """The name of the file with all ranks of a layer."""
    return f"layer{layer:02d}.safetensors"


def encode_layer(
    layer: int, step: int, scale: float, ranks: Sequence[QuantisedTensor]
) -> tuple[bytes, tuple[ManifestEntry, ...]]:
    """The file of one layer, and the records of its ranks."""
    payloads = {
        f"rank{rank}.{name}": array for rank, tensors in enumerate(ranks) for name, array in _arrays(tensors).items()
    }
    data, offsets = serialise(
        {key: ("F16" if a.dtype == "f2" else "U8", a.shape, a.tobytes()) for key, a in payloads.items()}
    )
    records = tuple(
        ManifestEntry(
            layer=layer,
            rank=rank,
            step=step,
            file=layer_file(layer),
            scales={
                name: schema.scale_of(value)
                for name, value in (("scale", scale), ("k_scale", tensors.k_scale), ("v_scale", tensors.v_scale))
            },
            tensors={
                name: Tensor(
                    key=f"rank{rank}.{name}",
                    dtype="f16" if name == "q" else "e4m3",
                    shape=array.shape,
                    strides=contiguous(array.shape),
                    offset=offsets[f"rank{rank}.{name}"],
                    sha256=hashlib.sha256(array.tobytes()).hexdigest(),
                )
                for name, array in _arrays(tensors).items()
            },
        )
        for rank, tensors in enumerate(ranks)
    )
    return data, records


def _arrays(tensors: QuantisedTensor) -> dict[str, NDArray[Any]]:
    return {"q": tensors.q, "k": tensors.k, "v": tensors.v}


def require_free(folder: Path, *, replace: bool) -> None:
    """Raise CaptureError if `folder` already holds a set, unless it may be replaced."""
    if os.path.lexists(folder / MANIFEST_FILE) and not replace:
        raise CaptureError(
            f"{folder / MANIFEST_FILE}: expected a folder without a capture set, but it has one; "
            "name a new folder with --out, or pass --replace"
        )


def publish(folder: Path, manifest: Manifest, files: Mapping[str, bytes], *, replace: bool = False) -> None:
    """Write a set into `folder`, which is created if needed. A folder without a manifest is not a set.

    All bytes go to a temporary folder first. Then the old manifest is removed, the files move, and the new manifest
    moves last. A kill at any point leaves the complete old set or no set. Raises CaptureError if a set exists and
    `replace` is false.
    """
    require_free(folder, replace=replace)
    folder.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=".incomplete-", dir=folder))
    try:
        for name, data in {**files, MANIFEST_FILE: schema.encode_manifest(manifest)}.items():
            with open(aside / name, "xb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
        (folder / MANIFEST_FILE).unlink(missing_ok=True)
        for name in (*files, MANIFEST_FILE):
            os.replace(aside / name, folder / name)
    finally:
        shutil.rmtree(aside)
