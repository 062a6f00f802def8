"""The list of records in a folder by device and shape: what each says, and whether its sources are current."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import msgspec

from audit.checks.result import Verdict
from audit.project import Project
from audit.records import folder, verify
from audit.records.kinds import kind_of
from audit.records.verify import Verification
from audit.report.template import template

Sources = Literal["current", "stale", "broken"]
INDEX = "index.html"


class IndexEntry(msgspec.Struct, frozen=True):
    """One folder with a record. A `broken` one proves nothing: `detail` says why, and its verdict is inconclusive."""

    name: str  # the folder, relative to the project
    page: str  # the address of its page, relative to the list; empty where the folder keeps none
    kind: str
    started: str
    device: str
    shape: str
    verdict: Verdict
    detail: str
    sources: Sources

    @property
    def command(self) -> str:
        """What renders its page."""
        return shlex.join(["audit", "report", self.name])


class ShapeEntries(msgspec.Struct, frozen=True):
    """The records of one shape on one device, newest first."""

    shape: str
    entries: tuple[IndexEntry, ...]


class DeviceEntries(msgspec.Struct, frozen=True):
    """The records of one device by shape; the device is empty for records that cannot be read."""

    device: str
    shapes: tuple[ShapeEntries, ...]


def entries(reports: Path, project: Project) -> list[IndexEntry]:
    """Every folder with a record below `reports`, newest first."""
    homes = [home for home in verify.find_records(reports) if (home / folder.SUMS).is_file()]
    found = [entry_of(verify.verify(home, project), reports, project.root) for home in homes]
    return sorted(found, key=lambda entry: (entry.started, entry.name), reverse=True)


def by_device(found: Iterable[IndexEntry]) -> list[DeviceEntries]:
    """Entries by device and shape: the device with the newest record first, shapes in natural order."""
    devices: dict[str, dict[str, list[IndexEntry]]] = {}
    for entry in sorted(found, key=lambda entry: entry.started, reverse=True):
        devices.setdefault(entry.device, {}).setdefault(entry.shape, []).append(entry)
    return [
        DeviceEntries(
            device, tuple(ShapeEntries(shape, tuple(shapes[shape])) for shape in sorted(shapes, key=_natural))
        )
        for device, shapes in sorted(devices.items(), key=lambda pair: pair[0] != "")
    ]


def render_index(found: list[IndexEntry]) -> str:
    """The page that lists them."""
    return template("index.html.j2").render(
        entries=found,
        devices=by_device(found),
        kinds=list(dict.fromkeys(entry.kind for entry in found if entry.kind)),
        shapes=sorted({entry.shape for entry in found if entry.shape}, key=_natural),
        marks={"pass": "✓", "fail": "✗", "inconclusive": "?"},
    )


def entry_of(verified: Verification, reports: Path, root: Path) -> IndexEntry:
    """What a list in the folder `reports` says of one record below it, in the project at `root`."""
    home = verified.path
    name = home.relative_to(root if home.is_relative_to(root) else reports).as_posix()
    page = quote(f"{home.relative_to(reports).as_posix()}/{folder.REPORT}") if (home / folder.REPORT).is_file() else ""
    record = verified.record
    if record is None or not verified.sound:
        reason = next(flaw for flaw in verified.flaws if flaw.kind != "stale").kind
        return IndexEntry(name, page, "", "", "", "", "inconclusive", reason, "broken")
    sources: Sources = "stale" if verified.flaws else "current"
    kind, says = kind_of(record), kind_of(record).headline(record)
    device = record.machine.device or record.machine.processor
    return IndexEntry(name, page, kind.name, record.started, device, says.shape, says.verdict, says.counts, sources)


def _natural(name: str) -> list[tuple[int, str]]:
    """Sorts `q2` before `q10`."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.findall(r"\d+|\D+", name)]
