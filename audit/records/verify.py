"""Verifies a record: are its bytes unaltered, do its parts agree, and are its sources those of the project?

A record can have four kinds of flaws. *Altered*: a byte differs from the recorded one, or a file is not listed.
*Contradictory*: its parts disagree (plan and results, results and summary, record and page). *Not whole*: a planned
result or a file is missing, or the record cannot be read. *Stale*: a source or capture of the project has changed.
Where allowed signers are given, a signature can be *wrong* or missing (*not signed*), too.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from audit.checks.result import Verdict
from audit.errors import EvidenceError
from audit.project import Project
from audit.records import folder, packing, signature
from audit.records.currency import Staleness, stale
from audit.records.kind import Kind, as_far_as_possible
from audit.records.kinds import FILES, KINDS, Record, home_of
from audit.records.statement import STATEMENT

FlawKind = Literal["altered", "contradictory", "wrong signature", "not whole", "not signed", "stale"]
_FAILS: tuple[FlawKind, ...] = ("altered", "contradictory", "wrong signature")
_TITLE = re.compile(rb"<title>(?:(pass|fail|inconclusive)\b)?[^<]*</title>")
_SHOWN = re.compile(rb'<meta name="kernel-audit-record" content="([^"]*)">')


class Flaw(msgspec.Struct, frozen=True):
    """One flaw of a folder, in a sentence."""

    kind: FlawKind
    what: str


@dataclass(frozen=True)
class Verification:
    """The result for one folder; `record` is None if it is altered or cannot be read."""

    path: Path
    record: Record | None
    flaws: tuple[Flaw, ...]
    stale: Staleness = field(default_factory=Staleness)
    signer: str = ""  # where a signature was asked for, and is valid

    @property
    def verdict(self) -> Verdict:
        """Fail if altered or contradictory, inconclusive if stale or not whole."""
        if any(flaw.kind in _FAILS for flaw in self.flaws):
            return "fail"
        return "inconclusive" if self.flaws else "pass"

    @property
    def sound(self) -> bool:
        """Whether its record can be trusted, possibly for sources that have changed since."""
        return self.record is not None and all(flaw.kind == "stale" for flaw in self.flaws)

    def describe(self) -> str:
        """All flaws with their kinds, or that there are none."""
        if not self.flaws:
            return "complete, unaltered, and of the project's current sources"
        return "; ".join(f"{flaw.kind}: {flaw.what}" for flaw in self.flaws)


def verify(path: Path, project: Project, signers: Path | None = None) -> Verification:
    """Verify the folder of one record, or the record in it; with a file of allowed `signers`, its signature too.

    Flaws do not raise errors.
    """
    verification = _verify(home_of(path), project)
    if signers is None or verification.record is None:
        return verification
    home = verification.path
    if not signature.is_signed(home):
        flaw = Flaw("not signed", f"{home}: expected a signature; `audit sign {home} --key FILE` makes one")
        return replace(verification, flaws=(*verification.flaws, flaw))
    try:
        return replace(verification, signer=signature.signer(home, signers))
    except EvidenceError as error:
        return replace(verification, flaws=(*verification.flaws, Flaw("wrong signature", str(error))))


def _verify(home: Path, project: Project) -> Verification:
    try:
        files = _files(home)
    except EvidenceError as error:
        listing = os.path.lexists(home / folder.SUMS) and not _unfinished(home)
        return Verification(home, None, (Flaw("altered" if listing else "not whole", str(error)),))
    if flaws := [*_bytes(home, files)]:
        return Verification(home, None, tuple(flaws))
    names = {packing.unpacked_name(name) for name in files}
    kind = next((kind for kind in KINDS if kind.file in names), None)
    if kind is None:
        return Verification(
            home, None, (Flaw("not whole", f"{home}: expected one of {', '.join(FILES)} in {folder.SUMS}"),)
        )
    if missing := [needed for needed in kind.beside if needed not in names]:
        return Verification(home, None, (Flaw("not whole", f"{home}: lacks {', '.join(missing)}"),))
    try:
        files = {packing.unpacked_name(name): packing.unpacked(name, content, home) for name, content in files.items()}
        record: Record = kind.decode(files[kind.file], home / kind.file)
    except EvidenceError as error:
        return Verification(home, None, (Flaw("not whole", str(error)),))
    contradictions = [*_unlisted(home, files, kind.digest(record, files))]
    contradictions += [Flaw("contradictory", what) for what in kind.contradictions(record, files)]
    contradictions += [Flaw("contradictory", what) for what in as_far_as_possible(_page(home, kind, record, files))]
    lacking = [Flaw("not whole", what) for what in kind.gaps(record)]
    changed = stale(record, project)
    return Verification(
        home, record, (*contradictions, *lacking, *(Flaw("stale", what) for what in changed.describe())), changed
    )


def find_records(path: Path) -> tuple[Path, ...]:
    """The folders of records at or below a path, or the path itself if there are none.

    Unfinished folders are omitted, unless one is named.
    """
    home = home_of(path)
    if (home / folder.SUMS).is_file() or any(packing.lies(home, name) for name in FILES):
        return (home,)
    marks = (folder.SUMS, *FILES)
    folders = {file.parent for mark in marks for file in home.rglob(mark)}
    finished = sorted(
        each for each in folders if not any(part.startswith(".") for part in each.relative_to(home).parts)
    )
    return tuple(finished) or (home,)


def _files(home: Path) -> dict[str, bytes]:
    """The content of every listed file that exists and is a plain file of acceptable size, by name."""
    if _unfinished(home):
        raise EvidenceError(f"{home}: this run did not finish, so its folder is incomplete; run it again")
    found = {name: folder.read_listed(home, name) for name in folder.listed(home)}
    return {name: content for name, content in found.items() if content is not None}


def _unfinished(home: Path) -> bool:
    return home.name.endswith(".partial")


def _bytes(home: Path, files: dict[str, bytes]) -> Iterator[Flaw]:
    listed = folder.listed(home)
    for name, digest in listed.items():
        if name not in files:
            yield Flaw(
                "not whole",
                f"{home / name}: listed in {folder.SUMS}, but missing, too large, or not a plain file of this folder",
            )
        elif hashlib.sha256(files[name]).hexdigest() != digest:
            yield Flaw("altered", f"{home / name}: expected sha256 {digest[:16]}..., but the file differs")
    for name in _others(home, listed):
        if files.keys() != listed.keys() or not folder.is_rendered(name):
            yield Flaw("altered", f"{home / name}: not listed in {folder.SUMS}")
    if files.keys() == listed.keys() and folder.read_listed(home, folder.SUMS) != folder.sums(files):
        yield Flaw("altered", f"{home / folder.SUMS}: expected exactly the lines of the listed files")


def _others(home: Path, listed: Collection[str]) -> list[str]:
    """The files that are not listed. Signatures are made later and are beside the signed file."""
    names = (file.name for file in sorted(home.iterdir()))
    known = {*listed, folder.SUMS}
    return [name for name in names if name not in known and not name.startswith(f"{STATEMENT}.")]


def _unlisted(home: Path, files: Mapping[str, bytes], digest: str) -> Iterator[Flaw]:
    """A run that was killed while it added its page leaves files that are not listed; each must be of this record."""
    for name in filter(folder.is_rendered, _others(home, files)):
        content = folder.read_listed(home, name) or b""
        if not folder.names_its_content(name, content) and _SHOWN.findall(content) != [digest.encode()]:
            yield Flaw("altered", f"{home / name}: not listed in {folder.SUMS}, and not made from this record")


def _page(home: Path, kind: Kind[Any], record: Record, files: Mapping[str, bytes]) -> Iterator[str]:
    """Where the page beside a record shows another one. Pages of older versions do not name their record."""
    content = files.get(folder.REPORT) or folder.read_listed(home, folder.REPORT) or b""
    if others := {each.decode(errors="replace") for each in _SHOWN.findall(content)} - {kind.digest(record, files)}:
        yield f"{folder.REPORT} shows the record with sha256 {', '.join(sorted(others))[:16]}..., not this one"
    title, verdict = _TITLE.search(content), kind.headline(record).verdict
    if title and title[1] and title[1].decode() != verdict:
        yield f"{folder.REPORT} is titled {title[1].decode()!r}, but the record's verdict is {verdict!r}"
