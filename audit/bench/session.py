"""The measurements at one context: bytes first, then errors, then times of pairs, then peers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import msgspec
import numpy as np

from audit.bench.arrays import DeviceComparison
from audit.bench.clock import Clock, Replay
from audit.bench.workset import Contender, WorkingSet, check_workset
from audit.declaration import ask
from audit.elements import codes_of, numbers_of
from audit.errors import AuditError, ToolMissing
from audit.records.bench import Bandwidth, ComparedBytes, Error, Method, Pair, SkippedArm, TimedContext
from audit.spec import Array, AxisValue, Bench, Inputs, Shape, kernels_on_gpu


class Entrant(msgspec.Struct, frozen=True):
    """A variant to time; `parent` is empty if it has none to compare with."""

    name: str
    parent: str
    cubin: str  # its file
    symbols: dict[str, str]


class BenchOrder(msgspec.Struct, frozen=True):
    """The work of one bench."""

    project: str
    shape: str
    axes: dict[str, AxisValue]  # of the working set
    comparison: Entrant  # the kernel that counts differing bytes
    entrants: tuple[Entrant, ...]
    pairs: tuple[tuple[str, str], ...]  # of variants, (A, B)
    against_peers: str  # the variant paired with peers; empty: no peers
    contexts: tuple[int, ...]
    seeds: tuple[int, ...]
    method: Method


class BenchResults(msgspec.Struct):
    """The results so far."""

    fnv: dict[str, str]  # variant -> FNV-1a-64 of the cubin that was loaded
    bandwidth: Bandwidth
    checked: list[ComparedBytes]
    errors: list[Error]
    points: list[TimedContext]
    skipped: list[SkippedArm]


@dataclass(frozen=True)
class TimingSession:
    """The state shared by all contexts; only `results` grows."""

    order: BenchOrder
    shape: Shape
    declared: Bench
    work: WorkingSet
    clock: Clock
    comparison: DeviceComparison
    contenders: Mapping[str, Contender]
    graphs: Mapping[str, tuple[Replay, Replay]]
    results: BenchResults
    say: Callable[[str], None]

    def at(self, context: int) -> None:
        """Check every contender at one context, time the pairs that passed, then the peers."""
        inputs = self.work.see(context)
        differ = self._check(context)
        reference, expected = self._reference(inputs[0])
        for name, contender in self.contenders.items():
            got = self._typed(contender.plain_outs[0][self.declared.output].get())
            self.results.errors.append(_error(name, context, reference, got, expected))
        pairs: list[Pair] = []
        for a, b in self.order.pairs:
            if a not in differ and b not in differ:
                self.say(f"{context:,} tokens: {b} beside {a}")
                arms = (a, *self.graphs[a])
                pairs.append(self.clock.pair(arms, (b, self.graphs[b][0]), self.order.method, b_is_peer=False))
        pairs += self._peers(context, inputs, reference, expected, differ)
        layers = len(inputs)
        case = self.work.operator.case(self.shape, {**self.declared.axes, "context": context})
        peer_moved = {
            peer.name: layers * ask(case, f"moves of {peer.name}", peer.moves, case, returns=int)
            for peer in self.declared.peers
        }
        self.results.points.append(
            TimedContext(
                context,
                layers * ask(case, "bench.moved", self.declared.moved, case, context, returns=int),
                tuple(pairs),
                peer_moved,
            )
        )

    def _check(self, context: int) -> set[str]:
        """The contenders whose bytes differ, which are not timed."""
        self.say(f"{context:,} tokens: bytes")
        parents = {entrant.name: entrant.parent for entrant in self.order.entrants if entrant.parent}
        first = {name: both[0] for name, both in self.graphs.items()}
        checked = check_workset(self.contenders, parents, first, context, self.comparison, self.clock.stream)
        self.results.checked += checked
        differ = [compared for compared in checked if compared.differing]
        for compared in differ:
            self._skip(
                compared.variant,
                f"at {context:,} tokens {compared.differing:,} of {compared.nbytes:,} bytes differ from those of "
                f"{compared.parent}",
            )
        return {compared.variant for compared in differ}

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
                # A peer is foreign code: whatever it raises is reported and skips only this peer.
                self._skip(peer.name, f"at {context:,} tokens: {type(error).__name__}: {str(error)[:500]}")
                continue
            self.results.errors.append(_error(peer.name, context, reference, got, expected))
            arms = (ours, *self.graphs[ours])
            pairs.append(self.clock.pair(arms, (peer.name, run.replay), self.order.method, b_is_peer=True))
            del run
            _release()
        return pairs

    def _skip(self, name: str, why: str) -> None:
        if SkippedArm(name, why) not in self.results.skipped:
            self.results.skipped.append(SkippedArm(name, why))

    def _reference(self, inputs: Inputs) -> tuple[str, Array]:
        """The name and the result of the first FP64 reference for the first layer's output."""
        operator = self.work.operator
        named = operator.measured.get(self.declared.output, self.declared.output)
        for reference in operator.references:
            with kernels_on_gpu(True):
                expected = reference.compute(self.work.case, inputs).get(named)
            if expected is not None and expected.dtype == np.float64:
                return reference.name, expected
        raise AuditError(
            f"operator {operator.name}: expected a reference that returns {self.declared.output!r} in FP64, "
            "but none does; add one"
        )

    def _typed(self, raw: Array) -> Array:
        buffer = self.work.buffers[self.declared.output]
        return numbers_of(codes_of(raw, buffer.dtype), buffer.dtype).reshape(buffer.shape(self.work.case))


def _error(name: str, context: int, reference: str, got: Array, expected: Array) -> Error:
    difference = got.astype(np.float64) - expected
    relative = float(np.linalg.norm(difference)) / (float(np.linalg.norm(expected)) or 1.0)
    return Error(name, context, reference, relative, float(np.abs(difference).max()))


def torch_with_gpu() -> Any:
    """torch if it is installed and finds a GPU, otherwise None."""
    try:
        torch = import_module("torch")
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def _release() -> None:
    if (torch := torch_with_gpu()) is not None:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
