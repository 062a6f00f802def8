"""A bench from its choice of variants to its evidence: compiled here, timed in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from audit import __version__
from audit.backends import cuda
from audit.bench.arrays import comparison_build
from audit.bench.session import BenchOrder, BenchResults, Entrant
from audit.bench.worker import FINDINGS, ORDER
from audit.compile.cuda import CubinBuild, compile_cubin
from audit.declaration import launches_of
from audit.errors import AuditError, EvidenceError, PlanError
from audit.plan import PlannedVariant
from audit.project import Project
from audit.records import machine
from audit.records.bench import SCHEMA, BenchRecord, Method
from audit.spec import AxisValue, Bench, Binary, Case, Operator

_MODULE = "audit.bench.worker"
_COMPARISON = ".comparison"  # no name of a variant


def plan_pairs(operator: Operator, variants: Sequence[PlannedVariant]) -> tuple[tuple[str, str], ...]:
    """Each variant beside its parent, and the operator's default beside the control, each pair once."""
    names = [variant.name for variant in variants]
    pairs = [(variant.parent, variant.name) for variant in variants if variant.parent]
    control = next((variant.name for variant in variants if variant.status == "control"), None)
    if control and operator.default in names and operator.default != control:
        pairs.append((control, operator.default))
    return tuple(dict.fromkeys(pairs))


def bench(
    project: Project,
    shape_name: str,
    variants: Sequence[PlannedVariant],
    contexts: Sequence[int],
    folder: Path,
    *,
    axes: Mapping[str, AxisValue],
    peers: bool,
    started: str,
    command: str,
    time_limit: float,
    say: Callable[[str], None],
) -> BenchRecord:
    """Time `variants` (parents before children) at `contexts`, in `folder`, which is left with what was measured.

    `axes` replace values of the working set's. `say` takes a line before each thing that is done.

    Raises PlanError where there is nothing to bench, ToolMissing without a GPU, AuditError where the process that
    measures does not end well; what it had found by then stays in the folder.
    """
    began = time.monotonic()
    operator, shape = project.shape(shape_name)
    declared = _declared(operator, axes)
    case = operator.case(shape, declared.axes)
    if wrong := [context for context in contexts if not 1 <= context <= case.context]:
        raise PlanError(f"--context: expected 1 to {case.context:,} tokens, the working set's, but got {wrong}")
    device = cuda.require_device()
    builds = {}
    entrants = []
    for variant in variants:
        say(f"compiling {variant.name}")
        builds[variant.name] = build = _compile(project, operator, case, variant.name, device.arch)
        entrants.append(_enter(folder, variant.name, variant.parent or "", build))
    names = [variant.name for variant in variants]
    order = BenchOrder(
        project=str(project.root),
        shape=shape_name,
        axes=dict(declared.axes),
        comparison=_enter(folder, _COMPARISON, "", comparison_build(device.arch)),
        entrants=tuple(entrants),
        pairs=plan_pairs(operator, variants),
        against_peers=operator.default if peers and operator.default in names else "",
        contexts=tuple(contexts),
        seeds=tuple(range(1, declared.layers + 1)),
        method=Method(declared.layers),
    )
    (folder / ORDER).write_bytes(msgspec.json.encode(order))
    found = _measure(folder, time_limit, say)
    for name, build in builds.items():
        if found.fnv.get(name) != build.identity.binary_fnv:
            raise AuditError(f"variant {name}: the binary that was timed is not the one that was built")
    for temporary in (ORDER, FINDINGS, *(entrant.cubin for entrant in (order.comparison, *entrants))):
        (folder / temporary).unlink()
    return BenchRecord(
        schema=SCHEMA,
        kind="bench",
        tool=__version__,
        started=started,
        command=command,
        commit=machine.commit(project.root),
        shape=shape_name,
        operator=operator.name,
        axes=case.axes,
        seeds=order.seeds,
        machine=machine.describe(device.described()),
        method=order.method,
        bandwidth=found.bandwidth,
        builds={name: build.identity for name, build in builds.items()},
        checked=tuple(found.checked),
        errors=tuple(found.errors),
        points=tuple(found.points),
        skipped=tuple(found.skipped),
        peers={peer.name: f"{peer.package} {machine.version(peer.package)}" for peer in declared.peers},
        seconds=round(time.monotonic() - began, 1),
    )


def _declared(operator: Operator, axes: Mapping[str, AxisValue]) -> Bench:
    if operator.bench is None:
        raise PlanError(f"operator {operator.name}: declares no bench (Operator.bench), so there is nothing to time")
    return replace(operator.bench, axes={**operator.bench.axes, **axes})


def _compile(project: Project, operator: Operator, case: Case, name: str, arch: str) -> CubinBuild:
    variant = operator.variant(name)
    if isinstance(variant.code, Binary):
        raise PlanError(f"variant {name}: a frozen host program cannot run on a GPU; leave it out")
    entries = tuple(dict.fromkeys(launch.entry for launch in launches_of(variant, case)))
    return compile_cubin(
        project.root, project.root / variant.code.path, entries, arch=arch, defines=variant.code.defines
    )


def _enter(folder: Path, name: str, parent: str, build: CubinBuild) -> Entrant:
    cubin = f"{name}.cubin"
    (folder / cubin).write_bytes(build.cubin)
    return Entrant(name, parent, cubin, build.symbols)


def _measure(folder: Path, limit: float, say: Callable[[str], None]) -> BenchResults:
    command = [sys.executable, "-P", "-m", _MODULE, str(folder.resolve())]
    last = ""
    deadline = time.monotonic() + limit
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=cuda.environment(), errors="replace"
    ) as process:
        watch = threading.Timer(limit, process.kill)
        watch.start()
        try:
            assert process.stderr is not None
            for line in process.stderr:  # the worker speaks before each thing that it does
                last = line.strip() or last
                say(last)
            code = process.wait()
        finally:
            watch.cancel()
            process.kill()
    if time.monotonic() >= deadline:
        raise AuditError(f"the bench did not end within {limit:g} s (--time-limit); last: {last}")
    if code != 0:
        raise AuditError(f"the bench ended with {code}: {last}; what it had found lies in {folder}")
    try:
        return msgspec.json.decode((folder / FINDINGS).read_bytes(), type=BenchResults)
    except (OSError, msgspec.DecodeError) as error:
        raise EvidenceError(f"{folder / FINDINGS}: {error}") from None
