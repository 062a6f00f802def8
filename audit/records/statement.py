"""A record as an in-toto Statement v1 (https://in-toto.io/Statement/v1), which ordinary tools sign and verify.

Its subjects are the audited sources and binaries by their sha256. Its predicate is the summary with the digests of the
plan and the record, so that a signature over the statement covers the whole record.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from audit import foreign
from audit.foreign import ForeignError
from audit.records.folder import is_rendered

STATEMENT = "statement.json"
TYPE = "https://in-toto.io/Statement/v1"
PREDICATES = "urn:kernel-audit:evidence"
"""The prefix of this project's predicates: urn:kernel-audit:evidence:audit:v1, and likewise for bench and sanitize."""


class Subject(msgspec.Struct, frozen=True):
    """One artifact; `digest` maps an algorithm to hexadecimal."""

    name: str
    digest: dict[str, str]


class Statement(msgspec.Struct, frozen=True, rename="camel"):
    """The outer layer of an in-toto attestation."""

    type: str = msgspec.field(name="_type")
    subject: tuple[Subject, ...]
    predicate_type: str
    predicate: dict[str, Any]


class _Build(msgspec.Struct, frozen=True):
    sources: dict[str, str]
    binary_sha256: str


class _Record(msgspec.Struct, frozen=True):
    """The fields of every kind of record that a statement uses."""

    tool: str
    started: str
    command: str
    commit: str | None
    builds: dict[str, _Build]
    summary: dict[str, Any] = {}


def statement_of(files: Mapping[str, bytes], kind: str, record_file: str) -> bytes:
    """The statement about a folder's files, as the JSON on disk; deterministic.

    Verification compares old statements with this function's result. A change needs a new version of the predicate.
    """
    record = msgspec.json.decode(files[record_file], type=_Record)
    statement = Statement(
        type=TYPE,
        subject=_subjects(record.builds),
        predicate_type=f"{PREDICATES}:{kind}:v1",
        predicate={
            "tool": record.tool,
            "started": record.started,
            "command": record.command,
            "commit": record.commit,
            "summary": record.summary,
            "files": {
                each: {"sha256": hashlib.sha256(files[each]).hexdigest()} for each in sorted(files) if each != STATEMENT
            },
        },
    )
    return msgspec.json.format(msgspec.json.encode(statement), indent=1)


def agrees(files: Mapping[str, bytes], kind: str, record_file: str, evidence: Collection[str]) -> bool:
    """Whether the statement among a folder's files describes them.

    A statement may also list pages that were rendered from the `evidence` files and are not kept. Pages that were
    rendered after it are not in it.
    """
    try:
        written = foreign.decode(files[STATEMENT], Statement)
        listed = dict(written.predicate["files"])
    except (ForeignError, KeyError, TypeError, ValueError):
        return False
    rest = {
        name: content
        for name, content in files.items()
        if name != STATEMENT and (name in listed or not is_rendered(name))
    }
    kept = {name: digest for name, digest in listed.items() if name in rest or name in evidence}
    shown = msgspec.structs.replace(written, predicate={**written.predicate, "files": kept})
    return msgspec.json.encode(shown) == msgspec.json.encode(
        msgspec.json.decode(statement_of(rest, kind, record_file), type=Statement)
    )


def _subjects(builds: Mapping[str, _Build]) -> tuple[Subject, ...]:
    """Every source and binary once, under a unique name: a path with two contents has its digest appended."""
    digests: dict[str, str] = {}
    for key, build in builds.items():
        for name, digest in (*build.sources.items(), (f"build:{key}", build.binary_sha256)):
            unique = name if digests.get(name, digest) == digest else f"{name}@{digest[:12]}"
            digests[unique] = digest
    return tuple(Subject(name, {"sha256": digest}) for name, digest in sorted(digests.items()))
