"""The record of one bench. Times are milliseconds of one replay: all layers of the working set once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from audit.checks.result import Verdict
from audit.compile.identity import BuildIdentity
from audit.records.closure import Closure
from audit.records.kind import Draft, Headline, Kind
from audit.records.machine import MachineRecord
from audit.records.resolution import RELATION, ResolvedCase, relation_digest
from audit.relations import Bitwise, relation_text
from audit.spec import AxisValue, Case

SCHEMA = 4
OLDER = (1, 2, 3)
"""Versions that are still read. Schema 2 added what decided the bytes beside the CUDA sources, schema 3 what the
declaration resolves to, schema 4 the axis. Older benches went along `context`, as the name in the JSON still says."""
_VALUE = "context"  # of the axis, in the JSON


class Method(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The method of timing: one trial of an arm is the mean of `replays` replays between two device events."""

    layers: int
    warm_ups: int = 5
    trials: int = 5
    replays: int = 8


class Bandwidth(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bytes per second, read and written, of one pass over two arrays of `nbytes` bytes."""

    nbytes: int
    copy: float  # device to device, by the driver
    compare: float  # this tool's comparison of two arrays
    torch_equal: float | None  # torch.equal of the same arrays, if torch is installed


class ComparedBytes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All layers of a variant compared with its parent's at one value of the axis, on the device, before timing."""

    variant: str
    parent: str
    value: int = msgspec.field(name=_VALUE)
    nbytes: int  # of outputs and workspaces, over all layers, by plain launches and by the graph
    differing: int  # of those bytes
    relation: str = relation_text(Bitwise())
    outside: int = 0  # elements and rows that another relation does not permit

    @property
    def refused(self) -> int:
        """What the relation to the parent does not permit: bytes, or elements and rows."""
        return self.differing if self.relation == relation_text(Bitwise()) else self.outside


class Error(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The error of the first layer's output against FP64."""

    name: str  # of a variant or a peer
    value: int = msgspec.field(name=_VALUE)
    reference: str
    relative_l2: float
    max_abs: float


class Pair(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Three arms timed in turn: A, B and A again, in reverse order in every other trial. One figure for each trial."""

    a: str  # the variant to compare with
    b: str  # a variant or a peer
    b_is_peer: bool
    a_ms: tuple[float, ...]
    b_ms: tuple[float, ...]
    again_ms: tuple[float, ...]  # A's second arm, another graph


class TimedPoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything timed at one value of the axis; `moved` is the least number of bytes that one replay must move."""

    value: int = msgspec.field(name=_VALUE)
    moved: int
    pairs: tuple[Pair, ...]
    peer_moved: dict[str, int] = {}  # a peer's own least bytes, if its storage differs


class SkippedArm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A variant or peer that was not timed, and the reason."""

    name: str
    why: str


class BenchRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The record of one bench."""

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
    machine: MachineRecord
    method: Method
    bandwidth: Bandwidth
    builds: dict[str, BuildIdentity]
    checked: tuple[ComparedBytes, ...]
    errors: tuple[Error, ...]
    points: tuple[TimedPoint, ...]
    skipped: tuple[SkippedArm, ...]
    peers: dict[str, str]  # peer -> its package and version
    seconds: float
    closure: Closure | None = None  # what decided it beside the sources; records of older versions have none
    axis: str = "context"
    working_sets: tuple[int, ...] = ()  # the values of the axis for which one was made; empty: that of `axes` alone

    def at(self, value: int) -> str:
        """A value of the axis in words: `n=4,096`."""
        return f"{self.axis}={value:,}"


CURVE = "curve.json"
"""The frozen curve that the bench was compared with, if any."""


def bench_cases(
    shape: str,
    operator: str,
    axes: Mapping[str, AxisValue],
    axis: str,
    working_sets: Iterable[int],
    names: Iterable[str],
) -> tuple[ResolvedCase, ...]:
    """The working sets, each with the variants that are timed."""
    sets = [{**axes, axis: value} for value in working_sets] or [dict(axes)]
    return tuple(ResolvedCase(Case(shape, operator, values), tuple(names), on_gpu=True) for values in sets)


def draft(runs: Path, shape: str) -> Draft:
    """The unfinished folder of a bench."""
    return Draft(runs, KIND, f"bench-{shape}", {})


def _lacks(record: BenchRecord) -> Iterator[str]:
    if not record.points:
        yield "nothing was timed"


def _disagrees(record: BenchRecord, files: Mapping[str, bytes]) -> Iterator[str]:  # noqa: ARG001
    resolved = record.closure.resolved.cases if record.closure and record.closure.resolved else {}
    for each in record.checked:
        expected = {relation_digest(each.relation)}
        found = {parts.get(f"{RELATION}{each.variant}") for parts in resolved.values()}
        if each.relation != relation_text(Bitwise()) and found != expected:
            yield f"the relation of {each.variant} is not the one that its declaration resolved to"
    compared = {(check.variant, check.value): check for check in record.checked}
    for point in record.points:
        for pair in point.pairs:
            where = f"{pair.b} beside {pair.a} at {record.at(point.value)}"
            trials = {len(pair.a_ms), len(pair.b_ms), len(pair.again_ms)}
            if trials != {record.method.trials}:
                yield f"{where}: expected {record.method.trials} trials of each arm, but got {sorted(trials)}"
            if not all(ms > 0 for ms in (*pair.a_ms, *pair.b_ms, *pair.again_ms)):
                yield f"{where}: expected positive times, but some are not"
            ours = [pair.a] if pair.b_is_peer else [pair.a, pair.b]
            yield from (f"{where}: the build of {name} is not recorded" for name in ours if name not in record.builds)
            if pair.b_is_peer and pair.b not in record.peers:
                yield f"{where}: the peer's package is not recorded"
            for name in ours:
                if (check := compared.get((name, point.value))) and check.refused:
                    what = "bytes" if check.refused == check.differing else "elements"
                    yield f"{where}: timed, although {check.refused} {what} of {name} differ"


def _headline(record: BenchRecord) -> Headline:
    """The verdict is that of the compared bytes; times have none."""
    differing = [check for check in record.checked if check.refused]
    verdict: Verdict = "fail" if differing else "pass" if record.points and record.checked else "inconclusive"
    pairs, compared = sum(len(point.pairs) for point in record.points), sum(check.nbytes for check in record.checked)
    total = sum(check.differing for check in differing)
    named = [
        f"{check.variant} at {record.at(check.value)}: {check.differing:,} of {check.nbytes:,} bytes"
        for check in differing
    ]
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
    schemas=(SCHEMA, *OLDER),
    beside=(),
    lacks=_lacks,
    disagrees=_disagrees,
    headline=_headline,
    page="audit.report.bench_page",
    resolved_cases=lambda record: bench_cases(
        record.shape, record.operator, record.axes, record.axis, record.working_sets, record.builds
    ),
    optional=(CURVE,),
)
