"""A case on disk, for one variant: launches as data, buffers, poison, guards, steps.

Every backend takes a bundle and nothing else, in a separate process. The folder holds `bundle.json` (this schema), a
file for each buffer (`audit.arena`) and one for each input that a step changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from audit import arena
from audit.arena import PoisonKind, Slot
from audit.arguments import Argument, argument_of, table_buffers
from audit.declaration import buffers_of, launches_of
from audit.errors import ProjectError
from audit.spec import Buffer, Case, Inputs, Launch, Operator, Variant

MANIFEST = "bundle.json"
_SAVED_INPUT = 16 * 2**20  # bytes; larger inputs are checked only after the last step


class BundledLaunch(msgspec.Struct, frozen=True):
    """One launch with its arguments resolved; grid and block have three extents, shared memory is in bytes."""

    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    args: tuple[Argument, ...]
    cooperative: bool = False
    cluster: tuple[int, int, int] | None = None  # blocks of a cluster; None leaves it to the kernel


class BundledStep(msgspec.Struct, frozen=True):
    """One step: the files that it loads (the inputs that change, and every `inout`), and the poison of the rest."""

    name: str
    loads: dict[str, str]
    poison: dict[str, str]


class Bundle(msgspec.Struct, frozen=True):
    """The manifest of a bundle."""

    schema: int
    case: str
    variant: str
    slots: tuple[Slot, ...]
    launches: tuple[BundledLaunch, ...]
    steps: tuple[BundledStep, ...]
    schedule_seed: int = 0
    repeats: int = 1  # of each step with all its loads and poison, in one process; what the last leaves counts

    @property
    def entries(self) -> tuple[str, ...]:
        """The distinct kernels that are launched, in order of first launch."""
        return tuple(dict.fromkeys(launch.entry for launch in self.launches))

    @property
    def saved(self) -> tuple[Slot, ...]:
        """The buffers copied after every step: all results, and the inputs that are cheap to copy."""
        return tuple(slot for slot in self.slots if slot.role not in ("in", "constant") or slot.size <= _SAVED_INPUT)

    @property
    def constants(self) -> tuple[str, ...]:
        """The buffers whose contents go into variables of the same names before every step."""
        return tuple(slot.name for slot in self.slots if slot.role == "constant")

    @property
    def tables(self) -> dict[str, tuple[Argument, ...]]:
        """The arrays of pointers: the name of their buffer, which no declaration can give, and what they hold."""
        listed = (arg for launch in self.launches for arg in launch.args if arg.kind == "pointers")
        return {arg.buffer: tuple(each for _, each in arg.pointers) for arg in listed}

    def copies(self, folder: Path) -> dict[str, dict[str, Path]]:
        """The files into which a backend copies `saved` after every step: step -> buffer -> file."""
        return {
            step.name: {slot.name: folder / f"after{index}.{slot.name}.bin" for slot in self.saved}
            for index, step in enumerate(self.steps)
        }

    def slot(self, name: str) -> Slot:
        """The slot of a buffer."""
        return next(slot for slot in self.slots if slot.name == name)


class Arm(msgspec.Struct, frozen=True):
    """One execution of a case. Arms differ in the kind of poison and guards, the schedule of threads, and addresses."""

    name: str
    poison: PoisonKind = "nan"
    schedule_seed: int = 0  # 0: in order
    shift: int = 0  # bytes by which every buffer is moved
    repeats: int = 1  # how often each step runs, before it counts: what a kernel keeps may go wrong at a later launch


FIRST, AGAIN = Arm("first"), Arm("again", "high", schedule_seed=20_011, shift=768, repeats=16)
_LOW_STEP = "restore"
"""Its bytes must be those of `live`, so that it is the place for the third kind of poison."""


def write_bundle(
    folder: Path,
    operator: Operator,
    variant: Variant,
    case: Case,
    inputs: Inputs,
    steps: Mapping[str, Inputs],
    arm: Arm = FIRST,
    policy: arena.Policy = "guarded",
) -> Bundle:
    """Write the bundle of one case and variant into an empty folder.

    Raises ProjectError if the project's declarations contradict each other.
    """
    buffers = buffers_of(operator, case)
    launches = tuple(resolve_launch(launch, variant, buffers, inputs) for launch in launches_of(variant, case))
    buffers = (*buffers, *table_buffers(launch.args for launch in launches))
    salt = f"{case.id}/{variant.name}/{arm.name}"
    slots = arena.lay_out(buffers, case, salt, policy, arm.shift, arm.poison)
    arena.create(folder, slots, inputs, case, buffers)
    initial = _save_initial(folder, slots, inputs, case, buffers)
    bundle = Bundle(
        schema=1,
        case=case.id,
        variant=variant.name,
        slots=slots,
        launches=launches,
        steps=tuple(
            _step(folder, index, name, changes, initial, salt, slots, buffers, case, arm.poison)
            for index, (name, changes) in enumerate(steps.items())
        ),
        schedule_seed=arm.schedule_seed,
        repeats=arm.repeats,
    )
    if not bundle.launches or not bundle.steps:
        raise ProjectError(f"variant {variant.name}, case {case.id}: expected at least one launch and one step")
    (folder / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(bundle), indent=1))
    return bundle


def _save_initial(
    folder: Path, slots: Sequence[Slot], inputs: Inputs, case: Case, buffers: Sequence[Buffer]
) -> dict[str, str]:
    """Buffer -> the file with what an `inout` buffer holds before every step that does not change it."""
    files = {}
    for slot, buffer in zip(slots, buffers, strict=True):
        if slot.role == "inout":
            files[slot.name] = f"initial.{slot.file}"
            (folder / files[slot.name]).write_bytes(arena.encode_input(buffer, case, inputs))
    return files


def _step(
    folder: Path,
    index: int,
    name: str,
    changes: Inputs,
    initial: Mapping[str, str],
    salt: str,
    slots: Sequence[Slot],
    buffers: Sequence[Buffer],
    case: Case,
    kind: PoisonKind,
) -> BundledStep:
    loads = dict(initial)
    for slot, buffer in zip(slots, buffers, strict=True):
        if buffer.name in changes:
            if slot.role not in arena.INITIALISED:
                raise ProjectError(
                    f"step {name}: expected changes of input buffers only, but it changes {buffer.name}, "
                    f"whose role is {slot.role!r}"
                )
            loads[buffer.name] = f"step{index}.{slot.file}"
            (folder / loads[buffer.name]).write_bytes(arena.encode_input(buffer, case, changes))
    if unknown := set(changes) - set(loads):
        raise ProjectError(f"step {name}: expected names of input buffers, but got {sorted(unknown)}")
    kind = "low" if name == _LOW_STEP and kind == "nan" else kind
    poison = {slot.name: arena.poison(slot, salt, index, kind) for slot in slots if slot.role not in arena.INITIALISED}
    return BundledStep(name, loads, poison)


def resolve_launch(launch: Launch, variant: Variant, buffers: Sequence[Buffer], inputs: Inputs) -> BundledLaunch:
    """A launch with its arguments resolved to buffers and bits. Raises ProjectError for an argument it cannot pass."""
    try:
        grid, block = _three(launch.grid), _three(launch.block)
        cluster = None if launch.cluster is None else _three(launch.cluster)
        args = tuple(argument_of(position, arg, buffers, inputs) for position, arg in enumerate(launch.args, 1))
    except ValueError as error:
        raise ProjectError(f"variant {variant.name}, launch of {launch.entry}: {error}") from None
    return BundledLaunch(launch.entry, grid, block, launch.shared_bytes, args, launch.cooperative, cluster)


def _three(extents: Sequence[int]) -> tuple[int, int, int]:
    if not 1 <= len(extents) <= 3 or any(extent < 1 for extent in extents):
        raise ValueError(f"expected one to three positive extents, but got {tuple(extents)}")
    x, y, z = (*(int(extent) for extent in extents), 1, 1)[:3]
    return x, y, z
