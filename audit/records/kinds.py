"""The table of all kinds of records, and functions that find a folder's kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

from audit.errors import EvidenceError
from audit.records import bench, folder, packing, run, sanitize, survey
from audit.records.kind import Kind

Record: TypeAlias = run.RunRecord | sanitize.SanitizeRecord | bench.BenchRecord | survey.SurveyRecord

KINDS: tuple[Kind[Any], ...] = (run.KIND, sanitize.KIND, bench.KIND, survey.KIND)
FILES = tuple(kind.file for kind in KINDS)


def kind_of(record: Record) -> Kind[Any]:
    """The kind of a record."""
    return next(kind for kind in KINDS if isinstance(record, kind.record))


def kind_in(home: Path) -> Kind[Any]:
    """The kind of the record in a folder. Raises EvidenceError if there is none."""
    for kind in KINDS:
        if packing.lies(home, kind.file):
            return kind
    raise EvidenceError(f"{home}: expected a folder with one of {', '.join(FILES)}; `audit run` writes one")


def home_of(path: Path) -> Path:
    """The folder of a record from a path to the folder, its record or its list of digests."""
    return path.parent if packing.unpacked_name(path.name) in (*FILES, folder.SUMS) else path


def load_record(path: Path) -> Record:
    """The verified record of a folder. Raises EvidenceError if it is altered, incomplete or malformed."""
    home = home_of(path)
    record: Record = kind_in(home).load(home)
    return record
