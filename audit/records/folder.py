"""The folder of a record on disk: written aside, renamed when complete, never overwritten.

A run writes into `.<name>.partial`, which no reader accepts; the last step renames it. A complete folder lists every
file in SHA256SUMS, which `sha256sum -c` can check. Its page is rendered afterwards and added: whatever goes wrong with
a page costs no record.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping
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
_RENDERED = re.compile(r"report\.html|(?:errors|metrics|cases|inputs)-(?P<digest>[0-9a-f]{16})\.csv")
_MARKS = (SUMS, "statement.json", "plan.json", "evidence.json", "sanitize.json", "bench.json", "survey.json")
_NAMES_TRIED = 100
_LINE_SHOWN = 2000
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
    """A run's folder during the run. `seal` completes it; without that it stays a visible partial folder.

    `first` holds the files to write before anything runs. Raises EvidenceError if `runs` is not writable, or lies in a
    record.
    """

    def __init__(self, runs: Path, label: str, first: Mapping[str, bytes]) -> None:
        require_outside(runs, "another folder with --out")
        now = datetime.now(UTC)
        self.started = now.isoformat(timespec="seconds")
        self.first = dict(first)
        try:
            runs.mkdir(parents=True, exist_ok=True)
            self.final, self.folder = _claim(runs, f"{now:%Y%m%dT%H%M%SZ}-{label}")
            for name, content in first.items():
                write_file(self.folder / name, content)
        except OSError as error:
            raise EvidenceError(
                f"{runs}: evidence cannot be written there ({error.strerror}); name a writable folder with --out"
            ) from None

    def seal(self, files: Mapping[str, bytes]) -> Path:
        """Write the files beside the first ones, flush them to disk, and rename the folder. Returns it."""
        all_files = {**files, **self.first}
        try:
            for name in all_files.keys() - self.first.keys():
                write_file(self.folder / name, all_files[name])
            write_file(self.folder / SUMS, sums(all_files))
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
        content = read_listed(folder, name)
        if content is None:
            raise EvidenceError(f"{file}: listed in {SUMS}, but missing, too large, or not a plain file of this folder")
        if hashlib.sha256(content).hexdigest() != recorded:
            raise EvidenceError(f"{file}: expected sha256 {recorded[:16]}..., but the file differs: it was altered")
        if wanted is None or packing.unpacked_name(name) in wanted:
            files[packing.unpacked_name(name)] = packing.unpacked(name, content, folder)
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
        version = foreign.decode(raw, _Versioned, rules=RULES).schema
        if version not in (schema, *older):
            raise EvidenceError(
                f"{where}: expected schema {schema}, but got {version}; use a version of kernel-audit that knows it"
            )
        return msgspec.json.decode(raw, type=kind)
    except (ForeignError, msgspec.DecodeError) as error:
        raise EvidenceError(f"{where}: {one_line(error)}") from None


def latest(runs: Path, *records: str) -> Path:
    """The newest complete folder in a runs folder that holds one of these records."""
    folders = {path.parent for record in records for path in runs.glob(f"*/{record}*")}
    complete = sorted(folder for folder in folders if not folder.name.startswith("."))
    if not complete:
        raise EvidenceError(f"{runs}: expected a record, but there is none; make one with `audit run --shape NAME`")
    return complete[-1]


def write_file(path: Path, content: bytes) -> None:
    """Write a new file and flush it to disk. Raises FileExistsError if it exists."""
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def read_listed(folder: Path, name: str) -> bytes | None:
    """What a listed file holds; None where it is missing, too large, or not a plain file of this very folder."""
    try:
        return foreign.read(folder / name, SIZE_LIMIT) if Path(name).name == name else None
    except ForeignError:
        return None


def is_rendered(name: str) -> bool:
    """Whether a file of that name is a page, or a table beside one: made from a record, and no evidence itself."""
    return _RENDERED.fullmatch(name) is not None


def names_its_content(name: str, content: bytes) -> bool:
    """Whether a table beside a page is the one that its name carries the digest of."""
    found = _RENDERED.fullmatch(name)
    return found is not None and found["digest"] == hashlib.sha256(content).hexdigest()[:16]


def add_pages(home: Path, render: Callable[[], Mapping[str, bytes]]) -> None:
    """Render the pages of a sealed folder and list them in it. What goes wrong is reported on stderr, and is no error:
    the record is complete."""
    try:
        _add(home, render())
    except Exception as error:
        reason = str(error) or type(error).__name__
        line = f"audit: the page of {home} was not written: {reason}; the record is complete: `audit report {home}`"
        try:
            sys.stderr.write(f"{one_line(line, _LINE_SHOWN)}\n")
        except (OSError, ValueError, AttributeError):  # closed
            return


def page_in(home: Path) -> Path | None:
    """The page in a folder, if it has one."""
    page = home / REPORT
    return page if page.is_file() else None


def _add(home: Path, pages: Mapping[str, bytes]) -> None:
    """Each file appears whole, by a rename; the list of digests last, in the place of the one before."""
    digests = listed(home)
    if taken := next((name for name in pages if name in digests or not is_rendered(name)), None):
        raise EvidenceError(f"{home / taken}: is there already, or is no page; evidence is never overwritten")
    aside = Path(tempfile.mkdtemp(prefix=f".{home.name}.", suffix=".partial", dir=home.parent))
    try:
        for name, content in pages.items():
            write_file(aside / name, content)
            digests[name] = hashlib.sha256(content).hexdigest()
        write_file(aside / SUMS, _lines(digests))
        for name in pages:
            (aside / name).rename(home / name)
        (aside / SUMS).rename(home / SUMS)
        flush_folder(home)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def require_outside(path: Path, instead: str) -> None:
    """Raise EvidenceError where a path to be written is, or lies in, a record's folder; `instead` says what to name."""
    whole = path.resolve()
    for folder in (whole, *whole.parents):
        if _is_record(folder):
            raise EvidenceError(f"{path}: lies in the record {folder}; evidence is never overwritten: name {instead}")


def _is_record(folder: Path) -> bool:
    """Whether a folder is a record, be it damaged or incomplete: it has two files that every record has."""
    try:
        names = {packing.unpacked_name(entry.name) for entry in os.scandir(folder)}
    except OSError:
        return False
    return len(names.intersection(_MARKS)) >= (1 if folder.name.endswith(".partial") else 2)


def require_writable(file: Path) -> None:
    """Raise EvidenceError where a file to be written lies in a record, or is there and no plain file."""
    require_outside(file, "a file elsewhere")
    if os.path.lexists(file.resolve()) and not file.is_file():
        raise EvidenceError(f"{file}: expected a plain file or a new one, but something else has that name")


def write_output(file: Path, content: bytes) -> None:
    """Write a file that a user named, whole or not at all, in the place of a plain file that was there.

    Raises EvidenceError where it lies in a record, is no plain file, or cannot be written.
    """
    require_writable(file)
    there = file.resolve()
    try:
        aside = Path(tempfile.mkdtemp(prefix=f".{there.name}.", dir=there.parent))
        try:
            (aside / "new").write_bytes(content)
            (aside / "new").rename(there)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    except OSError as error:
        raise EvidenceError(
            f"{file}: cannot be written there ({error.strerror}); name a file in a writable folder"
        ) from None


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
    return _lines({name: hashlib.sha256(content).hexdigest() for name, content in files.items()})


def _lines(digests: Mapping[str, str]) -> bytes:
    return "".join(f"{digests[name]}  {name}\n" for name in sorted(digests)).encode()


def listed(folder: Path) -> dict[str, str]:
    """Name -> sha256 of every file that a record's folder lists. Raises EvidenceError for a malformed line."""
    try:
        content = foreign.read(folder / SUMS, MOST_LISTED)
    except ForeignError as error:
        raise EvidenceError(f"{folder}: expected a folder of evidence with a plain file {SUMS}: {error}") from None
    lines = [_LINE.fullmatch(line) for line in content.removesuffix(b"\n").split(b"\n")]
    try:
        digests = {line["name"].decode(): line["digest"].decode() for line in lines if line is not None}
    except UnicodeDecodeError:
        digests = {}
    if len(digests) != len({packing.unpacked_name(name) for name in digests}) or not all(map(_is_name, digests)):
        raise EvidenceError(f"{folder / SUMS}: expected printable names, each file once; it was altered")
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
