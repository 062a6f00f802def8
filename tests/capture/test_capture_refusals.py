"""Hostile and broken sets: each fault is planted in a good set, and each must be refused with its place."""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from audit.capture.manifest import MAX_MANIFEST_BYTES
from audit.capture.store import CaptureStore
from audit.capture.tensorfile import MAX_HEADER_BYTES
from audit.errors import CaptureError

ID = "small/layer2/rank0"
LAYER = "layer02.safetensors"


def edit(root: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = root / "small" / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


def edit_header(root: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = root / "small" / LAYER
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])


def refuse(root: Path, *words: str) -> None:
    with pytest.raises(CaptureError) as refusal:
        CaptureStore(root).load(ID)
    for word in words:
        assert word in str(refusal.value)


def set_(path: str, value: object) -> Callable[[dict[str, Any]], None]:
    def change(tree: Any) -> None:
        *parents, last = [int(step) if step.isdigit() else step for step in path.split("/")]
        for step in parents:
            tree = tree[step]
        tree[last] = value

    return change


def test_the_edits_themselves_do_no_harm(root: Path) -> None:
    edit(root, lambda manifest: manifest)
    edit_header(root, lambda header: header)
    CaptureStore(root).load(ID)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("version", 2, ("schema", "version 2")),
        ("schema", "other", ("schema", "'other'")),
        ("surplus", 1, ("unknown field", "surplus")),
        ("records/0/surplus", 1, ("unknown field", "surplus", "records")),
        ("records/0/tensors/q/surplus", 1, ("unknown field", "surplus")),
        ("name", "other", ("name", "'small'", "'other'")),
        ("records/0/file", "../small/layer02.safetensors", ("records[0].file", "plain name")),
        ("records/0/file", "/etc/passwd", ("records[0].file", "plain name")),
        ("records/0/file", "..", ("records[0].file", "plain name")),
        ("records/0/file", "absent.safetensors", ("absent.safetensors", "readable file")),
        ("records/0/file", "text.txt", ("text.txt", "header length")),
        ("records/0/file", "nul\0byte", ("records[0].file", "plain name")),
        ("text/file", "../../secret", ("text.file", "plain name")),
        ("text/sha256", "1" * 64, ("text.txt", "sha256")),
        ("text/nbytes", 3, ("text.txt", "at most 3 bytes")),
        ("records/0/tensors/k/sha256", "0" * 64, (LAYER, "rank0.k", "sha256")),
        ("records/0/tensors/k/sha256", "0", ("records[0].tensors.k.sha256", "64")),
        ("records/0/tensors/k/key", "rank0.v", ("records[0].tensors.v.key", "no other names")),
        ("records/0/tensors/k/key", "rank7.k", (LAYER, "exactly the tensors", "rank7.k")),
        ("records/0/tensors/k/dtype", "f16", ("records[0].tensors.k.dtype", "e4m3")),
        ("records/0/tensors/k/dtype", "pickle", ("dtype", "pickle")),
        ("records/0/tensors/k/shape", [3, 16, 8, 1], ("records[0].tensors.k.shape", "(3, 16, 1, 8)")),
        ("records/0/tensors/k/strides", [8, 1, 1, 1], ("records[0].tensors.k.strides",)),
        ("records/0/tensors/k/offset", 0, ("rank0.k", "data_offsets")),
        ("records/0/tensors/k/offset", -1, ("records[0].tensors.k.offset",)),
        ("records/0/scales/k_scale/bits", "0x7fc00000", ("records[0].scales.k_scale.bits", "finite", "nan")),
        ("records/0/scales/k_scale/bits", "0x7f800000", ("records[0].scales.k_scale.bits", "finite", "inf")),
        ("records/0/scales/v_scale/bits", "0x00000000", ("records[0].scales.v_scale.bits", "positive")),
        ("records/0/scales/scale/bits", "0xbe000000", ("records[0].scales.scale.bits", "positive")),
        ("records/0/scales/scale/bits", "0.125", ("records[0].scales.scale.bits", "hexadecimal")),
        ("records/0/scales/scale/value", 0.25, ("records[0].scales.scale.value", "0.125", "0.25")),
        ("records/0/scales/scale/value", None, ("scale", "null")),
        ("records/0/scales/extra", {"bits": "0x3e000000", "value": 0.125}, ("records[0].scales", "extra")),
        ("records/0/layer", 3, ("records[0]", "expected layer and rank")),
        ("records/0/rank", 1, ("records[1]", "each layer and rank once")),
        ("records/0/step", 2, ("records[0].step",)),
        ("geometry/head_dim", 1 << 40, ("geometry.head_dim",)),
        ("geometry/page", 0, ("geometry.page",)),
        ("geometry/group", 3, ("geometry.group",)),
        ("geometry/rows", 41, ("geometry.rows",)),
        ("geometry/tokens", 41, ("tokens.count",)),
        ("expected/layers", [], ("expected.layers",)),
        ("expected/layers", [2, 11, 2], ("expected.layers",)),
        ("expected/ranks", [0, 1, 2], ("expected.ranks",)),
        ("expected/ranks", list(range(70_000)), ("expected",)),
    ],
)
def test_a_manifest_that_lies_is_refused(root: Path, path: str, value: object, words: tuple[str, ...]) -> None:
    edit(root, set_(path, value))
    refuse(root, *words)


def test_listing_refuses_a_lying_manifest_too(root: Path) -> None:
    edit(root, set_("records/0/file", "../x"))
    for look in (CaptureStore(root).list, CaptureStore(root).census):
        with pytest.raises(CaptureError, match="plain name"):
            look()


def test_a_huge_declared_tensor_is_refused_before_anything_is_allocated(root: Path) -> None:
    def grow(manifest: dict[str, Any]) -> None:
        manifest["geometry"] |= {"head_dim": 1 << 20, "rows": 1 << 11, "tokens": 1 << 20}
        manifest["tokens"]["count"] = 1 << 20
        for record in manifest["records"]:
            for name, tensor in record["tensors"].items():
                shape = [1 << 11, 2, 1 << 20] if name == "q" else [1 << 16, 16, 1, 1 << 20]
                tensor["shape"] = shape
                tensor["strides"] = [2 << 20, 1 << 20, 1] if name == "q" else [16 << 20, 1 << 20, 1 << 20, 1]

    edit(root, grow)
    refuse(root, "records[0].tensors", "shape")


def test_an_oversized_manifest_is_refused_unread(root: Path) -> None:
    with open(root / "small" / "manifest.json", "ab") as stream:
        stream.truncate(MAX_MANIFEST_BYTES + 1)
    refuse(root, "manifest.json", "at most")


@pytest.mark.parametrize("text", ["", "null", "[]", "{", "[" * 100_000, '{"x": ' + "[" * 100_000, "\ufeff{}", "NaN"])
def test_a_manifest_that_is_no_manifest_is_refused(root: Path, text: str) -> None:
    (root / "small" / "manifest.json").write_text(text)
    refuse(root, "manifest.json")


def test_foreign_text_cannot_reach_the_terminal_as_it_is(root: Path) -> None:
    edit(root, set_("\x1b[31mred\u202e", 1))
    with pytest.raises(CaptureError) as refusal:
        CaptureStore(root).list()
    assert str(refusal.value).isprintable()
    assert "red" in str(refusal.value)


def test_an_altered_payload_is_refused(root: Path) -> None:
    path = root / "small" / LAYER
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(CaptureError, match=r"rank1\.v: sha256"):
        CaptureStore(root).load("small/layer2/rank1")


def test_an_altered_text_is_refused(root: Path) -> None:
    path = root / "small" / "text.txt"
    path.write_bytes(path.read_bytes().replace(b"be", b"we"))
    refuse(root, "text.txt", "sha256")


@pytest.mark.parametrize("name", [LAYER, "text.txt", "manifest.json"])
def test_a_missing_file_is_refused(root: Path, name: str) -> None:
    (root / "small" / name).unlink()
    refuse(root, name, "readable file")


@pytest.mark.parametrize("keep", [0, 7, 8, 100, -1])
def test_a_truncated_file_is_refused(root: Path, keep: int) -> None:
    path = root / "small" / LAYER
    path.write_bytes(path.read_bytes()[:keep])
    refuse(root, LAYER)


def test_a_file_with_a_tail_is_refused(root: Path) -> None:
    with open(root / "small" / LAYER, "ab") as stream:
        stream.write(b"\0")
    refuse(root, LAYER, "tail")


@pytest.mark.parametrize("length", [0, 1, MAX_HEADER_BYTES + 1, 1 << 40, (1 << 64) - 1])
def test_a_header_length_beyond_bounds_is_refused(root: Path, length: int) -> None:
    path = root / "small" / LAYER
    path.write_bytes(struct.pack("<Q", length) + path.read_bytes()[8:])
    refuse(root, LAYER, "header length")


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("rank0.k/dtype", "F16", ("rank0.k",)),
        ("rank0.k/dtype", "F8_E4M3", ("rank0.k.dtype", "F8_E4M3")),
        ("rank0.k/shape", [16, 3, 1, 8], ("rank0.k", "shape")),
        ("rank0.k/shape", [1 << 62, 1 << 62], ("rank0.k.shape",)),
        ("rank0.k/shape", [-3, -16, 1, 8], ("rank0.k.shape",)),
        ("rank0.k/shape", [3, 16, 1, 8, *[1] * 9], ("rank0.k.shape",)),
        ("rank0.k/data_offsets", [0, 384], ("data_offsets",)),
        ("rank0.k/data_offsets", [256, 1 << 60], ("data_offsets",)),
        ("rank0.k/surplus", 1, ("unknown field", "surplus")),
        ("extra", {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}, ("data_offsets",)),
    ],
)
def test_a_header_that_lies_is_refused(root: Path, path: str, value: object, words: tuple[str, ...]) -> None:
    edit_header(root, set_(path, value))
    refuse(root, LAYER, *words)


@pytest.mark.parametrize("header", [b"[]", b"{}", b"\xff\xff", b"[" * 100_000, b'{"a":' + b"[" * 100_000])
def test_a_header_that_is_no_header_is_refused(root: Path, header: bytes) -> None:
    (root / "small" / LAYER).write_bytes(struct.pack("<Q", len(header)) + header)
    refuse(root, LAYER)


def test_a_tensor_that_the_manifest_does_not_name_is_refused(root: Path) -> None:
    edit_header(root, lambda header: header.update({"stowaway": header.pop("rank1.k")}))
    refuse(root, LAYER, "exactly the tensors", "stowaway")


@pytest.mark.parametrize("name", [LAYER, "text.txt", "manifest.json"])
def test_a_link_out_of_the_folder_is_refused(root: Path, tmp_path: Path, name: str) -> None:
    path = root / "small" / name
    path.rename(tmp_path / name)
    path.symlink_to(tmp_path / name)
    refuse(root, name, "links elsewhere")


def test_a_dangling_manifest_is_not_overlooked(root: Path) -> None:
    path = root / "small" / "manifest.json"
    path.unlink()
    path.symlink_to("nowhere")
    with pytest.raises(CaptureError, match=r"manifest\.json"):
        CaptureStore(root).list()


def test_a_set_that_is_a_link_to_elsewhere_is_refused(root: Path, tmp_path: Path) -> None:
    (root / "small").rename(tmp_path / "small")
    (root / "small").symlink_to(tmp_path / "small")
    refuse(root, "'small'", "links elsewhere")


def test_a_set_under_a_second_name_is_refused(root: Path) -> None:
    (root / "twin").symlink_to(root / "small")
    with pytest.raises(CaptureError, match="twin"):
        CaptureStore(root).list()


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", [LAYER, "text.txt", "manifest.json"])
def test_what_is_no_regular_file_is_refused_without_waiting(root: Path, name: str) -> None:
    path = root / "small" / name
    path.unlink()
    os.mkfifo(path)
    refuse(root, name, "regular file")
    path.unlink()
    path.mkdir()
    refuse(root, name, "regular file")


def test_a_consistent_forgery_shows_in_the_manifest_digest(root: Path) -> None:
    """Whoever rewrites payload and manifest alike passes verification; evidence holds the manifest's digest."""
    before = CaptureStore(root).load(ID)
    path = root / "small" / LAYER
    data = bytearray(path.read_bytes())
    (length,) = struct.unpack("<Q", data[:8])
    start = 8 + length + json.loads(bytes(data[8 : 8 + length]))["rank0.k"]["data_offsets"][0]
    data[start] ^= 1
    path.write_bytes(data)
    edit(root, set_("records/0/tensors/k/sha256", hashlib.sha256(data[start : start + 384]).hexdigest()))
    after = CaptureStore(root).load(ID)
    assert before.manifest_sha256 != after.manifest_sha256
    assert before.payload_sha256["k"] != after.payload_sha256["k"]
