"""The data that a check sees: one variant in one case, independent of the backend."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import msgspec
import numpy as np

from audit import arena, elements
from audit.arena import Snapshot
from audit.backends.outcome import LaunchCount, Outcome
from audit.bundle import Bundle
from audit.checks.conditioning import Moved
from audit.compile.identity import BuildIdentity
from audit.declaration import ask, buffers_of, masks_of, relation_to_parent
from audit.relations import Bitwise, Relation
from audit.spec import Array, Buffer, Case, Inputs, Operator, Variant

NearbyReferences: TypeAlias = Mapping[str, Mapping[str, Array]] | None
"""Reference -> arrays; None where a reference raises."""


@dataclass(frozen=True)
class Step:
    """One step: its inputs, the contents of every output and workspace after it, and the references."""

    name: str
    inputs: Inputs
    snapshots: Mapping[str, Snapshot]
    poison: Mapping[str, str]
    references: Mapping[str, Mapping[str, Array]]
    family: str = ""  # the input family that the step is
    moved: Callable[[], Moved | None] | None = None  # the references for moved inputs, where the case has families
    nearby: Callable[[], NearbyReferences] | None = None  # the references for inputs that a rounding to f32 has moved
    _derived: dict[str, Array] = field(init=False, default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class View:
    """Everything about one variant in one case."""

    operator: Operator
    variant: Variant
    case: Case
    bundle: Bundle
    build: BuildIdentity | None  # None where the source did not compile
    outcome: Outcome
    steps: Sequence[Step]
    again: Sequence[Step]  # the first step at other addresses, with other poison and another schedule of threads
    final_inputs: Mapping[str, Snapshot]
    parent: View | None
    graph: Sequence[Step] = ()  # on a GPU: all steps as replays of one captured graph
    on_host: Sequence[Step] = ()  # in a run on a GPU: all steps on the host backend
    launched: Mapping[str, Sequence[LaunchCount]] = field(default_factory=dict)  # of again, graph and host
    host_build: BuildIdentity | None = None  # the build of `on_host`
    host_reason: str = ""  # in a run on a GPU: why there is no `on_host`
    baseline_only: bool = False  # runs only so that another variant can be compared with it
    revision: str | None = None  # the commit of the sources; None: the working tree
    first: View | None = None  # the first variant of the case that has no parent, unless it is this one

    @cached_property
    def launched_code(self) -> str:
        """A digest of what runs, launch by launch: machine code, configuration, arguments. Empty without a build."""
        if self.build is None:
            return ""
        parts = [(self.code_of(one.entry), msgspec.structs.replace(one, entry="")) for one in self.bundle.launches]
        return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()

    def code_of(self, entry: str) -> str:
        """What identifies an entry's machine code: a digest of it where the build has one, else binary and name."""
        if self.build is None:
            return ""
        return self.build.machine_code.get(entry) or f"{self.build.binary_sha256} {entry}"

    @property
    def own_steps(self) -> Sequence[Step]:
        """The steps of the operator, without the input families."""
        return [step for step in self.steps if not step.family]

    @cached_property
    def buffers(self) -> Mapping[str, Buffer]:
        """All buffers by name."""
        return {buffer.name: buffer for buffer in buffers_of(self.operator, self.case)}

    @cached_property
    def results(self) -> Sequence[Buffer]:
        """The outputs and workspaces."""
        return [buffer for buffer in self.buffers.values() if buffer.role not in ("in", "constant", "scratch")]

    @cached_property
    def relations(self) -> Mapping[str, Relation]:
        """How each output and workspace relates to the parent's; a buffer that is left out is not judged.

        The same variant at another revision is compared bit for bit.
        """
        if self.parent is not None and self.parent.revision:
            return {buffer.name: Bitwise() for buffer in self.results}
        return relation_to_parent(self.variant, self.case, self.buffers.values())

    def array(self, step: Step, name: str) -> Array:
        """The content of an output or workspace after a step, in its own dtype and dimensions."""
        return arena.typed(step.snapshots[name], self.buffers[name], self.case)

    def got(self, step: Step) -> dict[str, Array]:
        """Every output and workspace after a step, and the arrays that the operator derives from them."""
        got = {buffer.name: self.array(step, buffer.name) for buffer in self.results}
        for name, derive in self.operator.derived.items():
            if name not in step._derived:
                step._derived[name] = ask(
                    self.case, f"derived {name}", derive, self.case, step.inputs, got, returns=Array
                )
            got[name] = step._derived[name]
        return got

    def words(self, step: Step, name: str) -> Array:
        """`array` as unsigned integers, one an element, for comparison bit for bit."""
        return arena.codes(step.snapshots[name], self.buffers[name], self.case)

    def written(self, step: Step) -> Mapping[str, Array]:
        """For each output and workspace, the mask of the elements that the contract requires to be written."""
        return masks_of(self.operator, self.case, step.inputs)

    def poisoned(self, step: Step, name: str) -> Array:
        """The mask of the elements that a step left as they were: poison, or the contents of an `inout` buffer."""
        if self.buffers[name].role == "inout":
            before = arena.input_array(self.buffers[name], self.case, step.inputs)
            return np.asarray(self.words(step, name) == elements.codes_in(before))
        word = arena.poison_array(self.bundle.slot(name), step.poison[name])
        words = self.words(step, name)
        return np.asarray(words == elements.codes_of(word, self.buffers[name].dtype).reshape(words.shape))

    def element(self, name: str, index: Sequence[int] | int) -> str:
        """An element by the names of its dimensions: `partial[split=3, row=1, head=0, dim=17]`."""
        buffer = self.buffers[name]
        if isinstance(index, int | np.integer):
            index = [int(i) for i in np.unravel_index(index, buffer.shape(self.case))]
        named = ", ".join(f"{dim}={i}" for dim, i in zip(buffer.dims_of(self.case), index, strict=True))
        return f"{name}[{named}]"
