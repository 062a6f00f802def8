"""The folder of a record on disk: written aside, renamed when complete, never overwritten.

A run writes into `.<name>.partial`, which no reader accepts; the last step renames it. A complete folder lists every
file in SHA256SUMS, which `sha256sum -c` can check.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from audit.errors import EvidenceError
from audit.records import packing
from audit.records.packing import SIZE_LIMIT

REPORT, SUMS = "report.html", "SHA256SUMS"
_LINE = re.compile(rb"(?P<digest>[0-9a-f]{64})  (?P<name>[^\n\0]+)")
_NAMES_TRIED = 100
_Record = TypeVar("_Record")


class Partial:
    """A run's folder during the run. `seal` completes it; without that it stays a visible partial folder.

    `first` holds the files to write before anything runs. Raises EvidenceError if `runs` is not writable.
    """

    def __init__(self, runs: Path, label: str, first: Mapping[str, bytes]) -> None:
        now = datetime.now(UTC)
        self.started = now.isoformat(timespec="seconds")
        self.first = dict(first)
        try:
            runs.mkdir(parents=True, exist_ok=True)
            self.final, self.folder = _claim(runs, f"{now:%Y%m%dT%H%M%SZ}-{label}")
            for name, content in first.items():
                write(self.folder / name, content)
        except OSError as error:
            raise EvidenceError(
                f"{runs}: evidence cannot be written there ({error.strerror}); name a writable folder with --out"
            ) from None

    def seal(self, files: Mapping[str, bytes]) -> Path:
        """Write the files beside the first ones, flush them to disk, and rename the folder. Returns it."""
        all_files = {**files, **self.first}
        try:
            for name in all_files.keys() - self.first.keys():
                write(self.folder / name, all_files[name])
            write(self.folder / SUMS, sums(all_files))
            flush_folder(self.folder)
            self.folder.rename(self.final)
            flush_folder(self.final.parent)
        except OSError as error:
            raise EvidenceError(
                f"{self.folder}: evidence could not be completed ({error.strerror}); free space or permissions, then "
                "run again"
            ) from None
        return self.final


def verified(folder: Path, wanted: Collection[str] | None = None) -> dict[str, bytes]:
    """The wanted files of a folder (None: all listed ones), unpacked, after a check of every listed file.

    Raises EvidenceError if the folder is altered or incomplete.
    """
    if folder.name.endswith(".partial"):
        raise EvidenceError(f"{folder}: this run did not finish, so its folder is incomplete; run it again")
    files = {}
    for name, recorded in listed(folder).items():
        file = folder / name
        if Path(name).name != name or file.is_symlink() or not file.is_file() or file.stat().st_size > SIZE_LIMIT:
            raise EvidenceError(f"{file}: listed in {SUMS}, but missing, too large, or not a plain file of this folder")
        content = file.read_bytes()
        if hashlib.sha256(content).hexdigest() != recorded:
            raise EvidenceError(f"{file}: expected sha256 {recorded[:16]}..., but the file differs: it was altered")
        if wanted is None or packing.plain(name) in wanted:
            files[packing.plain(name)] = packing.unpacked(name, content, folder)
    return files


def require(files: Mapping[str, bytes], names: Collection[str], folder: Path) -> None:
    """Raise EvidenceError unless all names are among the files."""
    if missing := [name for name in names if name not in files]:
        raise EvidenceError(
            f"{folder / SUMS}: expected {' and '.join(names)} to be listed, but it lacks {' and '.join(missing)}"
        )


def encode(record: msgspec.Struct) -> bytes:
    """The JSON of a record, as written to disk."""
    return msgspec.json.format(msgspec.json.encode(record), indent=1)


def decode(raw: bytes, where: Path, kind: type[_Record], schema: int, *older: int) -> _Record:
    """A record from its JSON. Raises EvidenceError for malformed JSON or an unknown schema version.

    `older` versions are accepted too; fields that they lack have defaults.
    """
    try:
        version = msgspec.json.decode(raw, type=_Versioned).schema
        if version not in (schema, *older):
            raise EvidenceError(
                f"{where}: expected schema {schema}, but got {version}; use a version of kernel-audit that knows it"
            )
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise EvidenceError(f"{where}: {error}") from None


def latest(runs: Path, *records: str) -> Path:
    """The newest complete folder in a runs folder that holds one of these records."""
    folders = {path.parent for record in records for path in runs.glob(f"*/{record}*")}
    complete = sorted(folder for folder in folders if not folder.name.startswith("."))
    if not complete:
        raise EvidenceError(f"{runs}: expected a record, but there is none; make one with `audit run --shape NAME`")
    return complete[-1]


def write(path: Path, content: bytes) -> None:
    """Write a new file and flush it to disk. Raises FileExistsError if it exists."""
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def flush_folder(folder: Path) -> None:
    """Flush a folder's entries to disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class _Versioned(msgspec.Struct):
    schema: int


def sums(files: Mapping[str, bytes]) -> bytes:
    """The content of SHA256SUMS for these files."""
    return "".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files)).encode()


def listed(folder: Path) -> dict[str, str]:
    """Name -> sha256 of every file that a record's folder lists. Raises EvidenceError for a malformed line."""
    try:
        with (folder / SUMS).open("rb") as file:
            content = file.read(SIZE_LIMIT)
    except OSError:
        raise EvidenceError(f"{folder}: expected a folder of evidence with a {SUMS}, but found none") from None
    lines = [_LINE.fullmatch(line) for line in content.removesuffix(b"\n").split(b"\n")]
    try:
        digests = {line["name"].decode(): line["digest"].decode() for line in lines if line is not None}
    except UnicodeDecodeError:
        digests = {}
    if len(digests) != len(lines) or not content.endswith(b"\n"):
        raise EvidenceError(f"{folder / SUMS}: expected lines of a sha256, two spaces and a name; it was altered")
    return digests


def _claim(runs: Path, stem: str) -> tuple[Path, Path]:
    """An unused name and its new partial folder. Two runs that start at once never share one."""
    for _ in range(_NAMES_TRIED):
        final = runs / f"{stem}-{secrets.token_hex(3)}"
        folder = runs / f".{final.name}.partial"
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        if not final.exists():
            return final, folder
        folder.rmdir()
    raise EvidenceError(f"{runs}: no free name was found for {stem}; empty the folder")
