"""Evidence on disk: written aside, renamed when whole, never overwritten.

A run writes into `.<name>.partial`; nothing that a reader accepts exists before the last rename. A whole
evidence folder holds plan.json, evidence.json, report.html and SHA256SUMS (readable by `sha256sum -c`).
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from audit.errors import EvidenceError
from audit.evidence.schema import SCHEMA, Evidence
from audit.plan import Plan

EVIDENCE, PLAN, REPORT, SUMS = "evidence.json", "plan.json", "report.html", "SHA256SUMS"
_SIZE_LIMIT = 256 * 2**20


class Draft:
    """A run's folder while it runs. `finish` makes it evidence; without that it stays a visible partial."""

    def __init__(self, runs: Path, shape: str, plan: Plan) -> None:
        now = datetime.now(UTC)
        self.started = now.isoformat(timespec="seconds")
        self.final = runs / f"{now:%Y%m%dT%H%M%SZ}-{shape}-{secrets.token_hex(3)}"
        self.folder = runs / f".{self.final.name}.partial"
        try:
            self.folder.mkdir(parents=True)
            _write(self.folder / PLAN, msgspec.json.format(msgspec.json.encode(plan), indent=1))
        except OSError as error:
            raise EvidenceError(
                f"{runs}: evidence cannot be written there ({error.strerror}); name a writable folder with --out"
            ) from None

    def finish(self, evidence: Evidence, attachments: Mapping[str, bytes]) -> Path:
        """Write everything, flush it to disk, rename; the folder of the whole evidence."""
        try:
            files = {EVIDENCE: msgspec.json.format(msgspec.json.encode(evidence), indent=1), **attachments}
            for name, content in files.items():
                _write(self.folder / name, content)
            files[PLAN] = (self.folder / PLAN).read_bytes()
            sums = "".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files))
            _write(self.folder / SUMS, sums.encode())
            self.folder.rename(self.final)
            _flush_folder(self.final.parent)
        except OSError as error:
            raise EvidenceError(f"{self.folder}: evidence could not be completed ({error.strerror})") from None
        return self.final


def load(path: Path) -> Evidence:
    """Read whole evidence from its folder or its evidence.json; EvidenceError says what is wrong with it."""
    folder = path.parent if path.name == EVIDENCE else path
    if folder.name.endswith(".partial"):
        raise EvidenceError(f"{folder}: this run did not finish; it is no evidence")
    listed = _sums(folder)
    raw = b""
    for name, recorded in listed.items():
        file = folder / name
        if Path(name).name != name or file.is_symlink() or not file.is_file() or file.stat().st_size > _SIZE_LIMIT:
            raise EvidenceError(f"{file}: listed in {SUMS}, but missing, too large, or not a plain file of this folder")
        content = file.read_bytes()
        if hashlib.sha256(content).hexdigest() != recorded:
            raise EvidenceError(f"{file}: expected sha256 {recorded[:16]}..., but the file differs: it was altered")
        if name == EVIDENCE:
            raw = content
    if EVIDENCE not in listed or PLAN not in listed:
        raise EvidenceError(f"{folder / SUMS}: expected {EVIDENCE} and {PLAN} to be listed")
    return decode(raw, folder / EVIDENCE)


def decode(raw: bytes, where: Path) -> Evidence:
    """Evidence from its JSON, the schema version checked first."""
    try:
        version = msgspec.json.decode(raw, type=_Versioned).schema
        if version != SCHEMA:
            raise EvidenceError(f"{where}: expected schema {SCHEMA}, but got {version}; use a version that knows it")
        return msgspec.json.decode(raw, type=Evidence)
    except msgspec.DecodeError as error:
        raise EvidenceError(f"{where}: {error}") from None


def latest(runs: Path) -> Path:
    """The newest whole evidence in a runs folder."""
    whole = sorted(path.parent for path in runs.glob(f"*/{EVIDENCE}") if not path.parent.name.startswith("."))
    if not whole:
        raise EvidenceError(f"{runs}: no evidence there yet; make some with `audit run --shape NAME`")
    return whole[-1]


class _Versioned(msgspec.Struct):
    schema: int


def _sums(folder: Path) -> dict[str, str]:
    try:
        lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise EvidenceError(f"{folder}: expected a folder of evidence with a {SUMS}") from None
    pairs = [line.split("  ", 1) for line in lines]
    if any(len(pair) != 2 for pair in pairs):
        raise EvidenceError(f"{folder / SUMS}: expected lines of a sha256, two spaces and a name")
    return {name: digest for digest, name in pairs}


def _write(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
