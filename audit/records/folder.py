"""A folder of evidence on disk, whatever its record is: written aside, renamed when whole, never overwritten.

A run writes into `.<name>.partial`; nothing that a reader accepts exists before the last rename. A whole folder
lists every file in SHA256SUMS, readable by `sha256sum -c`.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from audit import foreign
from audit.errors import EvidenceError
from audit.foreign import ForeignError
from audit.printable import one_line
from audit.records import packing
from audit.records.packing import SIZE_LIMIT

REPORT, SUMS = "report.html", "SHA256SUMS"
_LINE = re.compile(rb"(?P<digest>[0-9a-f]{64})  (?P<name>[^\n\0]+)")
_NAMES_TRIED = 100
MOST_LISTED = 2**20
"""Bytes of SHA256SUMS."""


def _is_name(value: object) -> bool:
    return not isinstance(value, str) or (len(value) <= foreign.MOST_LETTERS and value.isprintable())


def _is_count(value: object) -> bool:
    return not isinstance(value, int) or 0 <= value < 2**63


def _is_time(value: object) -> bool:
    try:
        return isinstance(value, str) and 1970 <= datetime.fromisoformat(value).year < 9000 and value.isprintable()
    except ValueError:
        return False


def _is_day(value: object) -> bool:
    try:
        return isinstance(value, str) and date.fromisoformat(value).year >= 1970
    except ValueError:
        return False


def _is_binary64(value: object) -> bool:
    return isinstance(value, str) and len(value) == 16 and not value.strip("0123456789abcdef")


def _is_duration(value: object) -> bool:
    return not isinstance(value, int | float) or 0 <= value < _LONGEST


_LONGEST = 10 * 366 * 24 * 3600.0  # seconds
_NAMED = (
    "name", "shape", "operator", "variant", "parent", "case", "reference", "mutation",
    "check", "build", "tool", "a", "b",
)  # fmt: skip
_COUNTED = (
    *("planned", "ran", "passed", "failed", "inconclusive", "clean", "canaries", "canaries_found", "launches"),
    *("planned_launches", "count", "used", "line", "differing", "nan_on_one_side", "nan_on_both_sides", "nbytes"),
    *("registers", "static_shared", "stack", "local", "spill_stores", "spill_loads", "layers", "trials", "replays"),
    *("warm_ups", "moved", "ulp_limit"),
)
RULES: Mapping[str, foreign.Rule] = {
    "started": _is_time,
    "expires": _is_day,
    "bits": _is_binary64,
    "seconds": _is_duration,
    "time_limit": _is_duration,
    **dict.fromkeys(_NAMED, _is_name),
    **dict.fromkeys(_COUNTED, _is_count),
}
"""What fields of records can hold, by their names; of another type they are left to the decoder."""
_Record = TypeVar("_Record")


class Partial:
    """A run's folder while it runs. `seal` makes it evidence; without that it stays a visible partial.

    `first` is what stands in it before anything runs. Raises EvidenceError where `runs` cannot be written.
    """

    def __init__(self, runs: Path, label: str, first: Mapping[str, bytes]) -> None:
        now = datetime.now(UTC)
        self.started = now.isoformat(timespec="seconds")
        self.first = dict(first)
        try:
            _make(runs)
            self.final, self.folder = _claimed(runs, f"{now:%Y%m%dT%H%M%SZ}-{label}")
            for name, content in first.items():
                write(self.folder / name, content)
        except OSError as error:
            raise EvidenceError(
                f"{runs}: evidence cannot be written there ({error.strerror}); name a writable folder with --out"
            ) from None

    def seal(self, files: Mapping[str, bytes]) -> Path:
        """Write the files beside the first ones, flush them to disk, rename; the whole folder."""
        whole = {**files, **self.first}
        try:
            for name in whole.keys() - self.first.keys():
                write(self.folder / name, whole[name])
            write(self.folder / SUMS, sums(whole))
            flush_folder(self.folder)
            self.folder.rename(self.final)
            flush_folder(self.final.parent)
        except OSError as error:
            raise EvidenceError(f"{self.folder}: evidence could not be completed ({error.strerror})") from None
        return self.final


def verified(folder: Path, wanted: Collection[str] | None = None) -> dict[str, bytes]:
    """Those of the wanted files that are listed (None: all), unpacked, after every listed file was found unchanged.

    EvidenceError says what is wrong with the folder.
    """
    if folder.name.endswith(".partial"):
        raise EvidenceError(f"{folder}: this run did not finish; it is no evidence")
    found = {}
    for name, recorded in listed(folder).items():
        file = folder / name
        if (content := plain_content(folder, name)) is None:
            raise EvidenceError(f"{file}: listed in {SUMS}, but missing, too large, or not a plain file of this folder")
        if hashlib.sha256(content).hexdigest() != recorded:
            raise EvidenceError(f"{file}: expected sha256 {recorded[:16]}..., but the file differs: it was altered")
        if wanted is None or packing.plain(name) in wanted:
            found[packing.plain(name)] = packing.unpacked(name, content, folder)
    return found


def plain_content(folder: Path, name: str) -> bytes | None:
    """What a listed file holds; None where it is no plain file of that folder, or too large."""
    try:
        return foreign.read(folder / name, SIZE_LIMIT) if Path(name).name == name else None
    except ForeignError:
        return None


def require(found: Mapping[str, bytes], names: Collection[str], folder: Path) -> None:
    """Raise EvidenceError where a name is not among what was found."""
    if not all(name in found for name in names):
        raise EvidenceError(f"{folder / SUMS}: expected {' and '.join(names)} to be listed")


def encode(record: msgspec.Struct) -> bytes:
    """A record as the JSON that stands on disk."""
    return msgspec.json.format(msgspec.json.encode(record), indent=1)


def decode(raw: bytes, where: Path, kind: type[_Record], schema: int, *older: int) -> _Record:
    """A record from its JSON, the schema version checked first; EvidenceError for any other or malformed.

    `older` versions are read too: what they lack has a default.
    """
    try:
        version = foreign.decode(raw, _Versioned, rules=RULES).schema
        if version not in (schema, *older):
            raise EvidenceError(f"{where}: expected schema {schema}, but got {version}; use a version that knows it")
        return msgspec.json.decode(raw, type=kind)
    except (ForeignError, msgspec.DecodeError) as error:
        raise EvidenceError(f"{where}: {one_line(error)}") from None


def latest(runs: Path, *records: str) -> Path:
    """The newest whole folder in a runs folder that holds one of these records."""
    whole = {path.parent for record in records for path in runs.glob(f"*/{record}*")}
    seen = sorted(folder for folder in whole if not folder.name.startswith("."))
    if not seen:
        raise EvidenceError(f"{runs}: no evidence there yet; make some with `audit run --shape NAME`")
    return seen[-1]


def write(path: Path, content: bytes) -> None:
    """Write a new file and flush it to disk; FileExistsError where there is one."""
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def flush_folder(folder: Path) -> None:
    """Flush a folder's names to disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class _Versioned(msgspec.Struct):
    schema: int


def sums(files: Mapping[str, bytes]) -> bytes:
    """What SHA256SUMS holds for these files."""
    return "".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files)).encode()


def listed(folder: Path) -> dict[str, str]:
    """Name -> sha256 of every file that a folder of evidence lists; EvidenceError where a line is not as `sums` writes
    it."""
    try:
        content = foreign.read(folder / SUMS, MOST_LISTED)
    except ForeignError as error:
        raise EvidenceError(f"{folder}: expected a folder of evidence with a {SUMS}, but it {error}") from None
    lines = [_LINE.fullmatch(line) for line in content.removesuffix(b"\n").split(b"\n")]
    try:
        found = {line["name"].decode(): line["digest"].decode() for line in lines if line is not None}
    except UnicodeDecodeError:
        found = {}
    if len(found) != len({packing.plain(name) for name in found}) or not all(map(_is_name, found)):
        raise EvidenceError(f"{folder / SUMS}: expected printable names, each file once; it was altered")
    if len(found) != len(lines) or not content.endswith(b"\n"):
        raise EvidenceError(f"{folder / SUMS}: expected lines of a sha256, two spaces and a name; it was altered")
    return found


def _make(runs: Path) -> None:
    """A folder of runs that is made here ignores itself in git; one that was there is left as it is."""
    try:
        runs.mkdir(parents=True)
    except FileExistsError:
        return
    (runs / ".gitignore").write_text("*\n")


def _claimed(runs: Path, stem: str) -> tuple[Path, Path]:
    """A name that no other run has, and its partial folder, made: two that start at once never share one."""
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
    raise EvidenceError(f"{runs}: no free name was found for {stem}; clear the folder")
