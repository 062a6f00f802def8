"""A frozen curve holds each arm's cost at each value of the axis; later benches are compared with it.

A curve is the file `curves/<shape>-<device>.json` in a project's folder of reports. It is never overwritten.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from audit import foreign
from audit.bench.pairs import TimedArm, added, arms
from audit.errors import EvidenceError
from audit.foreign import ForeignError
from audit.records import folder
from audit.records.bench import BenchRecord

SCHEMA = 1
CURVES = "curves"


class FrozenArm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One arm of a curve: value of the axis -> median ms of one replay."""

    name: str
    is_peer: bool
    ms: dict[int, float]


class Curve(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The cost of every arm at every value of the axis, and everything that it may depend on."""

    schema: int
    kind: Literal["curve"]
    shape: str
    operator: str
    axes: dict[str, int | float | str]
    layers: int
    device: str  # the GPU's name and architecture
    driver: str
    started: str  # UTC, ISO 8601: the start of its bench
    command: str
    commit: str | None
    binaries: dict[str, str]  # variant -> sha256 of its binary
    peers: dict[str, str]  # peer -> its package and version
    arms: tuple[FrozenArm, ...]
    axis: str = "context"


class CostRow(msgspec.Struct, frozen=True):
    """One arm at one value of the axis, then and now, in ms of one replay."""

    name: str
    value: int
    frozen_ms: float
    now_ms: float

    @property
    def ratio(self) -> float:
        """The new cost as a multiple of the frozen cost."""
        return self.now_ms / self.frozen_ms


class AddedRow(msgspec.Struct, frozen=True):
    """The cost of 1,024 more of the axis for one arm between two values, then and now, in microseconds a replay."""

    name: str
    start: int
    end: int
    frozen_us: float
    now_us: float

    @property
    def ratio(self) -> float | None:
        """The new cost as a multiple of the frozen cost; None if that was not positive."""
        return self.now_us / self.frozen_us if self.frozen_us > 0 else None


class CurveComparison(msgspec.Struct, frozen=True):
    """A bench compared with a frozen curve. `inconclusive` has no rows, and `sentence` gives the reason."""

    verdict: Literal["compared", "inconclusive"]
    sentence: str
    costs: tuple[CostRow, ...] = ()
    added: tuple[AddedRow, ...] = ()


def curve_of(record: BenchRecord) -> Curve:
    """The curve of a bench. Raises EvidenceError if the bench timed nothing or names no device."""
    device, driver = device_of(record)
    timed = arms(record)
    if not timed:
        raise EvidenceError(
            f"bench of {record.shape}: expected timed pairs for a curve, but nothing was timed; bench again"
        )
    return Curve(
        SCHEMA,
        "curve",
        record.shape,
        record.operator,
        record.axes,
        record.method.layers,
        device,
        driver,
        record.started,
        record.command,
        record.commit,
        {name: build.binary_sha256 for name, build in record.builds.items()},
        record.peers,
        tuple(FrozenArm(arm.name, arm.is_peer, arm.ms) for arm in timed),
        record.axis,
    )


def device_of(record: BenchRecord) -> tuple[str, str]:
    """The GPU's (name and architecture, driver version and the rest). Raises EvidenceError if there is none."""
    if not record.machine.device:
        raise EvidenceError(f"bench of {record.shape}: expected a GPU's name in the record's machine; bench again")
    device, _, driver = record.machine.device.partition(", driver ")
    return device, driver or "unknown"


def path(reports: Path, shape: str, device: str) -> Path:
    """The file of a shape's curve on a device, as returned by `device_of`."""
    slug = re.sub(r"[^a-z0-9]+", "-", device.partition(",")[0].lower()).strip("-")
    return reports / CURVES / f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', shape)}-{slug}.json"


def freeze_curve(reports: Path, curve: Curve) -> Path:
    """Write a curve into the folder of reports and return its file. Raises EvidenceError if it exists."""
    file = path(reports, curve.shape, curve.device)
    aside = file.with_name(f".{file.name}.{secrets.token_hex(3)}.partial")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        folder.write_file(aside, folder.encode(curve))
        try:
            os.link(aside, file)  # unlike a rename, a link never replaces a file
        finally:
            aside.unlink()
        folder.flush_folder(file.parent)
    except FileExistsError:
        raise EvidenceError(
            f"{file}: a frozen curve exists and is never overwritten; compare with it, or move it away "
            "(git keeps it) and freeze again"
        ) from None
    except OSError as error:
        raise EvidenceError(f"{file}: cannot write the curve ({error.strerror}); make the folder writable") from None
    return file


def load_curve(file: Path) -> Curve:
    """A curve from its file. Raises EvidenceError if the file cannot be read or holds no curve."""
    try:
        raw = foreign.read(file, foreign.MOST_BYTES)
    except ForeignError as error:
        raise EvidenceError(f"{file}: expected a frozen curve, but it {error}") from None
    return decode_curve(raw, file)


def decode_curve(raw: bytes, where: Path) -> Curve:
    """A curve from its JSON. Checks the schema first, and that all times are positive."""
    curve = folder.decode(raw, where, Curve, SCHEMA)
    if not all(value > 0 for arm in curve.arms for value in arm.ms.values()):
        raise EvidenceError(f"{where}: expected positive times, but some are not; restore the file from git")
    return curve


def find_curve(reports: Path, record: BenchRecord) -> Curve | None:
    """The frozen curve of a bench's shape on its device, if the project has one."""
    file = path(reports, record.shape, device_of(record)[0])
    return load_curve(file) if os.path.lexists(file) else None


def compare_with_curve(curve: Curve, record: BenchRecord) -> CurveComparison:
    """Compare a bench with a frozen curve: absolute cost, and cost of 1,024 more of the axis, at the values of both.

    Inconclusive if device, shape, axis, working set or layers differ, or if no arm was timed in both.
    """
    device, driver = device_of(record)
    for what, then, now in (
        ("device", curve.device, device),
        ("shape", f"{curve.shape} ({curve.operator})", f"{record.shape} ({record.operator})"),
        ("axis", curve.axis, record.axis),
        ("working set", _axes(curve.axes), _axes(record.axes)),
        ("number of layers", str(curve.layers), str(record.method.layers)),
    ):
        if then != now:
            return CurveComparison(
                "inconclusive",
                f"Not compared with the curve frozen from the bench of {curve.started}: its {what} is {then}, "
                f"but this bench's is {now}.",
            )
    now_by = {(arm.name, arm.is_peer): arm for arm in arms(record)}
    both = [(then, now_by[key]) for then in curve.arms if (key := (then.name, then.is_peer)) in now_by]
    costs = tuple(
        CostRow(then.name, value, then.ms[value], now.ms[value])
        for then, now in both
        for value in sorted(then.ms.keys() & now.ms.keys())
    )
    if not costs:
        return CurveComparison(
            "inconclusive",
            f"Not compared with the curve frozen from the bench of {curve.started}: both timed no arm at the same "
            f"{record.axis}.",
        )
    rows = tuple(row for then, now in both for row in _added_rows(then, now))
    return CurveComparison("compared", _sentence(curve, record, driver, costs), costs, rows)


def _added_rows(then: FrozenArm, now: TimedArm) -> list[AddedRow]:
    values = then.ms.keys() & now.ms.keys()
    frozen = added({value: then.ms[value] for value in values})
    later = added({value: now.ms[value] for value in values})
    return [
        AddedRow(then.name, old.start, old.end, old.microseconds, new.microseconds)
        for old, new in zip(frozen, later, strict=True)
    ]


def _sentence(curve: Curve, record: BenchRecord, driver: str, costs: tuple[CostRow, ...]) -> str:
    ratios = [row.ratio for row in costs]
    sentences = [
        f"Compared with the curve frozen from the bench of {curve.started} on {curve.device} "
        f"(commit {curve.commit or 'not in git'}): {min(ratios):.4f} to {max(ratios):.4f} of the frozen cost.",
    ]
    programs = {name: build.binary_sha256 for name, build in record.builds.items()}
    if rebuilt := _changed(curve.binaries, programs):
        sentences.append(f"Another binary now: {', '.join(rebuilt)}.")
    if driver != curve.driver:
        sentences.append(f"The driver differs: {curve.driver} then, {driver} now.")
    if updated := _changed(curve.peers, record.peers):
        sentences.append(f"Peers of another version now: {', '.join(updated)}.")
    names = {arm.name for arm in curve.arms}
    timed = {arm.name for arm in arms(record)}
    if timed - names:
        sentences.append(f"Not in the curve: {', '.join(sorted(timed - names))}.")
    if names - timed:
        sentences.append(f"Only in the curve: {', '.join(sorted(names - timed))}.")
    return " ".join(sentences)


def _changed(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return [name for name in then if name in now and now[name] != then[name]]


def _axes(axes: dict[str, int | float | str]) -> str:
    return ", ".join(f"{name}={axes[name]}" for name in sorted(axes))
