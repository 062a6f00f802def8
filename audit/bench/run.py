"""Runs a bench: compiles the variants, times them in a separate process, and makes the record."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from audit import __version__
from audit.backends import cuda
from audit.bench.arrays import comparison_build
from audit.bench.axis import case_at, output_of, working_sets
from audit.bench.session import BenchOrder, BenchResults, Entrant
from audit.bench.worker import FINDINGS, ORDER
from audit.compile.cubin_build import CubinBuild
from audit.compile.device import build_device
from audit.declaration import buffers_of, launches_of
from audit.errors import AuditError, EvidenceError
from audit.plan import PlannedVariant
from audit.processes import PARENT, package_environment
from audit.project import Project
from audit.records import machine
from audit.records.bench import SCHEMA, BenchRecord, Method, bench_cases
from audit.records.closure import closure_of
from audit.scratch import sweep
from audit.spec import Bench, Case, Operator

_MODULE = "audit.bench.worker"
_COMPARISON = ".comparison"  # not a valid name of a variant


def plan_pairs(operator: Operator, variants: Sequence[PlannedVariant]) -> tuple[tuple[str, str], ...]:
    """The pairs to time, each once: every variant with its parent, and the operator's default with the control."""
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
    declared: Bench,
    folder: Path,
    *,
    peers: bool,
    started: str,
    command: str,
    time_limit: float,
    say: Callable[[str], None],
) -> BenchRecord:
    """Time `variants` (parents before children). Partial results of a failed bench stay in `folder`.

    `say` receives a line before each piece of work.

    Raises PlanError if there is nothing to bench, ToolMissing without a GPU, AuditError if the measuring process fails.
    """
    sweep()
    began = time.monotonic()
    operator, shape = project.shape(shape_name)
    sets = working_sets(operator, declared)
    cases = [case_at(operator, shape, declared, value) for value in {*declared.values, *sets.values()}]
    case = max(cases, key=lambda one: one.axes[declared.axis])
    for one in cases:
        output_of(operator, declared, one)
    device = cuda.require_device()
    builds = {}
    entrants = []
    for variant in variants:
        say(f"compiling {variant.name}")
        builds[variant.name] = build = _compile(project, operator, cases, variant.name, device.arch)
        entrants.append(_write_cubin(folder, variant.name, variant.parent or "", build))
    names = [variant.name for variant in variants]
    order = BenchOrder(
        project=str(project.root),
        shape=shape_name,
        axes=dict(declared.axes),
        axis=declared.axis,
        working_sets=sets,
        own_hooks=declared.moved is not None or declared.at is not None,
        comparison=_write_cubin(folder, _COMPARISON, "", comparison_build(device.arch)),
        entrants=tuple(entrants),
        pairs=plan_pairs(operator, variants),
        against_peers=operator.default if peers and operator.default in names else "",
        seeds=tuple(range(1, declared.layers + 1)),
        method=_method(operator, case, declared.layers),
    )
    (folder / ORDER).write_bytes(msgspec.json.encode(order))
    results = _measure(folder, time_limit, say)
    for name, build in builds.items():
        if results.fnv.get(name) != build.identity.binary_fnv:
            raise AuditError(
                f"variant {name}: expected the timed binary to have hash {build.identity.binary_fnv}, "
                f"but got {results.fnv.get(name)}; bench again"
            )
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
        machine=machine.describe_machine(device.described()),
        method=order.method,
        bandwidth=results.bandwidth,
        builds={name: build.identity for name, build in builds.items()},
        checked=tuple(results.checked),
        errors=tuple(results.errors),
        points=tuple(results.points),
        skipped=tuple(results.skipped),
        peers={peer.name: f"{peer.package} {machine.version(peer.package)}" for peer in declared.peers},
        seconds=round(time.monotonic() - began, 1),
        closure=closure_of(
            project,
            operator.name,
            (),
            bench_cases(shape_name, operator.name, case.axes, declared.axis, dict.fromkeys(sets.values()), builds),
        ),
        axis=declared.axis,
        working_sets=tuple(sorted({*sets.values()})),
    )


def _method(operator: Operator, case: Case, layers: int) -> Method:
    """One replay a trial where a kernel changes its inputs: they are restored in between."""
    in_place = any(buffer.role == "inout" for buffer in buffers_of(operator, case))
    return Method(layers, replays=1) if in_place else Method(layers)


def _compile(project: Project, operator: Operator, cases: Sequence[Case], name: str, arch: str) -> CubinBuild:
    variant = operator.variant(name)
    entries = tuple(dict.fromkeys(launch.entry for case in cases for launch in launches_of(variant, case)))
    return build_device(project.root, variant, entries, arch)


def _write_cubin(folder: Path, name: str, parent: str, build: CubinBuild) -> Entrant:
    cubin = f"{name}.cubin"
    (folder / cubin).write_bytes(build.cubin)
    return Entrant(name, parent, cubin, build.symbols)


def _measure(folder: Path, limit: float, say: Callable[[str], None]) -> BenchResults:
    command = [sys.executable, "-P", "-m", _MODULE, str(folder.resolve())]
    last = ""
    deadline = time.monotonic() + limit
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**package_environment(), PARENT: str(os.getpid())},
        errors="replace",
    ) as process:
        watch = threading.Timer(limit, process.kill)
        watch.start()
        try:
            assert process.stderr is not None
            for line in process.stderr:  # the worker prints a line before each piece of work
                last = line.strip() or last
                say(last)
            code = process.wait()
        finally:
            watch.cancel()
            process.kill()
    if time.monotonic() >= deadline:
        raise AuditError(
            f"expected the bench to end within {limit:g} s, but it did not; last line: {last}; raise --time-limit"
        )
    if code != 0:
        raise AuditError(f"the bench ended with exit code {code}: {last}; its partial results are in {folder}")
    try:
        return msgspec.json.decode((folder / FINDINGS).read_bytes(), type=BenchResults)
    except (OSError, msgspec.DecodeError) as error:
        raise EvidenceError(f"{folder / FINDINGS}: expected the results of the bench, but: {error}") from None
