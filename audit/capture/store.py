"""A folder of capture sets: lists them, counts what is missing, and loads captures with every byte verified.

A set is a folder with `manifest.json`, one safetensors file for each layer, and the text that the model read. Listing
reads only manifests and needs no numpy. Loading raises CaptureError if anything differs from the manifest.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from audit.capture import manifest as schema
from audit.capture.manifest import MANIFEST_FILE, MAX_MANIFEST_BYTES, Manifest, ManifestEntry
from audit.capture.tensorfile import MAX_FILE_BYTES, TensorFile, open_inside, read_header
from audit.errors import CaptureError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ID = re.compile(r"(?P<set>[A-Za-z0-9][A-Za-z0-9._-]*)/layer(?P<layer>0|[1-9]\d{0,8})/rank(?P<rank>0|[1-9]\d{0,8})")


class CaptureRef(msgspec.Struct, frozen=True):
    """One capture, as listed in a manifest and not yet loaded."""

    id: str
    set: str
    layer: int
    rank: int
    step: int
    tokens: int
    rows: int


class Census(msgspec.Struct, frozen=True):
    """The captures of a set against those that its recording intended."""

    set: str
    captured: int
    expected: int
    missing: tuple[tuple[int, int], ...]
    """Each (layer, rank) that the recording intended and the set lacks."""

    @property
    def whole(self) -> bool:
        """Whether the set is complete."""
        return not self.missing

    def __str__(self) -> str:
        missing = "".join(f", lacks layer{layer}/rank{rank}" for layer, rank in self.missing)
        return f"{self.set}: captured {self.captured} of {self.expected}{missing}"


class Capture(msgspec.Struct, frozen=True, eq=False):
    """One verified capture: q f16 [rows, G, D], k and v u8 (e4m3fn) [pages, page, 1, D], all read-only.

    The last query row sees all `tokens`, each row before it one fewer. Values of k are code * k_scale, of v
    code * v_scale; `scale` is the softmax scale.
    """

    id: str
    set: str
    layer: int
    rank: int
    step: int
    tokens: int
    arrays: Mapping[str, NDArray[Any]]
    scales: Mapping[str, float]
    payload_sha256: Mapping[str, str]
    manifest_sha256: str

    def query(self, rows: int) -> NDArray[np.float16]:
        """A view of the last `rows` query rows, f16 [rows, G, D]. Raises CaptureError if there are fewer."""
        q = self.arrays["q"]
        if not 1 <= rows <= q.shape[0]:
            raise CaptureError(f"{self.id}: rows: expected 1 to {q.shape[0]}, but got {rows}; q{rows} was not captured")
        return q[q.shape[0] - rows :]

    def lengths(self, rows: int) -> NDArray[np.int32]:
        """The number of tokens visible to each of the last `rows` query rows, i32 [rows]: tokens-rows+1 .. tokens."""
        import numpy as np

        last = self.query(rows).shape[0]
        return np.arange(self.tokens - last + 1, self.tokens + 1, dtype=np.int32)


class CaptureStore:
    """The capture sets below `root`, one folder each."""

    def __init__(self, root: Path) -> None:
        self.root = Path(root)

    def list(self) -> tuple[CaptureRef, ...]:
        """Every capture of every set, ordered by set, layer and rank. Raises CaptureError for a bad manifest."""
        return tuple(
            CaptureRef(
                f"{manifest.name}/layer{record.layer}/rank{record.rank}",
                manifest.name, record.layer, record.rank, record.step, manifest.tokens.count, manifest.geometry.rows,
            )
            for manifest in (self.manifest(name)[0] for name in self._sets())
            for record in sorted(manifest.records, key=lambda record: (record.layer, record.rank))
        )  # fmt: skip

    def census(self) -> tuple[Census, ...]:
        """For every set, the number of captures and the missing ones."""
        counts = []
        for name in self._sets():
            manifest, _ = self.manifest(name)
            missing = manifest.expected.pairs - {(record.layer, record.rank) for record in manifest.records}
            counts.append(Census(name, len(manifest.records), len(manifest.expected.pairs), tuple(sorted(missing))))
        return tuple(counts)

    def manifest(self, name: str) -> tuple[Manifest, str]:
        """The manifest of a set and the sha256 of its bytes. Raises CaptureError."""
        folder = self._folder(name)
        with open_inside(folder, MANIFEST_FILE, MAX_MANIFEST_BYTES) as stream:
            data = stream.read(MAX_MANIFEST_BYTES + 1)
        return schema.decode_manifest(data, f"{name}/{MANIFEST_FILE}", name), hashlib.sha256(data).hexdigest()

    def load(self, id: str) -> Capture:  # noqa: A002
        """One capture, with its text and every payload verified against the manifest. Raises CaptureError."""
        match = _ID.fullmatch(id)
        if match is None:
            raise CaptureError(f"--capture: expected an id such as set/layer18/rank1, but got {id!r}")
        name, layer, rank = match["set"], int(match["layer"]), int(match["rank"])
        manifest, digest = self.manifest(name)
        record = next((r for r in manifest.records if (r.layer, r.rank) == (layer, rank)), None)
        if record is None:
            known = ", ".join(f"layer{r.layer}/rank{r.rank}" for r in manifest.records[:20])
            raise CaptureError(f"{name}/{MANIFEST_FILE}: expected one of {known}, but got {id!r}")
        self._verify_text(manifest)
        return Capture(
            id=id, set=name, layer=layer, rank=rank, step=record.step, tokens=manifest.tokens.count,
            arrays=MappingProxyType(self._arrays(manifest, record)),
            scales=MappingProxyType({name: scale.number for name, scale in record.scales.items()}),
            payload_sha256=MappingProxyType({name: tensor.sha256 for name, tensor in record.tensors.items()}),
            manifest_sha256=digest,
        )  # fmt: skip

    def _sets(self) -> tuple[str, ...]:
        if not self.root.is_dir():
            raise CaptureError(
                f"{self.root}: expected a folder of capture sets, but there is none; "
                "correct `captures` in [tool.kernel-audit]"
            )
        # lexists: a dangling link instead of a manifest must raise an error, not hide the set.
        return tuple(sorted(f.name for f in self.root.iterdir() if os.path.lexists(f / MANIFEST_FILE)))

    def _folder(self, name: str) -> Path:
        folder = self.root / name
        try:
            inside = folder.resolve(strict=True).parent == self.root.resolve(strict=True)
        except (OSError, RuntimeError) as error:
            raise CaptureError(f"capture set {name!r}: expected a folder in {self.root}, but got: {error}") from error
        if not inside:
            raise CaptureError(
                f"capture set {name!r}: expected a folder in {self.root}, but it links elsewhere; copy it in"
            )
        return folder

    def _verify_text(self, manifest: Manifest) -> None:
        text = manifest.text
        with open_inside(self._folder(manifest.name), text.file, text.nbytes) as stream:
            digest = hashlib.sha256(stream.read()).hexdigest()
        _require_digest(f"{manifest.name}/{text.file}", text.sha256, digest)

    def _arrays(self, manifest: Manifest, record: ManifestEntry) -> dict[str, NDArray[Any]]:
        keys = {t.key for r in manifest.records if r.file == record.file for t in r.tensors.values()}
        with open_inside(self._folder(manifest.name), record.file, MAX_FILE_BYTES) as stream:
            file = read_header(stream, f"{manifest.name}/{record.file}")
            if keys != set(file.entries):
                odd = sorted(keys ^ set(file.entries))[:20]
                raise CaptureError(
                    f"{file.where}: expected exactly the tensors of the manifest, but {odd} are in only one "
                    "of the two; restore the file or record again"
                )
            return {tensor: _array(file, record, tensor) for tensor in ("q", "k", "v")}


def _array(file: TensorFile, record: ManifestEntry, name: str) -> NDArray[Any]:
    import numpy as np

    stated = record.tensors[name]
    where = f"{file.where}: {stated.key}"
    entry = file.entries[stated.key]
    for field, expected, actual in (
        ("dtype", schema.STORAGE[stated.dtype], entry.dtype),
        ("shape", stated.shape, entry.shape),
        ("data_offsets", (stated.offset, stated.offset + stated.nbytes), entry.data_offsets),
    ):
        if expected != actual:
            raise CaptureError(
                f"{where}: {field}: expected {expected}, as in the manifest, but got {actual}; "
                "restore the file or record again"
            )
    payload = file.read(stated.key)
    _require_digest(where, stated.sha256, hashlib.sha256(payload).hexdigest())
    return np.frombuffer(payload, dtype="<f2" if stated.dtype == "f16" else "u1").reshape(stated.shape)


def _require_digest(where: str, expected: str, actual: str) -> None:
    if expected != actual:
        raise CaptureError(
            f"{where}: sha256: expected {expected}, as in the manifest, but got {actual}; "
            "the bytes were altered: restore the file or record again"
        )
