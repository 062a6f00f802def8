"""Two records of one kind side by side: what changed, and whether for better or worse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Literal

import msgspec

from audit.compile.identity import BuildIdentity
from audit.errors import EvidenceError
from audit.records.kinds import Record, kind_of
from audit.report.point import NamedPoint, Point
from audit.report.template import template

Direction = Literal["worse", "better", "other"]
_JUDGED = ("verdict", "tool", "pair")


class Change(msgspec.Struct, frozen=True):
    """One thing that is not the same in both."""

    group: str
    name: str
    before: str
    after: str
    direction: Direction


class ComparedRecord(msgspec.Struct, frozen=True):
    """What one of the two is."""

    name: str
    verdict: str
    started: str
    commit: str
    device: str


class RecordComparison(msgspec.Struct, frozen=True):
    """All changes, for worse first; `same` counts what is equal in both, `common` what both have."""

    kind: str
    a: ComparedRecord
    b: ComparedRecord
    changes: tuple[Change, ...]
    same: int
    common: int

    def of(self, direction: Direction) -> list[Change]:
        """The changes in one direction."""
        return [change for change in self.changes if change.direction == direction]


def compare_records(a: Record, b: Record, names: tuple[str, str]) -> RecordComparison:
    """B beside A. EvidenceError where they are of two kinds or shapes: they would have nothing in common."""
    kinds = [f"{kind_of(each).title} of {kind_of(each).headline(each).shape}" for each in (a, b)]
    if kinds[0] != kinds[1]:
        raise EvidenceError(
            f"expected two records of one kind and shape, but got {kinds[0]} ({names[0]}) and {kinds[1]} ({names[1]})"
        )
    before, after = dict(_points(a)), dict(_points(b))
    common = before.keys() & after.keys()
    changes = []
    for key in (*before, *(key for key in after if key not in before)):
        one, other = before.get(key), after.get(key)
        if one != other and (direction := _direction(key[0], one, other)):
            was, is_now = (point.text if point else "absent" for point in (one, other))
            changes.append(Change(*key, was, is_now, direction))
    order = ("worse", "better", "other")
    return RecordComparison(
        kinds[0],
        _side(a, names[0]),
        _side(b, names[1]),
        tuple(sorted(changes, key=lambda change: order.index(change.direction))),
        len(before.keys() | after.keys()) - len(changes),
        len([key for key in common if key[0] in _JUDGED]),
    )


def _direction(group: str, one: Point | None, other: Point | None) -> Direction | None:
    """None: not worth a line: a pair's times within their ranges, or a condition that holds in more cases.
    An absent verdict counts as inconclusive."""
    if group in ("verdict", "tool"):
        one, other = one or Point("absent", 1.0, 1.0), other or Point("absent", 1.0, 1.0)
    if one is None or other is None or one.low is None or other.low is None or one.high is None or other.high is None:
        return "other"
    if other.low > one.high:
        return "worse"
    if other.high < one.low:
        return "better"
    return None if group in ("pair", "condition") else "other"


def _points(record: Record) -> Iterator[NamedPoint]:
    yield from ((("identity", name), Point(text)) for name, text in _identity(record))
    yield from import_module(kind_of(record).page).points(record)


def _identity(record: Record) -> Iterator[tuple[str, str]]:
    yield "commit", record.commit or "not in git"
    yield "device", record.machine.device or "none"
    yield "processor", record.machine.processor
    yield "tool", record.tool
    for name, build in _builds(record.builds).items():
        yield f"compiler of {name}", build.compiler
        yield f"binary of {name}", build.binary_sha256
        yield from ((f"source of {name}: {path}", digest) for path, digest in build.sources.items())


def _builds(builds: Mapping[str, BuildIdentity]) -> dict[str, BuildIdentity]:
    """By what they are builds of: a key's last part is the digest of all that went into it."""
    return {f"{key.rpartition('-')[0] or key} ({build.backend})": build for key, build in sorted(builds.items())}


def _side(record: Record, name: str) -> ComparedRecord:
    verdict = kind_of(record).headline(record).verdict
    return ComparedRecord(
        name, verdict, record.started, record.commit or "not in git", record.machine.device or "no GPU"
    )


def render_comparison(comparison: RecordComparison) -> str:
    """The page of a comparison. Everything in it is escaped."""
    return template("diff.html.j2").render(comparison=comparison)
