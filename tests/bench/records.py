"""Benches as records, with times that tests choose."""

from __future__ import annotations

from collections.abc import Sequence

from audit.compile.identity import BuildIdentity
from audit.records.bench import (
    SCHEMA,
    Bandwidth,
    BenchRecord,
    ComparedBytes,
    Error,
    Method,
    Pair,
    SkippedArm,
    TimedPoint,
)
from audit.records.machine import MachineRecord

DEVICE = "NVIDIA H200, sm_90, driver 580.159.04, CUDA 13.0"


def pair(
    b: str = "fast",
    *,
    a_ms: Sequence[float] = (1.0, 1.0, 1.0, 1.0, 1.0),
    b_ms: Sequence[float] = (0.5, 0.5, 0.5, 0.5, 0.5),
    again_ms: Sequence[float] | None = None,
    a: str = "control",
    peer: bool = False,
) -> Pair:
    """A pair beside control; A's second arm takes as long as its first unless it is given."""
    return Pair(a, b, peer, tuple(a_ms), tuple(b_ms), tuple(a_ms if again_ms is None else again_ms))


def bench(*points: TimedPoint, device: str | None = DEVICE, layers: int = 16) -> BenchRecord:
    """A bench of q6 at these points; a copy moves 4e12 bytes a second."""
    build = BuildIdentity(
        backend="cuda",
        arch="sm_90",
        key="k" * 64,
        source="kernels/q.cu",
        sources={"kernels/q.cu": "a" * 64},
        entries=("q<6>",),
        compiler="NVRTC 13.0",
        flags=("-O3",),
        binary_sha256="b" * 64,
        binary_fnv="f" * 16,
    )
    return BenchRecord(
        schema=SCHEMA,
        kind="bench",
        tool="0.1.0",
        started="2026-11-29T18:00:00+00:00",
        command="audit bench --shape q6",
        commit="c" * 40,
        shape="q6",
        operator="grouped",
        axes={"context": 65536, "page": 16},
        seeds=tuple(range(1, layers + 1)),
        machine=MachineRecord("Linux", "Xeon", 16, "3.12.3", {"numpy": "2.5.2"}, device),
        method=Method(layers),
        bandwidth=Bandwidth(2**30, 4e12, 3.5e12, 2e12),
        builds={"fast": build},
        checked=(ComparedBytes("fast", "control", 1024, 123_456, 0),),
        errors=(Error("fast", 1024, "fp64", 3.1e-4, 2.5e-4), Error("peer", 1024, "fp64", 3.3e-4, 2.6e-4)),
        points=points,
        skipped=(SkippedArm("other_peer", "it is not installed: pip install other_peer"),),
        peers={"peer": "peer 1.2"},
        seconds=12.5,
    )


def point(context: int, *pairs: Pair, moved: int = 400_000_000, **peer_moved: int) -> TimedPoint:
    """A point whose floor is 0.1 ms unless other bytes are given."""
    return TimedPoint(context, moved, pairs, peer_moved)
