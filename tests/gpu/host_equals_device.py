"""Whether host and device write the same bytes: `python tests/gpu/host_equals_device.py --out FOLDER`.

Every variant of the given shapes runs on the host backend, then on the GPU, plainly and as one captured graph, on
the same inputs, steps, poison and guards. Outputs and workspaces are compared in every byte: what is written, what
must keep its poison, the guards around them; and the inputs afterwards. FOLDER gets `host_equals_device.json`.

Exit code 0: every byte equal; 1: a difference, a crash or a time-out; 2: cannot run here; 3: not all was run.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import msgspec  # noqa: E402
import numpy as np  # noqa: E402

import audit.build.cuda  # noqa: E402
from audit import arena, bundle, plan, project  # noqa: E402
from audit.backends import Completed, Outcome, cubin, cuda, host  # noqa: E402
from audit.backends.replay import Mode  # noqa: E402
from audit.build.cuda import CubinBuild, compile_cubin  # noqa: E402
from audit.build.host import HostBuild, build_host  # noqa: E402
from audit.bundle import AGAIN, FIRST, Arm, Bundle  # noqa: E402
from audit.errors import AuditError, CompileError, ToolMissing  # noqa: E402
from audit.plan import Selection  # noqa: E402
from audit.project import Project  # noqa: E402
from audit.spec import Buffer, Case, Inputs, Operator, Source, Variant  # noqa: E402

REPORT = "host_equals_device.json"
MODES: tuple[Mode, ...] = ("plain", "graph")
HOST_LIMIT, DEVICE_LIMIT = 90.0, 45.0  # seconds a run


class Difference(msgspec.Struct, frozen=True):
    """The first element that differs, its words in hexadecimal."""

    step: str
    place: str
    host: str
    device: str


class Compared(msgspec.Struct, frozen=True):
    """One run on the device against the host's."""

    case: str
    variant: str
    arm: str
    mode: str
    outcome: str  # equal, different, or how a run ended early
    elements: int  # compared: written and unwritten alike
    unwritten: int  # of them those that the contract leaves alone
    differing: int
    lost_poison: int  # unwritten elements that no longer hold their poison, on the device
    broken_guards: int
    changed_inputs: int  # bytes
    launches: int
    first: Difference | None
    host_seconds: float
    device_seconds: float


class Built(msgspec.Struct, frozen=True):
    """Both programs of a variant."""

    variant: str
    source_sha256: dict[str, str]
    host_compiler: str
    host_sha256: str
    host_fnv: str
    device_compiler: str
    device_flags: tuple[str, ...]
    cubin_sha256: str
    cubin_fnv: str
    tensor_core: list[str]
    resources: list[cubin.KernelResources]


class Report(msgspec.Struct):
    """What the JSON file holds."""

    device: dict[str, Any]
    machine: str
    python: str
    built: list[Built]
    compared: list[Compared]
    not_run: list[str]
    comparison_can_fail: bool  # one flipped bit in a copy of the device's bytes was seen
    seconds: float
    verdict: str


def main() -> int:
    options = _options()
    began = time.monotonic()
    deadline = began + options.seconds
    try:
        device = cuda.require_device()
    except ToolMissing as missing:
        print(f"cannot run: {missing}")
        return 2
    print(f"{device.name}, {device.arch}, CUDA {device.cuda}, driver {device.driver or '?'}", flush=True)
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    report = Report(msgspec.to_builtins(device), platform.platform(), sys.version, [], [], [], False, 0.0, "")
    found = project.find(ROOT)
    builds: dict[tuple[str, tuple[str, ...]], tuple[HostBuild, CubinBuild]] = {}
    for shape, case, variant in _planned(found, options, device.arch):
        what = f"{case.id} {variant.name}"
        if time.monotonic() > deadline:
            report.not_run.append(f"{what}: the time is used up")
            continue
        try:
            operator = found.shape(shape)[0]
            _case(found, operator, case, variant, device.arch, builds, deadline, report)
        except (AuditError, OSError) as error:
            report.not_run.append(f"{what}: {error}")
            print(f"NOT RUN  {what}: {error}", flush=True)
        except Exception:
            report.not_run.append(f"{what}: {traceback.format_exc()}")
            print(f"NOT RUN  {what}:\n{traceback.format_exc()}", flush=True)
        _write(out, report, began)
    report.verdict = _verdict(report)
    _write(out, report, began)
    print(
        f"{report.verdict}: {len(report.compared)} comparisons, {len(report.not_run)} not run, "
        f"{sum(found.elements for found in report.compared):,} elements, {report.seconds:.0f} s"
    )
    return {"equal": 0, "different": 1}.get(report.verdict, 3)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, help="folder of the report")
    parser.add_argument("--shapes", default="q2,q6,q8")
    parser.add_argument("--contexts", default="1,33,129,1649", help="empty: the default plan of each shape")
    parser.add_argument("--variants", default="", help="empty: all that are not closed")
    parser.add_argument("--seconds", type=float, default=240.0, help="after which no further case is begun")
    parser.add_argument("--both-arms", action="store_true", help="also other addresses and poison, first step only")
    return parser.parse_args()


def _planned(found: Project, options: argparse.Namespace, arch: str) -> Iterator[tuple[str, Case, Variant]]:
    contexts = [int(word) for word in options.contexts.split(",") if word]
    variants = [word for word in options.variants.split(",") if word]
    for shape in options.shapes.split(","):
        selection = Selection(axes={"context": contexts} if contexts else {}, variants=variants, captures=[], probes=[])
        made = plan.make(found, shape, selection, arch=arch, time_limit=HOST_LIMIT)
        for case in made.cases:
            for planned in made.variants:
                yield shape, case, found.operators[made.operator].variant(planned.name)


def _case(
    found: Project,
    operator: Operator,
    case: Case,
    variant: Variant,
    arch: str,
    builds: dict[tuple[str, tuple[str, ...]], tuple[HostBuild, CubinBuild]],
    deadline: float,
    report: Report,
) -> None:
    assert isinstance(variant.code, Source), "only variants with a source have a device build"
    entries = tuple(dict.fromkeys(launch.entry for launch in variant.launches(case)))
    key = (variant.name, entries)
    if key not in builds:
        source, defines = found.root / variant.code.path, variant.code.defines
        builds[key] = (
            build_host(found.root, source, entries, arch=arch, defines=defines),
            _cubin(found.root, source, entries, arch, defines),
        )
        report.built.append(_built(variant, *builds[key]))
        print(f"built    {variant.name}: {', '.join(report.built[-1].tensor_core) or 'no disassembly'}", flush=True)
    on_host, on_device = builds[key]
    inputs = operator.inputs(case, case.rng())
    steps = {name: {**inputs, **change} for name, change in operator.steps(case, inputs).items()}
    for arm in (FIRST, AGAIN) if "--both-arms" in sys.argv else (FIRST,):
        chosen = steps if arm is FIRST else dict(list(steps.items())[:1])
        _arm(operator, case, variant, inputs, chosen, arm, on_host, on_device, deadline, report)


def _cubin(root: Path, source: Path, entries: Sequence[str], arch: str, defines: Mapping[str, str]) -> CubinBuild:
    """By NVRTC; by nvcc where NVRTC itself fails, so that a version that does not fit costs no case."""
    try:
        return compile_cubin(root, source, entries, arch=arch, defines=defines)
    except CompileError:
        raise
    except Exception as error:
        print(f"         NVRTC failed, trying nvcc: {type(error).__name__}: {error}", flush=True)
        audit.build.cuda._cuda_core = lambda: None
        return compile_cubin(root, source, entries, arch=arch, defines=defines)


def _arm(
    operator: Operator,
    case: Case,
    variant: Variant,
    inputs: Inputs,
    steps: Mapping[str, Inputs],
    arm: Arm,
    on_host: HostBuild,
    on_device: CubinBuild,
    deadline: float,
    report: Report,
) -> None:
    changing = {name for given in steps.values() for name, value in given.items() if value is not inputs.get(name)}
    loads = {step: {name: given[name] for name in changing} for step, given in steps.items()}
    with tempfile.TemporaryDirectory(prefix="kernel-audit-") as scratch:
        folders = {name: Path(scratch, name) for name in ("host", *MODES)}
        for folder in folders.values():
            folder.mkdir()
        written = bundle.write(folders["host"], operator, variant, case, inputs, loads, arm)
        for mode in MODES:
            shutil.copytree(folders["host"], folders[mode], dirs_exist_ok=True)
        left = max(5.0, deadline - time.monotonic())
        theirs = host.run(folders["host"], written, on_host, min(HOST_LIMIT, left), os.cpu_count() or 1)
        for mode in MODES:
            left = max(5.0, deadline - time.monotonic())
            mine = cuda.run(folders[mode], written, on_device, min(DEVICE_LIMIT, left), mode)
            names = (case.id, variant.name, arm.name, mode)
            compared = _compare(names, operator, case, steps, written, theirs, mine, folders[mode])
            report.compared.append(compared)
            if isinstance(mine, Completed) and mine.ran_fnv != on_device.identity.binary_fnv:
                report.not_run.append(f"{names}: ran {mine.ran_fnv}, built was {on_device.identity.binary_fnv}")
            if compared.outcome == "equal" and not report.comparison_can_fail:
                _flip(next(iter(mine.files.values())))  # type: ignore[union-attr]
                again = _compare(names, operator, case, steps, written, theirs, mine, folders[mode])
                report.comparison_can_fail = again.differing == 1
            print(_line(compared), flush=True)


def _compare(
    names: tuple[str, str, str, str],
    operator: Operator,
    case: Case,
    steps: Mapping[str, Inputs],
    written: Bundle,
    theirs: Outcome,
    mine: Outcome,
    folder: Path,
) -> Compared:
    counts = dict.fromkeys(("elements", "unwritten", "differing", "lost_poison", "broken_guards", "changed_inputs"), 0)
    first: Difference | None = None
    if isinstance(theirs, Completed) and isinstance(mine, Completed):
        buffers = {buffer.name: buffer for buffer in operator.buffers(case)}
        for step in written.steps:
            masks = operator.written(case, steps[step.name])
            for name, word in step.poison.items():
                slot, buffer = written.slot(name), buffers[name]
                snapshots = [arena.read(outcome.files[step.name][name], slot) for outcome in (theirs, mine)]
                host_words, device_words = (_words(snapshot, buffer, case) for snapshot in snapshots)
                poison = arena.poison_array(slot, word).view(device_words.dtype).reshape(device_words.shape)
                mask = np.broadcast_to(np.asarray(masks.get(name, True)), device_words.shape)
                differ = host_words != device_words
                counts["elements"] += differ.size
                counts["unwritten"] += int((~mask).sum())
                counts["differing"] += int(differ.sum())
                counts["lost_poison"] += int(((device_words != poison) & ~mask).sum())
                counts["broken_guards"] += len(snapshots[1].broken_guards)
                if first is None and differ.any():
                    first = _first(step.name, buffer, case, host_words, device_words, differ)
        counts["changed_inputs"] = _changed_inputs(case, steps, written, folder, buffers)
    outcome = _ended("host", theirs) or _ended("device", mine)
    if not outcome:
        bad = ("differing", "lost_poison", "broken_guards", "changed_inputs")
        outcome = "different" if any(counts[name] for name in bad) else "equal"
    seen = len(mine.launches) if isinstance(mine, Completed) else 0
    if outcome == "equal" and mine.launches != theirs.launches:  # type: ignore[union-attr]
        outcome = "different"
    seconds = (getattr(found, "seconds", 0.0) for found in (theirs, mine))
    return Compared(*names, outcome, **counts, launches=seen, first=first, **dict(zip(_SECONDS, seconds, strict=True)))


_SECONDS = ("host_seconds", "device_seconds")


def _words(snapshot: arena.Snapshot, buffer: Buffer, case: Case) -> np.ndarray[Any, np.dtype[Any]]:
    array = arena.typed(snapshot, buffer, case)
    return array.view(f"u{array.dtype.itemsize}")


def _first(step: str, buffer: Buffer, case: Case, host_words: Any, device_words: Any, differ: Any) -> Difference:
    index = np.unravel_index(int(np.flatnonzero(differ)[0]), differ.shape)
    place = ", ".join(f"{dim}={int(i)}" for dim, i in zip(buffer.dims_of(case), index, strict=True))
    digits = 2 * host_words.itemsize
    values = (f"0x{int(words[index]):0{digits}x}" for words in (host_words, device_words))
    return Difference(step, f"{buffer.name}[{place}]", *values)


def _changed_inputs(
    case: Case,
    steps: Mapping[str, Inputs],
    written: Bundle,
    folder: Path,
    buffers: Mapping[str, Buffer],
) -> int:
    last, changed = list(steps.values())[-1], 0
    for slot in written.slots:
        if slot.role == "in":
            left = arena.read(folder / slot.file, slot)
            given = np.frombuffer(arena.encode_input(buffers[slot.name], case, last), np.uint8)
            changed += int((left.data != given).sum()) + len(left.broken_guards)
    return changed


def _flip(files: Mapping[str, Path]) -> None:
    path = next(iter(files.values()))
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))


def _ended(where: str, outcome: Outcome) -> str:
    return "" if isinstance(outcome, Completed) else f"{where}: {outcome}"


def _built(variant: Variant, on_host: HostBuild, on_device: CubinBuild) -> Built:
    try:
        opcodes, resources = sorted(cubin.tensor_core_opcodes(on_device)), cubin.resources(on_device)
    except ToolMissing as missing:
        print(f"         {missing}")
        opcodes, resources = [], []
    mine, theirs = on_device.identity, on_host.identity
    return Built(
        variant.name,
        mine.sources,
        theirs.compiler,
        theirs.binary_sha256,
        theirs.binary_fnv,
        mine.compiler,
        mine.flags,
        mine.binary_sha256,
        mine.binary_fnv,
        opcodes,
        resources,
    )


def _line(found: Compared) -> str:
    told = f"{found.differing} of {found.elements:,} elements differ"
    if found.first:
        told += f", the first {found.first.place} in {found.first.step}: host {found.first.host}, {found.first.device}"
    extra = {
        "launches": found.launches,
        "lost poison": found.lost_poison,
        "guards": found.broken_guards,
        "inputs": found.changed_inputs,
    }
    told += "".join(f", {name} {count}" for name, count in extra.items())
    word = found.outcome if found.outcome in ("equal", "different") else "ended"
    ended = f"; {found.outcome}" if word == "ended" else ""
    return (
        f"{word:10}{found.case} {found.variant} {found.arm} {found.mode}: {told}; "
        f"host {found.host_seconds:.1f} s, device {found.device_seconds:.1f} s{ended}"
    )


def _verdict(report: Report) -> str:
    if any(found.outcome != "equal" for found in report.compared):
        return "different"
    complete = report.compared and not report.not_run and report.comparison_can_fail
    return "equal" if complete else "incomplete"


def _write(out: Path, report: Report, began: float) -> None:
    report.seconds = round(time.monotonic() - began, 1)
    (out / REPORT).write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1))


if __name__ == "__main__":
    sys.exit(main())
