"""Evidence as an in-toto Statement v1 (https://in-toto.io/Statement/v1): what ordinary tools sign and verify.

Its subjects are the sources and binaries that the evidence is about, by their sha256; its predicate is the summary,
with the digests of the plan and the record, so that a signature over the statement covers all of the evidence.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from audit import foreign
from audit.foreign import ForeignError

STATEMENT = "statement.json"
TYPE = "https://in-toto.io/Statement/v1"
PREDICATES = "urn:kernel-audit:evidence"
"""The predicates are this project's own: urn:kernel-audit:evidence:audit:v1, and of bench and sanitize likewise."""


class Subject(msgspec.Struct, frozen=True):
    """One artifact; `digest` maps an algorithm to hexadecimal."""

    name: str
    digest: dict[str, str]


class Statement(msgspec.Struct, frozen=True, rename="camel"):
    """The outer layer of an attestation, as in-toto defines it."""

    type: str = msgspec.field(name="_type")
    subject: tuple[Subject, ...]
    predicate_type: str
    predicate: dict[str, Any]


class _Build(msgspec.Struct, frozen=True):
    sources: dict[str, str]
    binary_sha256: str


class _Record(msgspec.Struct, frozen=True):
    """What every kind of evidence has."""

    tool: str
    started: str
    command: str
    commit: str | None
    builds: dict[str, _Build]
    summary: dict[str, Any] = {}


def statement_of(files: Mapping[str, bytes], kind: str, record_file: str) -> bytes:
    """The statement about a folder's files, as the JSON that stands on disk; the same files give the same bytes.

    Old statements are compared with what this gives: whoever changes it takes a new version of the predicate.
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
    """Whether the statement among a folder's files is the one about them.

    A statement may also list what was rendered from the `evidence` files and is not kept.
    """
    rest = {name: content for name, content in files.items() if name != STATEMENT}
    try:
        written = foreign.decode(files[STATEMENT], Statement)
        listed = dict(written.predicate["files"])
    except (ForeignError, KeyError, TypeError, ValueError):
        return False
    kept = {name: digest for name, digest in listed.items() if name in rest or name in evidence}
    shown = msgspec.structs.replace(written, predicate={**written.predicate, "files": kept})
    return msgspec.json.encode(shown) == msgspec.json.encode(
        msgspec.json.decode(statement_of(rest, kind, record_file), type=Statement)
    )


def _subjects(builds: Mapping[str, _Build]) -> tuple[Subject, ...]:
    """Every source and binary once, under a name of its own: a path that has two contents carries its digest."""
    found: dict[str, str] = {}
    for key, build in builds.items():
        for name, digest in (*build.sources.items(), (f"build:{key}", build.binary_sha256)):
            unique = name if found.get(name, digest) == digest else f"{name}@{digest[:12]}"
            found[unique] = digest
    return tuple(Subject(name, {"sha256": digest}) for name, digest in sorted(found.items()))
