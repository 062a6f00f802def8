"""The planted faults that a tool must find to prove that it works, each with a clean twin that it must pass."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from audit import arena
from audit.arena import Slot
from audit.arguments import Argument
from audit.bundle import Bundle, BundledLaunch, BundledStep
from audit.records.sanitize import Tool
from audit.spec import Role

FOLDER = Path(__file__).parent
_SOURCES: dict[Tool, str] = {
    "memcheck": "memory.cu",
    "racecheck": "races.cu",
    "synccheck": "barriers.cu",
    "initcheck": "uninitialised.cu",
}


class CanaryKernel(msgspec.Struct, frozen=True):
    """A kernel `name` of `source`, in which `tool` must find a fault at the marked lines, and its clean `twin`."""

    tool: Tool
    name: str
    floats: int = 64  # of each buffer
    blocks: int = 1
    shared_bytes: int = 0
    buffers: tuple[tuple[str, Role], ...] = (("in", "in"), ("out", "out"))

    @property
    def source(self) -> str:
        """The source file in FOLDER."""
        return _SOURCES[self.tool]

    @property
    def kind(self) -> str:
        """The kind of its findings."""
        if self.tool == "memcheck":
            return "misaligned" if self.name.startswith("misaligned") else "out-of-bounds"
        return {"racecheck": "race", "synccheck": "divergent-barrier", "initcheck": "uninitialised"}[self.tool]

    @property
    def twin(self) -> str:
        """The kernel without the fault."""
        return f"{self.name}_clean"

    @property
    def lines(self) -> tuple[int, ...]:
        """The lines that a finding must name; marks in the source give them."""
        text = (FOLDER / self.source).read_text().splitlines()
        return tuple(number for number, line in enumerate(text, 1) if line.endswith(f"// found: {self.name}"))


CANARIES = (
    CanaryKernel("memcheck", "out_of_bounds_write"),
    CanaryKernel("memcheck", "out_of_bounds_read"),
    CanaryKernel("memcheck", "shared_out_of_bounds"),
    CanaryKernel("memcheck", "dynamic_out_of_bounds", shared_bytes=256),
    CanaryKernel("memcheck", "misaligned_vector"),
    CanaryKernel("racecheck", "race_between_warps", floats=128),
    CanaryKernel("racecheck", "race_inside_warp", floats=128),
    CanaryKernel("racecheck", "race_over_iterations", floats=128),
    CanaryKernel("racecheck", "race_between_blocks", floats=128, blocks=2),
    CanaryKernel("racecheck", "race_with_a_reader", floats=128, blocks=2),
    CanaryKernel("racecheck", "race_without_fence", floats=128, blocks=2, buffers=(("out", "out"), ("tickets", "in"))),
    CanaryKernel("synccheck", "divergent_barrier"),
    CanaryKernel("synccheck", "divergent_warp"),
    CanaryKernel("initcheck", "uninitialised_global"),
    CanaryKernel("initcheck", "uninitialised_shared"),
    CanaryKernel("initcheck", "uninitialised_local"),
)


def canaries_of(tool: Tool) -> tuple[CanaryKernel, ...]:
    """The canaries that a tool must find."""
    return tuple(canary for canary in CANARIES if canary.tool == tool)


def write_canary(folder: Path, canary: CanaryKernel, entry: str) -> Bundle:
    """Write a bundle with one launch of `entry`, the canary's kernel or its twin, into an empty folder."""
    size = 4 * canary.floats
    slots = tuple(Slot(name, "f32", role, f"{name}.bin", 0, size, size, "00" * 8, "") for name, role in canary.buffers)
    for slot in slots:
        (folder / slot.file).write_bytes(bytes(size))
    launch = BundledLaunch(entry, (canary.blocks, 1, 1), (64, 1, 1), canary.shared_bytes, _pointers(slots))
    poison = {slot.name: arena.poison(slot, entry, 0) for slot in slots if slot.role != "in"}
    return Bundle(1, f"canary {canary.name}", entry, slots, (launch,), (BundledStep("live", {}, poison),))


def _pointers(slots: Sequence[Slot]) -> tuple[Argument, ...]:
    return tuple(Argument("pointer", slot.name) for slot in slots)
