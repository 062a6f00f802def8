"""The manifest of a capture set: the origin of the tensors, their layout, and which ones the recording should hold.

`manifest.json` may be hostile. Decoding bounds its size, refuses unknown versions and fields, and checks every value
that a later step computes with, so that code with a `Manifest` need not check it again.
"""

from __future__ import annotations

import math
import re
import reprlib
import struct
from typing import Literal, SupportsFloat

import msgspec

from audit import foreign
from audit.errors import CaptureError
from audit.foreign import ForeignError
from audit.printable import one_line

SCHEMA = "kernel-audit.capture"
VERSION = 1
MANIFEST_FILE = "manifest.json"
MAX_MANIFEST_BYTES = 4 << 20
MAX_TENSOR_BYTES = 1 << 30
MAX_RECORDS = 65_536

ITEM_BYTES = {"f16": 2, "e4m3": 1}
STORAGE = {"f16": "F16", "e4m3": "U8"}
"""Logical dtype -> safetensors dtype. E4M3 travels as plain bytes: numpy has no such type."""

PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
"""The names of sets and their files: they cannot lead out of a folder, and a terminal shows them unchanged."""
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The base of everything in a manifest: immutable, without unknown fields."""


class Scale(Part, frozen=True):
    """A binary32 value. The bits are authoritative; the decimal is for readers and must equal them."""

    bits: str
    value: float

    @property
    def number(self) -> float:
        """The value that the bits encode, exactly."""
        return float(struct.unpack(">f", bytes.fromhex(self.bits[2:]))[0])


class Tensor(Part, frozen=True):
    """One array of an entry: `key` names it inside the file, `offset` is its first byte in the file's data area."""

    key: str
    dtype: Literal["f16", "e4m3"]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In elements; only C-contiguous arrays are stored."""
    offset: int
    sha256: str
    """Of the payload bytes, not of the file, so that a container may be rewritten around the same payload."""

    @property
    def nbytes(self) -> int:
        """Size of the payload in bytes."""
        return math.prod(self.shape) * ITEM_BYTES[self.dtype]


class ManifestEntry(Part, frozen=True):
    """The tensors of one rank of one layer in one step."""

    layer: int
    rank: int
    step: int
    file: str
    scales: dict[str, Scale]
    tensors: dict[str, Tensor]


class Model(Part, frozen=True):
    """The model and the package that carried its weights."""

    name: str
    package: str
    version: str
    file: str
    nbytes: int
    sha256: str
    licence: str


class Text(Part, frozen=True):
    """The text that the model read, kept in the set's own folder."""

    file: str
    nbytes: int
    sha256: str
    origin: str
    licence: str


class Tokens(Part, frozen=True):
    """The model's input tokens; `sha256` is over their ids as little-endian 32-bit integers."""

    count: int
    sha256: str


class Geometry(Part, frozen=True):
    """Sizes shared by all records. Query head h belongs to KV head h // group, and rank r is KV head r."""

    tokens: int
    rows: int
    page: int
    query_heads: int
    kv_heads: int
    group: int
    head_dim: int
    step: int

    @property
    def pages(self) -> int:
        """The number of pages for all tokens; the last may be partly filled."""
        return -(-self.tokens // self.page)

    def shape(self, tensor: str) -> tuple[int, ...]:
        """The shape of q, k or v of one rank: q[rows, group, D], k and v[pages, page, 1, D]."""
        if tensor == "q":
            return (self.rows, self.group, self.head_dim)
        return (self.pages, self.page, 1, self.head_dim)


class Expected(Part, frozen=True):
    """The intended content of the recording, stated before it ran: every layer on every rank."""

    layers: tuple[int, ...]
    ranks: tuple[int, ...]

    @property
    def pairs(self) -> frozenset[tuple[int, int]]:
        """Every (layer, rank) of a complete set."""
        return frozenset((layer, rank) for layer in self.layers for rank in self.ranks)


class Proof(Part, frozen=True):
    """The proof, made before anything was written, that the hook recorded the model's own attention."""

    calls_per_layer: dict[str, int]
    logits_equal_to_stock: bool
    """The hooked run and a run with the library's own attention gave the same logits, bit for bit."""
    causal_mask_checked: bool
    later_tokens_do_not_reach_earlier_rows: bool
    attention_error: float
    """Largest |FP64 attention of the recorded tensors - the model's| over the largest |the model's|, all layers."""
    logits_error_uncached: float
    """Largest |difference| to logits of one uncached pass with another attention function, over the largest |logit|."""


class Environment(Part, frozen=True):
    """The software and machine that computed the activations: others may round differently."""

    packages: dict[str, str]
    python: str
    machine: str
    cpu_capability: str
    """The instruction set that torch chose for its own loops."""
    threads: int
    variables: dict[str, str]
    """The recipe's environment variables, which choose instruction sets and orders of summation."""


class Manifest(Part, frozen=True):
    """The content of `manifest.json`."""

    schema: str
    version: int
    name: str
    model: Model
    text: Text
    tokens: Tokens
    geometry: Geometry
    rules: dict[str, str]
    """How the model's numbers were converted to the stored ones, in words, by tensor or scale."""
    environment: Environment
    proof: Proof
    expected: Expected
    records: tuple[ManifestEntry, ...]


class _Head(msgspec.Struct):
    schema: str
    version: int


def scale_of(value: SupportsFloat) -> Scale:
    """A value rounded to binary32, as bits and decimal. Raises CaptureError if the result is not finite."""
    try:
        packed = struct.pack(">f", float(value))
    except OverflowError:
        packed = b"\x7f\x80\0\0"
    number = struct.unpack(">f", packed)[0]
    if not math.isfinite(number):
        raise CaptureError(f"scale: expected a value that is finite in binary32, but got {value!r}")
    return Scale(bits=f"0x{packed.hex()}", value=number)


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """C-order strides of a shape, in elements."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def encode_manifest(manifest: Manifest) -> bytes:
    """The bytes of `manifest.json`, deterministic for a manifest."""
    return msgspec.json.format(msgspec.json.encode(manifest, order="deterministic"), indent=1) + b"\n"


def decode_manifest(data: bytes, where: str, folder: str) -> Manifest:
    """Decode and check a manifest; `where` names it in messages, `folder` is the name that it must have.

    Raises CaptureError for anything malformed, inconsistent or of another version.
    """
    if len(data) > MAX_MANIFEST_BYTES:
        raise CaptureError(
            f"{where}: expected a manifest of at most {MAX_MANIFEST_BYTES:,} bytes, but got {len(data):,}"
        )
    try:
        head = foreign.decode(data, _Head, limit=MAX_MANIFEST_BYTES)
        if head.schema != SCHEMA or head.version != VERSION:
            raise CaptureError(
                f"{where}: schema: expected {SCHEMA!r} version {VERSION}, but got {head.schema!r} "
                f"version {head.version}; use the kernel-audit that wrote it or record the set again"
            )
        manifest = msgspec.json.decode(data, type=Manifest)
    except (ForeignError, msgspec.DecodeError) as error:
        raise CaptureError(f"{where}: {one_line(error)}; restore the file or record again") from error
    _Checker(where).manifest(manifest, folder)
    return manifest


class _Checker:
    """The rules that types cannot express; every error names the manifest and the field."""

    def __init__(self, where: str) -> None:
        self.where = where

    def require(self, holds: bool, field: str, expected: str, actual: object) -> None:
        if not holds:
            raise CaptureError(
                f"{self.where}: {field}: expected {expected}, but got {reprlib.repr(actual)}; "
                "restore the file or record again"
            )

    def count(self, value: int, field: str, least: int = 1, most: int = 1 << 31) -> None:
        self.require(least <= value <= most, field, f"an integer of {least:,} to {most:,}", value)

    def name(self, value: str, field: str) -> None:
        self.require(bool(PLAIN_NAME.fullmatch(value)), field, "a plain name without any folder", value)

    def sha256(self, value: str, field: str) -> None:
        self.require(bool(_SHA256.fullmatch(value)), field, "64 lower-case hexadecimal digits", value)

    def manifest(self, m: Manifest, folder: str) -> None:
        self.name(m.name, "name")
        self.require(m.name == folder, "name", f"the name of its folder, {folder!r}", m.name)
        self.sha256(m.model.sha256, "model.sha256")
        self.name(m.text.file, "text.file")
        self.count(m.text.nbytes, "text.nbytes", 0, MAX_TENSOR_BYTES)
        self.sha256(m.text.sha256, "text.sha256")
        self.sha256(m.tokens.sha256, "tokens.sha256")
        self.geometry(m.geometry)
        self.require(m.tokens.count == m.geometry.tokens, "tokens.count", f"{m.geometry.tokens}", m.tokens.count)
        self.require(len(m.records) <= MAX_RECORDS, "records", f"at most {MAX_RECORDS:,}", len(m.records))
        layers, ranks = m.expected.layers, m.expected.ranks
        self.require(len(layers) * len(ranks) <= MAX_RECORDS, "expected", f"at most {MAX_RECORDS:,} pairs", "more")
        self.require(bool(layers) and len(set(layers)) == len(layers), "expected.layers", "distinct layers", layers)
        self.require(bool(ranks) and len(set(ranks)) == len(ranks), "expected.ranks", "distinct ranks", ranks)
        self.require(min(layers) >= 0, "expected.layers", "no negative layer", layers)
        self.require(set(ranks) <= set(range(m.geometry.kv_heads)), "expected.ranks", "KV heads", ranks)
        pairs = m.expected.pairs
        known_pairs: set[tuple[int, int]] = set()
        known_keys: set[tuple[str, str]] = set()
        for index, record in enumerate(m.records):
            at = f"records[{index}]"
            pair = (record.layer, record.rank)
            self.require(pair in pairs, at, "an expected layer and rank", pair)
            self.require(pair not in known_pairs, at, "each layer and rank once", pair)
            known_pairs.add(pair)
            self.record(record, m.geometry, at)
            for name, tensor in record.tensors.items():
                key = (record.file, tensor.key)
                self.require(key not in known_keys, f"{at}.tensors.{name}.key", "a tensor that no other names", key)
                known_keys.add(key)

    def geometry(self, g: Geometry) -> None:
        for field in ("tokens", "rows", "page", "query_heads", "kv_heads", "group", "head_dim"):
            self.count(getattr(g, field), f"geometry.{field}", 1, 1 << 20)
        self.count(g.step, "geometry.step", 0)
        self.require(g.rows <= g.tokens, "geometry.rows", f"at most {g.tokens} tokens", g.rows)
        self.require(
            g.group * g.kv_heads == g.query_heads,
            "geometry.group",
            f"{g.query_heads}/{g.kv_heads} heads",
            g.group,
        )

    def record(self, record: ManifestEntry, geometry: Geometry, at: str) -> None:
        self.count(record.layer, f"{at}.layer", 0)
        self.count(record.rank, f"{at}.rank", 0, geometry.kv_heads - 1)
        self.require(record.step == geometry.step, f"{at}.step", f"{geometry.step}", record.step)
        self.name(record.file, f"{at}.file")
        self.require(sorted(record.scales) == ["k_scale", "scale", "v_scale"], f"{at}.scales",
                     "scale, k_scale and v_scale", sorted(record.scales))  # fmt: skip
        for name, scale in record.scales.items():
            self.scale(scale, f"{at}.scales.{name}")
        self.require(sorted(record.tensors) == ["k", "q", "v"], f"{at}.tensors", "q, k and v", sorted(record.tensors))
        for name, tensor in record.tensors.items():
            self.tensor(name, tensor, geometry, f"{at}.tensors.{name}")

    def scale(self, scale: Scale, at: str) -> None:
        self.require(bool(re.fullmatch(r"0x[0-9a-f]{8}", scale.bits)), f"{at}.bits",
                     "0x and 8 lower-case hexadecimal digits", scale.bits)  # fmt: skip
        number = scale.number
        self.require(math.isfinite(number) and number > 0, f"{at}.bits", "a finite positive number", number)
        self.require(scale.value == number, f"{at}.value", f"{number!r}, the value of the bits", scale.value)

    def tensor(self, name: str, tensor: Tensor, geometry: Geometry, at: str) -> None:
        dtype = "f16" if name == "q" else "e4m3"
        self.require(tensor.dtype == dtype, f"{at}.dtype", dtype, tensor.dtype)
        shape = geometry.shape(name)
        self.require(tensor.shape == shape, f"{at}.shape", f"{shape}, the shape of the geometry", tensor.shape)
        self.require(tensor.strides == contiguous(shape), f"{at}.strides", f"{contiguous(shape)}", tensor.strides)
        self.count(tensor.nbytes, f"{at}.shape", 1, MAX_TENSOR_BYTES)
        self.count(tensor.offset, f"{at}.offset", 0, 1 << 50)
        self.sha256(tensor.sha256, f"{at}.sha256")
