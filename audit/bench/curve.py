"""A frozen curve: what each arm cost at each context when it was admitted, and how a later bench compares with it.

A curve is `curves/<shape>-<device>.json` in a project's folder of reports, written once and never overwritten.
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
    """One arm of a curve: context -> median ms of one replay."""

    name: str
    is_peer: bool
    ms: dict[int, float]


class Curve(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The cost of every arm at every context, and all that it could depend on."""

    schema: int
    kind: Literal["curve"]
    shape: str
    operator: str
    axes: dict[str, int | float | str]
    layers: int
    device: str  # the GPU's name and architecture
    driver: str
    started: str  # UTC, ISO 8601: of the bench that it was taken from
    command: str
    commit: str | None
    binaries: dict[str, str]  # variant -> sha256 of its binary
    peers: dict[str, str]  # peer -> its package and version
    arms: tuple[FrozenArm, ...]


class CostRow(msgspec.Struct, frozen=True):
    """One arm at one context, then and now, in ms of one replay."""

    name: str
    context: int
    frozen_ms: float
    now_ms: float

    @property
    def ratio(self) -> float:
        """Now in multiples of the frozen cost."""
        return self.now_ms / self.frozen_ms


class AddedRow(msgspec.Struct, frozen=True):
    """What 1,024 more tokens cost one arm between two contexts, then and now, in microseconds of one replay."""

    name: str
    start: int
    end: int
    frozen_us: float
    now_us: float

    @property
    def ratio(self) -> float | None:
        """Now in multiples of the frozen cost; None where that was not positive."""
        return self.now_us / self.frozen_us if self.frozen_us > 0 else None


class CurveComparison(msgspec.Struct, frozen=True):
    """A bench beside a frozen curve. `inconclusive`: they cannot be compared, `sentence` says why, no rows."""

    verdict: Literal["compared", "inconclusive"]
    sentence: str
    costs: tuple[CostRow, ...] = ()
    added: tuple[AddedRow, ...] = ()


def curve_of(evidence: BenchRecord) -> Curve:
    """The curve of a bench; EvidenceError where it timed nothing or names no device."""
    device, driver = device_of(evidence)
    found = arms(evidence)
    if not found:
        raise EvidenceError(f"bench of {evidence.shape}: nothing was timed, so there is no curve to freeze")
    return Curve(
        SCHEMA,
        "curve",
        evidence.shape,
        evidence.operator,
        evidence.axes,
        evidence.method.layers,
        device,
        driver,
        evidence.started,
        evidence.command,
        evidence.commit,
        {name: build.binary_sha256 for name, build in evidence.builds.items()},
        evidence.peers,
        tuple(FrozenArm(arm.name, arm.is_peer, arm.ms) for arm in found),
    )


def device_of(evidence: BenchRecord) -> tuple[str, str]:
    """(name and architecture, driver and the rest) of the GPU, split at ", driver"; EvidenceError without one."""
    if not evidence.machine.device:
        raise EvidenceError(f"bench of {evidence.shape}: expected a GPU's name in the record's machine; bench again")
    device, _, driver = evidence.machine.device.partition(", driver ")
    return device, driver or "unknown"


def path(reports: Path, shape: str, device: str) -> Path:
    """Where the curve of a shape on a device lies among the reports; `device` as `device_of` gives it."""
    slug = re.sub(r"[^a-z0-9]+", "-", device.partition(",")[0].lower()).strip("-")
    return reports / CURVES / f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', shape)}-{slug}.json"


def freeze_curve(reports: Path, curve: Curve) -> Path:
    """Write a curve into the folder of reports, once; its file. EvidenceError where there is one already."""
    file = path(reports, curve.shape, curve.device)
    aside = file.with_name(f".{file.name}.{secrets.token_hex(3)}.partial")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        folder.write(aside, folder.encode(curve))
        try:
            os.link(aside, file)  # the one rename that refuses to replace
        finally:
            aside.unlink()
        folder.flush_folder(file.parent)
    except FileExistsError:
        raise EvidenceError(
            f"{file}: a curve is frozen there, and none is ever overwritten; compare with it, or move it elsewhere "
            f"(git keeps it) and freeze again"
        ) from None
    except OSError as error:
        raise EvidenceError(f"{file}: the curve cannot be written there ({error.strerror})") from None
    return file


def load_curve(file: Path) -> Curve:
    """A curve from its file; EvidenceError where it cannot be read or is not one."""
    try:
        raw = foreign.read(file, foreign.MOST_BYTES)
    except ForeignError as error:
        raise EvidenceError(f"{file}: expected a frozen curve, but it {error}") from None
    return decode(raw, file)


def decode(raw: bytes, where: Path) -> Curve:
    """A curve from its JSON, its schema checked first, every time in it positive."""
    curve = folder.decode(raw, where, Curve, SCHEMA)
    if not all(value > 0 for arm in curve.arms for value in arm.ms.values()):
        raise EvidenceError(f"{where}: expected positive times; restore the file from git")
    return curve


def find_curve(reports: Path, evidence: BenchRecord) -> Curve | None:
    """The frozen curve of a bench's shape on its device, where the project has one."""
    file = path(reports, evidence.shape, device_of(evidence)[0])
    return load_curve(file) if os.path.lexists(file) else None


def compare_with_curve(curve: Curve, evidence: BenchRecord) -> CurveComparison:
    """A bench beside a frozen curve: absolute cost, and cost per added 1,024 tokens over the contexts of both.

    Inconclusive where device, shape, working set or layers differ, or nothing was timed in both.
    """
    device, driver = device_of(evidence)
    for what, then, now in (
        ("device", curve.device, device),
        ("shape", f"{curve.shape} ({curve.operator})", f"{evidence.shape} ({evidence.operator})"),
        ("working set", _axes(curve.axes), _axes(evidence.axes)),
        ("number of layers", str(curve.layers), str(evidence.method.layers)),
    ):
        if then != now:
            return CurveComparison(
                "inconclusive",
                f"Not compared with the curve frozen from the bench of {curve.started}: its {what} is {then}, "
                f"but this bench's is {now}.",
            )
    now_by = {(arm.name, arm.is_peer): arm for arm in arms(evidence)}
    both = [(then, now_by[key]) for then in curve.arms if (key := (then.name, then.is_peer)) in now_by]
    costs = tuple(
        CostRow(then.name, context, then.ms[context], now.ms[context])
        for then, now in both
        for context in sorted(then.ms.keys() & now.ms.keys())
    )
    if not costs:
        return CurveComparison(
            "inconclusive",
            f"Not compared with the curve frozen from the bench of {curve.started}: no arm was timed at the same "
            f"context in both.",
        )
    rows = tuple(row for then, now in both for row in _added_rows(then, now))
    return CurveComparison("compared", _sentence(curve, evidence, driver, costs), costs, rows)


def _added_rows(then: FrozenArm, now: TimedArm) -> list[AddedRow]:
    contexts = then.ms.keys() & now.ms.keys()
    frozen = added({context: then.ms[context] for context in contexts})
    later = added({context: now.ms[context] for context in contexts})
    return [
        AddedRow(then.name, old.start, old.end, old.microseconds, new.microseconds)
        for old, new in zip(frozen, later, strict=True)
    ]


def _sentence(curve: Curve, evidence: BenchRecord, driver: str, costs: tuple[CostRow, ...]) -> str:
    ratios = [row.ratio for row in costs]
    words = [
        f"Compared with the curve frozen from the bench of {curve.started} on {curve.device} "
        f"(commit {curve.commit or 'not in git'}): {min(ratios):.4f} to {max(ratios):.4f} of the frozen cost.",
    ]
    programs = {name: build.binary_sha256 for name, build in evidence.builds.items()}
    if rebuilt := _changed(curve.binaries, programs):
        words.append(f"Another binary now: {', '.join(rebuilt)}.")
    if driver != curve.driver:
        words.append(f"The driver differs: {curve.driver} then, {driver} now.")
    if moved := _changed(curve.peers, evidence.peers):
        words.append(f"Peers of another version now: {', '.join(moved)}.")
    names = {arm.name for arm in curve.arms}
    timed = {arm.name for arm in arms(evidence)}
    if timed - names:
        words.append(f"Not in the curve: {', '.join(sorted(timed - names))}.")
    if names - timed:
        words.append(f"Only in the curve: {', '.join(sorted(names - timed))}.")
    return " ".join(words)


def _changed(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return [name for name in then if name in now and now[name] != then[name]]


def _axes(axes: dict[str, int | float | str]) -> str:
    return ", ".join(f"{name}={axes[name]}" for name in sorted(axes))
