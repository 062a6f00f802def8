"""The measurements at one value of the axis: bytes first, then errors, then times of pairs, then peers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import msgspec
import numpy as np

from audit.bench.admission import admitted
from audit.bench.arrays import DeviceComparison
from audit.bench.axis import bytes_of_all, case_at, output_of
from audit.bench.clock import Clock, Replay
from audit.bench.workset import Contender, WorkingSet, check_workset
from audit.declaration import ask
from audit.elements import codes_of, numbers_of
from audit.errors import ToolMissing
from audit.records.bench import Bandwidth, ComparedBytes, Error, Method, Pair, SkippedArm, TimedPoint
from audit.spec import Array, AxisValue, Bench, Case, Inputs, Shape, kernels_on_gpu


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
    axis: str
    axes: dict[str, AxisValue]  # the other axes
    working_sets: dict[int, int]  # value to time at -> value for which the working set is made
    own_hooks: bool  # whether `at` and `moved` of the declared bench are for this axis
    comparison: Entrant  # the kernel that counts differing bytes
    entrants: tuple[Entrant, ...]
    pairs: tuple[tuple[str, str], ...]  # of variants, (A, B)
    against_peers: str  # the variant paired with peers; empty: no peers
    seeds: tuple[int, ...]
    method: Method


class BenchResults(msgspec.Struct):
    """The results so far."""

    fnv: dict[str, str]  # variant -> FNV-1a-64 of the cubin that was loaded
    bandwidth: Bandwidth
    checked: list[ComparedBytes]
    errors: list[Error]
    points: list[TimedPoint]
    skipped: list[SkippedArm]


@dataclass(frozen=True)
class Timed:
    """A working set with the contenders over it, and two graphs of each."""

    work: WorkingSet
    contenders: Mapping[str, Contender]
    graphs: Mapping[str, tuple[Replay, Replay]]

    def free(self) -> None:
        """Free the device memory; do not use any of it afterwards."""
        for contender in self.contenders.values():
            contender.free()
        self.work.free()


@dataclass(frozen=True)
class TimingSession:
    """The measurements at one value of the axis; only `results`, which all values share, grows."""

    order: BenchOrder
    shape: Shape
    declared: Bench
    timed: Timed
    clock: Clock
    comparison: DeviceComparison
    results: BenchResults
    say: Callable[[str], None]

    @property
    def work(self) -> WorkingSet:
        """The inputs of all layers."""
        return self.timed.work

    def at(self, value: int) -> None:
        """Check every contender at a value of the axis, time the pairs that passed, then the peers."""
        inputs = self.work.see(value)
        differ = self._check(value, inputs)
        output = output_of(self.work.operator, self.declared, self.work.case)
        reference, expected = self._reference(output, inputs[0])
        if expected is not None:
            for name, contender in self.timed.contenders.items():
                got = self._typed(output, contender.plain_outs[0][output].get())
                self.results.errors.append(_error(name, value, reference, got, expected))
        pairs: list[Pair] = []
        for a, b in self.order.pairs:
            if a not in differ and b not in differ:
                self.say(f"{self._where(value)}: {b} beside {a}")
                other = self.timed.graphs[b][0]
                pairs.append(self.clock.pair(self._arms(a), (b, other), self.order.method, b_is_peer=False))
        pairs += self._peers(value, inputs, reference, expected, differ)
        layers = len(inputs)
        case = case_at(self.work.operator, self.shape, self.declared, value)
        peer_moved = {
            peer.name: layers * ask(case, f"moves of {peer.name}", peer.moves, case, returns=int)
            for peer in self.declared.peers
        }
        self.results.points.append(TimedPoint(value, layers * self._moved(case, value), tuple(pairs), peer_moved))

    def _where(self, value: int) -> str:
        return f"{self.declared.axis}={value:,}"

    def _arms(self, name: str) -> tuple[str, Replay, Replay]:
        return (name, *self.timed.graphs[name])

    def _moved(self, case: Case, value: int) -> int:
        """The bytes that one layer must move."""
        if self.declared.moved is None:
            return bytes_of_all(self.work.operator, case)
        return ask(case, "bench.moved", self.declared.moved, case, value, returns=int)

    def _check(self, value: int, inputs: Sequence[Inputs]) -> set[str]:
        """The contenders whose bytes differ, which are not timed."""
        self.say(f"{self._where(value)}: bytes")
        parents = {entrant.name: entrant.parent for entrant in self.order.entrants if entrant.parent}
        first = {name: both[0] for name, both in self.timed.graphs.items()}
        checked = check_workset(self.timed.contenders, parents, first, value, self.comparison, self.clock.stream)
        checked = [admitted(self.work, inputs, self.timed.contenders, compared) for compared in checked]
        self.results.checked += checked
        differ = [compared for compared in checked if compared.refused]
        for compared in differ:
            self._skip(
                compared.variant,
                f"at {self._where(value)} {compared.differing:,} of {compared.nbytes:,} bytes differ from those of "
                f"{compared.parent}{_permitted(compared)}",
            )
        return {compared.variant for compared in differ}

    def _peers(
        self, value: int, inputs: Sequence[Inputs], reference: str, expected: Array | None, differ: set[str]
    ) -> list[Pair]:
        ours = self.order.against_peers
        if not ours or ours in differ:
            return []
        pairs = []
        for peer in self.declared.peers:
            self.say(f"{self._where(value)}: {peer.name} beside {ours}")
            try:
                run = peer.prepare(self.work.case, inputs)
                run.replay()
                got = run.out(0)
            except ToolMissing as missing:
                self._skip(peer.name, str(missing))
                continue
            except Exception as error:
                # A peer is foreign code: whatever it raises is reported and skips only this peer.
                self._skip(peer.name, f"at {self._where(value)}: {type(error).__name__}: {str(error)[:500]}")
                continue
            if expected is not None:
                self.results.errors.append(_error(peer.name, value, reference, got, expected))
            theirs = Replay(run.replay)
            pairs.append(self.clock.pair(self._arms(ours), (peer.name, theirs), self.order.method, b_is_peer=True))
            del run
            _release()
        return pairs

    def _skip(self, name: str, why: str) -> None:
        if SkippedArm(name, why) not in self.results.skipped:
            self.results.skipped.append(SkippedArm(name, why))

    def _reference(self, output: str, inputs: Inputs) -> tuple[str, Array | None]:
        """The name and the result of the first FP64 reference for the first layer's output; None where none has it."""
        operator = self.work.operator
        named = operator.measured.get(output, output)
        for reference in operator.references:
            with kernels_on_gpu(True):
                expected = reference.compute(self.work.case, inputs).get(named)
            if expected is not None and expected.dtype == np.float64:
                return reference.name, expected
        return "", None

    def _typed(self, output: str, raw: Array) -> Array:
        buffer = self.work.buffers[output]
        return numbers_of(codes_of(raw, buffer.dtype), buffer.dtype).reshape(buffer.shape(self.work.case))


def _permitted(compared: ComparedBytes) -> str:
    if not compared.outside:
        return ""
    return f", and {compared.outside:,} elements or rows are outside of {compared.relation}"


def _error(name: str, value: int, reference: str, got: Array, expected: Array) -> Error:
    difference = got.astype(np.float64) - expected
    relative = float(np.linalg.norm(difference)) / (float(np.linalg.norm(expected)) or 1.0)
    return Error(name, value, reference, relative, float(np.abs(difference).max()))


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
