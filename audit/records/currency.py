"""Compares the sources and captures in a record with those of the project's working tree."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from audit.capture.store import CaptureStore
from audit.compile.identity import BuildIdentity, sha256_of_file
from audit.errors import CaptureError
from audit.project import Project
from audit.records.closure import changes
from audit.records.kinds import Record, kind_of
from audit.records.survey import SurveyRecord

_OF_A_REVISION = re.compile(r".+@[0-9a-f]{12}-.+")


class Staleness(msgspec.Struct, frozen=True):
    """The changes since a record: source -> change, capture -> change, builds that use changed sources, and whatever
    else decided the verdict -> change."""

    sources: dict[str, str] = {}
    captures: dict[str, str] = {}
    builds: tuple[str, ...] = ()
    closure: dict[str, str] = {}

    def describe(self) -> tuple[str, ...]:
        """Each changed file or capture with its change."""
        return tuple(
            f"{name} {how}" for name, how in (*self.sources.items(), *self.captures.items(), *self.closure.items())
        )


def stale(record: Record, project: Project) -> Staleness:
    """The sources of a record's builds, its captures, and what else decided it, that have changed since.

    Builds of another git revision are not compared, because their sources are those of that revision.
    """
    builds = {key: build for key, build in record.builds.items() if not _OF_A_REVISION.fullmatch(key)}
    sources = dict(_sources(builds, project))
    changed = tuple(key for key, build in builds.items() if sources.keys() & build.sources.keys())
    captures = dict(_captures(kind_of(record).captures(record), project))
    return Staleness(sources, captures, changed, dict(_closure(record, project)))


def _closure(record: Record, project: Project) -> Iterator[tuple[str, str]]:
    kind = kind_of(record)
    if kind.changed:
        yield from kind.changed(record, project)
        return
    if isinstance(record, SurveyRecord) or record.closure is None:
        yield "the record", "is of a version that did not record what decided it beside its sources"
        return
    yield from changes(record.closure, project, kind.headline(record).operator, kind.resolved_cases(record))


def _sources(builds: Mapping[str, BuildIdentity], project: Project) -> Iterator[tuple[str, str]]:
    recorded = {item for build in builds.values() for item in build.sources.items()}
    now: dict[str, str | None] = {}
    for name, digest in sorted(recorded):
        if name not in now:
            now[name] = _digest(project, name)
        if now[name] != digest:
            yield name, "is gone" if now[name] is None else "has changed"


def _digest(project: Project, name: str) -> str | None:
    """Of a file of the project; None where there is none, as far as a name from a record says."""
    try:
        file = (project.root / name).resolve()
        return sha256_of_file(file) if file.is_relative_to(project.root) and file.is_file() else None
    except (OSError, RuntimeError, ValueError):  # too long, links in a circle, NUL
        return None


def _captures(used: Mapping[str, str | None], project: Project) -> Iterator[tuple[str, str]]:
    if not used:
        return
    if project.captures is None:
        yield from ((name, "is gone: [tool.kernel-audit] names no folder of captures") for name in used)
        return
    captures = CaptureStore(project.captures)
    for name, digest in used.items():
        try:
            loaded = captures.load(name)
        except CaptureError as error:
            yield name, f"cannot be loaded: {error}"
            continue
        if loaded.manifest_sha256 != digest:
            yield name, "has changed: its manifest has another sha256"
