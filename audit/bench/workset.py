"""The working set of a bench on the device: layers, each with its own inputs, and the variants that run over them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from ctypes import byref, c_void_p
from functools import partial

from audit import arena, bundle
from audit.backends.driver import Driver
from audit.backends.launches import Launches, load_kernels
from audit.bench.arrays import Arrays, DeviceComparison, Region
from audit.bench.axis import case_at
from audit.bench.clock import Replay
from audit.bundle import BundledLaunch
from audit.declaration import as_stored, buffers_of, inputs_from, launches_of
from audit.errors import PlanError
from audit.records.bench import ComparedBytes
from audit.spec import Bench, Buffer, Case, Inputs, Launch, Operator, Shape, Variant

_THREAD_LOCAL = 1  # CU_STREAM_CAPTURE_MODE_THREAD_LOCAL


class WorkingSet:
    """The layers' inputs, on the host and on the device, for one value of the bench's axis. Where the bench says `at`,
    one set serves all lesser values."""

    def __init__(
        self, driver: Driver, operator: Operator, shape: Shape, bench: Bench, seeds: Sequence[int], made_for: int
    ) -> None:
        self.operator, self.bench, self.made_for = operator, bench, made_for
        self.cases = [case_at(operator, shape, bench, made_for, seed) for seed in seeds]
        with ThreadPoolExecutor(min(len(seeds), os.cpu_count() or 1)) as pool:
            self.inputs: list[Inputs] = list(pool.map(self._generated, self.cases))
        self.buffers = {buffer.name: buffer for buffer in buffers_of(operator, self.case)}
        self.regions: list[dict[str, Region]] = []
        for inputs in self.inputs:
            layer = {}
            for name, buffer in self.buffers.items():
                if buffer.role in arena.INITIALISED:
                    layer[name] = Region(driver, buffer.nbytes(self.case), buffer.offset)
                    layer[name].put(arena.input_bytes(buffer, self.case, inputs))
            self.regions.append(layer)

    def _generated(self, case: Case) -> Inputs:
        given = inputs_from(self.operator, case, "inputs", self.operator.inputs, case.rng())
        return as_stored(self.operator, case, "inputs", self.operator.inputs, given)[0]

    def _changed(self, at: Callable[..., Inputs], case: Case, inputs: Inputs, value: int) -> Inputs:
        given = inputs_from(self.operator, case, "bench.at", at, inputs, value)
        return as_stored(self.operator, case, "bench.at", at, given)[0]

    @property
    def case(self) -> Case:
        """The case of the first layer; the others differ only in their seed."""
        return self.cases[0]

    def see(self, value: int) -> list[Inputs]:
        """Give the axis a value on the device, and return each layer's inputs with that change."""
        at = self.bench.at
        if at is None:
            return self.inputs
        changed = [self._changed(at, case, given, value) for case, given in zip(self.cases, self.inputs, strict=True)]
        for change, layer in zip(changed, self.regions, strict=True):
            for name in change:
                layer[name].put(arena.input_bytes(self.buffers[name], self.case, change))
        return [{**inputs, **change} for inputs, change in zip(self.inputs, changed, strict=True)]

    def free(self) -> None:
        """Free the device memory; do not use the set afterwards."""
        _free(self.regions)


class Contender:
    """One variant over the working set, with its own outputs for each layer and one workspace for all layers."""

    def __init__(
        self,
        driver: Driver,
        stream: c_void_p,
        work: WorkingSet,
        variant: Variant,
        cubin: bytes,
        symbols: Mapping[str, str],
    ) -> None:
        self.variant, self._driver, self._stream, self._work = variant, driver, stream, work
        self.workspace = self._regions("workspace")
        self._scratch = self._regions("scratch")
        self.outs = [self._regions("out", "inout") for _ in work.inputs]
        self.plain_outs = [self._regions("out", "inout") for _ in work.inputs]
        kernels, buffers = load_kernels(driver, cubin, symbols), tuple(work.buffers.values())
        self._layers = []
        for case, inputs, layer, outs in zip(work.cases, work.inputs, work.regions, self.outs, strict=True):
            arrays = Arrays(layer, self.workspace, self._scratch, outs)  # of an inout buffer each has a copy of its own
            launches = Launches(driver, kernels, arrays, stream)
            launches.prepare([_resolved(launch, variant, buffers, inputs) for launch in launches_of(variant, case)])
            self._layers.append(launches)

    def _regions(self, *roles: str) -> dict[str, Region]:
        case = self._work.case
        return {
            name: Region(self._driver, buffer.nbytes(case), buffer.offset)
            for name, buffer in self._work.buffers.items()
            if buffer.role in roles
        }

    def run_layer(self, layer: int) -> None:
        """Run one layer by plain launches on fresh contents, and keep its outputs."""
        for region in (*self.workspace.values(), *self._scratch.values()):
            region.poison(self._stream)
        self._refresh(layer, poison=True)
        self._layers[layer].enqueue()
        for name, region in self.outs[layer].items():
            self.plain_outs[layer][name].copy(region, self._stream)

    def graph(self) -> Replay:
        """A replay of all layers, captured in a new graph."""
        graph, executable = c_void_p(), c_void_p()
        self._driver.call("cuStreamBeginCapture_v2", self._stream, _THREAD_LOCAL)
        for launches in self._layers:
            launches.enqueue()
        self._driver.call("cuStreamEndCapture", self._stream, byref(graph))
        self._driver.call("cuGraphInstantiateWithFlags", byref(executable), graph, 0)
        return Replay(partial(self._driver.call, "cuGraphLaunch", executable, self._stream), self.restore)

    def restore(self) -> None:
        """Give what the kernel changes in place its contents from before, in all layers."""
        for layer in range(len(self.outs)):
            self._refresh(layer, poison=False)

    def poison_outs(self) -> None:
        """Give all layers fresh outputs: poison, or the contents from before."""
        for layer in range(len(self.outs)):
            self._refresh(layer, poison=True)

    def free(self) -> None:
        """Free the device memory; do not use the contender afterwards."""
        _free([self.workspace, self._scratch, *self.outs, *self.plain_outs])

    def _refresh(self, layer: int, *, poison: bool) -> None:
        before = self._work.regions[layer]
        for name, region in self.outs[layer].items():
            if name in before:
                region.copy(before[name], self._stream)
            elif poison:
                region.poison(self._stream)


def _free(groups: Sequence[Mapping[str, Region]]) -> None:
    for group in groups:
        for region in group.values():
            region.free()


def _resolved(launch: Launch, variant: Variant, buffers: Sequence[Buffer], inputs: Inputs) -> BundledLaunch:
    resolved = bundle.resolve_launch(launch, variant, buffers, inputs)
    if any(argument.kind == "pointers" for argument in resolved.args):
        raise PlanError(f"variant {variant.name}: a bench cannot time a kernel that takes Pointers; leave it out")
    return resolved


def check_workset(
    contenders: Mapping[str, Contender],
    parents: Mapping[str, str],
    graphs: Mapping[str, Replay],
    value: int,
    comparison: DeviceComparison,
    stream: c_void_p,
) -> list[ComparedBytes]:
    """Compare each contender with its parent: the outputs and workspace of every layer by plain launches, then the
    outputs of every layer by the graph that will be timed. All start from the same poison. Without a parent the graph
    is compared with the contender's own plain launches."""
    differing, nbytes = dict.fromkeys(contenders, 0), dict.fromkeys(contenders, 0)

    def compare(name: str, mine: Mapping[str, Region], theirs: Mapping[str, Region]) -> None:
        comparison.begin()
        for region, other in zip(mine.values(), theirs.values(), strict=True):
            comparison.add(region, other, stream)
            nbytes[name] += region.size
        differing[name] += comparison.differing(stream)

    for layer in range(len(next(iter(contenders.values())).outs)):
        for contender in contenders.values():
            contender.run_layer(layer)
        for name, parent in parents.items():
            mine, theirs = contenders[name], contenders[parent]
            compare(name, mine.workspace, theirs.workspace)
            compare(name, mine.plain_outs[layer], theirs.plain_outs[layer])
    for name, contender in contenders.items():
        contender.poison_outs()
        graphs[name].enqueue()
        plain = contenders[parents.get(name, name)].plain_outs
        for mine_out, their_out in zip(contender.outs, plain, strict=True):
            compare(name, mine_out, their_out)
    return [ComparedBytes(name, parents.get(name, name), value, nbytes[name], differing[name]) for name in contenders]
