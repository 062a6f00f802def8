"""The record of one bench. Times are milliseconds of one replay: the working set once, all its layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from audit.checks.result import Verdict
from audit.compile.identity import BuildIdentity
from audit.records.kind import Draft, Headline, Kind
from audit.records.machine import Machine

SCHEMA = 1


class Method(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How it was timed: an arm's figure of one trial is the mean of `replays` replays between two device events."""

    layers: int
    warm_ups: int = 5
    trials: int = 5
    replays: int = 8


class Bandwidth(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bytes per second, read and written bytes both counted, of one pass over `nbytes` bytes of each array."""

    nbytes: int
    copy: float  # device to device, by the driver
    compare: float  # this tool's comparison of two arrays
    torch_equal: float | None  # torch.equal of the same two arrays, where torch is installed


class Checked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All layers of a variant compared with its parent's at one context, on the device, before anything is timed."""

    variant: str
    parent: str
    context: int
    nbytes: int  # of outputs and workspaces, over all layers, by plain launches and by the graph
    differing: int  # of those bytes


class Error(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first layer's output against FP64."""

    name: str  # of a variant or a peer
    context: int
    reference: str
    relative_l2: float
    max_abs: float


class Pair(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Three arms timed in turn: A, B and A once more (the order reversed in every other trial). A figure a trial."""

    a: str  # the variant that is compared with
    b: str  # a variant or a peer
    b_is_peer: bool
    a_ms: tuple[float, ...]
    b_ms: tuple[float, ...]
    again_ms: tuple[float, ...]  # A's second arm, a graph of its own


class Point(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything timed at one context; `moved` is what one replay has to move at least, in bytes."""

    context: int
    moved: int
    pairs: tuple[Pair, ...]
    peer_moved: dict[str, int] = {}  # a peer's own least bytes, where its storage is another


class Skipped(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A variant or peer that was not timed, and why."""

    name: str
    why: str


class BenchRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything about one bench."""

    schema: int
    kind: Literal["bench"]
    tool: str
    started: str  # UTC, ISO 8601
    command: str
    commit: str | None
    shape: str
    operator: str
    axes: dict[str, int | float | str]  # of the working set
    seeds: tuple[int, ...]  # of the layers
    machine: Machine
    method: Method
    bandwidth: Bandwidth
    builds: dict[str, BuildIdentity]
    checked: tuple[Checked, ...]
    errors: tuple[Error, ...]
    points: tuple[Point, ...]
    skipped: tuple[Skipped, ...]
    peers: dict[str, str]  # peer -> its package and version
    seconds: float


CURVE = "curve.json"
"""The frozen curve that the bench was compared with, where there was one."""


def draft(runs: Path, shape: str) -> Draft:
    """The folder of a bench in the making."""
    return Draft(runs, KIND, f"bench-{shape}", {})


def _lacks(record: BenchRecord) -> Iterator[str]:
    if not record.points:
        yield "nothing was timed"


def _disagrees(record: BenchRecord, files: Mapping[str, bytes]) -> Iterator[str]:  # noqa: ARG001
    compared = {(one.variant, one.context): one for one in record.checked}
    for point in record.points:
        for pair in point.pairs:
            where = f"{pair.b} beside {pair.a} at {point.context:,} tokens"
            trials = {len(pair.a_ms), len(pair.b_ms), len(pair.again_ms)}
            if trials != {record.method.trials}:
                yield f"{where}: expected {record.method.trials} trials of each arm, but got {sorted(trials)}"
            if not all(ms > 0 for ms in (*pair.a_ms, *pair.b_ms, *pair.again_ms)):
                yield f"{where}: a time that is not above zero"
            ours = [pair.a] if pair.b_is_peer else [pair.a, pair.b]
            yield from (f"{where}: no build of {name} is recorded" for name in ours if name not in record.builds)
            if pair.b_is_peer and pair.b not in record.peers:
                yield f"{where}: the peer's package is not recorded"
            for name in ours:
                if (one := compared.get((name, point.context))) and one.differing:
                    yield f"{where}: timed, though {one.differing} bytes of {name} differ"


def _headline(record: BenchRecord) -> Headline:
    """Times have no verdict; the bytes that were compared before have one."""
    differing = [one for one in record.checked if one.differing]
    verdict: Verdict = "fail" if differing else "pass" if record.points and record.checked else "inconclusive"
    pairs, compared = sum(len(point.pairs) for point in record.points), sum(one.nbytes for one in record.checked)
    total = sum(one.differing for one in differing)
    named = [f"{one.variant} at {one.context:,} tokens: {one.differing:,} of {one.nbytes:,} bytes" for one in differing]
    problem = "" if verdict == "pass" else "nothing was timed, or no bytes were compared"
    return Headline(
        operator=record.operator,
        shape=record.shape,
        backend="cuda",
        verdict=verdict,
        counts=f"{pairs} pair{'' if pairs == 1 else 's'} timed, {total:,} of {compared:,} bytes differ",
        problem=f"differs from its parent: {', '.join(named)}" if named else problem,
    )


KIND = Kind(
    name="bench",
    title="a bench",
    file="bench.json",
    record=BenchRecord,
    schemas=(SCHEMA,),
    beside=(),
    lacks=_lacks,
    disagrees=_disagrees,
    headline=_headline,
    page="audit.report.bench_page",
    optional=(CURVE,),
)
