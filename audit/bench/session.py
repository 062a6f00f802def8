"""What is measured at one context: bytes first, then errors, then pairs in time, then peers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import msgspec
import numpy as np

from audit.bench.arrays import DeviceComparison
from audit.bench.clock import Clock, Replay
from audit.bench.workset import Contender, WorkingSet, check
from audit.declaration import ask
from audit.errors import AuditError, ToolMissing
from audit.records.bench import Bandwidth, ComparedBytes, Error, Method, Pair, SkippedArm, TimedContext
from audit.spec import Array, AxisValue, Bench, Inputs, Shape


class Entrant(msgspec.Struct, frozen=True):
    """A variant to be timed; `parent` is empty where it is compared with none."""

    name: str
    parent: str
    cubin: str  # file
    symbols: dict[str, str]


class BenchOrder(msgspec.Struct, frozen=True):
    """What is to be benched."""

    project: str
    shape: str
    axes: dict[str, AxisValue]  # of the working set
    comparison: Entrant  # the kernel that counts differing bytes
    entrants: tuple[Entrant, ...]
    pairs: tuple[tuple[str, str], ...]  # of variants, (A, B)
    against_peers: str  # the variant that peers are timed beside; empty: no peers
    contexts: tuple[int, ...]
    seeds: tuple[int, ...]
    method: Method


class BenchResults(msgspec.Struct):
    """What was found so far."""

    fnv: dict[str, str]  # variant -> FNV-1a-64 of the cubin that was loaded
    bandwidth: Bandwidth
    checked: list[ComparedBytes]
    errors: list[Error]
    points: list[TimedContext]
    skipped: list[SkippedArm]


@dataclass(frozen=True)
class TimingSession:
    """What stays the same from one context to the next; `found` grows."""

    order: BenchOrder
    shape: Shape
    declared: Bench
    work: WorkingSet
    clock: Clock
    comparison: DeviceComparison
    contenders: Mapping[str, Contender]
    graphs: Mapping[str, tuple[Replay, Replay]]
    found: BenchResults
    say: Callable[[str], None]

    def at(self, context: int) -> None:
        """Check every contender at one context, time the pairs of those that passed, then the peers."""
        inputs = self.work.see(context)
        differ = self._check(context)
        reference, expected = self._reference(inputs[0])
        for name, contender in self.contenders.items():
            got = self._typed(contender.plain_outs[0][self.declared.output].get())
            self.found.errors.append(_error(name, context, reference, got, expected))
        pairs: list[Pair] = []
        for a, b in self.order.pairs:
            if a not in differ and b not in differ:
                self.say(f"{context:,} tokens: {b} beside {a}")
                arms = (a, *self.graphs[a])
                pairs.append(self.clock.pair(arms, (b, self.graphs[b][0]), self.order.method, b_is_peer=False))
        pairs += self._peers(context, inputs, reference, expected, differ)
        layers = len(inputs)
        seen = self.work.operator.case(self.shape, {**self.declared.axes, "context": context})
        peer_moved = {
            peer.name: layers * ask(seen, f"moves of {peer.name}", peer.moves, seen, returns=int)
            for peer in self.declared.peers
        }
        self.found.points.append(
            TimedContext(
                context,
                layers * ask(seen, "bench.moved", self.declared.moved, seen, context, returns=int),
                tuple(pairs),
                peer_moved,
            )
        )

    def _check(self, context: int) -> set[str]:
        """The contenders that are not to be timed: their bytes differ."""
        self.say(f"{context:,} tokens: bytes")
        parents = {entrant.name: entrant.parent for entrant in self.order.entrants if entrant.parent}
        first = {name: both[0] for name, both in self.graphs.items()}
        checked = check(self.contenders, parents, first, context, self.comparison, self.clock.stream)
        self.found.checked += checked
        differ = [one for one in checked if one.differing]
        for one in differ:
            self._skip(
                one.variant,
                f"at {context:,} tokens {one.differing:,} of {one.nbytes:,} bytes differ from those of {one.parent}",
            )
        return {one.variant for one in differ}

    def _peers(
        self, context: int, inputs: Sequence[Inputs], reference: str, expected: Array, differ: set[str]
    ) -> list[Pair]:
        ours = self.order.against_peers
        if not ours or ours in differ:
            return []
        pairs = []
        for peer in self.declared.peers:
            self.say(f"{context:,} tokens: {peer.name} beside {ours}")
            try:
                run = peer.prepare(self.work.case, inputs)
                run.replay()
                got = run.out(0)
            except ToolMissing as missing:
                self._skip(peer.name, str(missing))
                continue
            except Exception as error:
                # somebody else's code on somebody else's terms: whatever it raises is told, and ends it alone
                self._skip(peer.name, f"at {context:,} tokens: {type(error).__name__}: {str(error)[:500]}")
                continue
            self.found.errors.append(_error(peer.name, context, reference, got, expected))
            arms = (ours, *self.graphs[ours])
            pairs.append(self.clock.pair(arms, (peer.name, run.replay), self.order.method, b_is_peer=True))
            del run
            _release()
        return pairs

    def _skip(self, name: str, why: str) -> None:
        if SkippedArm(name, why) not in self.found.skipped:
            self.found.skipped.append(SkippedArm(name, why))

    def _reference(self, given: Inputs) -> tuple[str, Array]:
        """The first FP64 reference of the first layer's output, and its name."""
        operator = self.work.operator
        case = msgspec.structs.replace(self.work.case, gpu=True)
        named = operator.measured.get(self.declared.output, self.declared.output)
        for reference in operator.references:
            expected = reference.compute(case, given).get(named)
            if expected is not None and expected.dtype == np.float64:
                return reference.name, expected
        raise AuditError(f"operator {operator.name}: no reference gives {self.declared.output!r} in FP64")

    def _typed(self, raw: Array) -> Array:
        buffer = self.work.buffers[self.declared.output]
        return raw.view(buffer.numpy_dtype()).reshape(buffer.shape(self.work.case))


def _error(name: str, context: int, reference: str, got: Array, expected: Array) -> Error:
    difference = got.astype(np.float64) - expected
    relative = float(np.linalg.norm(difference)) / (float(np.linalg.norm(expected)) or 1.0)
    return Error(name, context, reference, relative, float(np.abs(difference).max()))


def torch_with_gpu() -> Any:
    """torch, where it is installed and sees a GPU; else None."""
    try:
        torch = import_module("torch")
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def _release() -> None:
    if (torch := torch_with_gpu()) is not None:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
