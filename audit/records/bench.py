"""The record of one bench. Times are milliseconds of one replay: the working set once, all its layers."""

from __future__ import annotations

from typing import Literal

import msgspec

from audit.compile.identity import BuildIdentity
from audit.records.run import Machine

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


class BenchEvidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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
