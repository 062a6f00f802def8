"""The process that benches: `python -m audit.bench.worker FOLDER`, with `order.json` and the cubins in the folder.

It rewrites `findings.json` after every value of the axis, reports progress on stderr, and exits with 0 after the last.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from ctypes import byref, c_void_p
from dataclasses import replace
from pathlib import Path

import msgspec

from audit import processes
from audit.backends.driver import CudaError, Driver, NoDriver, Refused
from audit.backends.launches import LaunchError
from audit.bench.arrays import DeviceComparison
from audit.bench.bandwidth import bandwidth
from audit.bench.clock import Clock
from audit.bench.session import BenchOrder, BenchResults, Timed, TimingSession, torch_with_gpu
from audit.bench.workset import Contender, WorkingSet
from audit.compile.identity import fnv1a64
from audit.errors import AuditError
from audit.project import find_project
from audit.spec import Bench

ORDER, FINDINGS = "order.json", "findings.json"
_NON_BLOCKING = 1


def measure_bench(folder: Path, say: Callable[[str], None]) -> None:
    """Run the bench of `order.json`. Raises NoDriver, Refused, CudaError, LaunchError or AuditError."""
    order = msgspec.json.decode((folder / ORDER).read_bytes(), type=BenchOrder)
    operator, shape = find_project(Path(order.project)).shape(order.shape)
    declared = replace(
        operator.bench or Bench(order.axis, ()), axis=order.axis, axes=order.axes, layers=order.method.layers
    )
    if not order.own_hooks:
        declared = replace(declared, at=None, moved=None)
    driver, stream = Driver(), c_void_p()
    driver.enter()
    driver.call("cuStreamCreate", byref(stream), _NON_BLOCKING)
    clock = Clock(driver, stream)
    counting = (folder / order.comparison.cubin).read_bytes()
    comparison = DeviceComparison(driver, driver.info().multiprocessors, counting, order.comparison.symbols)
    with ExitStack() as stack:
        if (torch := torch_with_gpu()) is not None:  # peers enqueue their work on this stream, between our events
            stack.enter_context(torch.cuda.stream(torch.cuda.ExternalStream(stream.value)))
        say("bandwidth")
        results = BenchResults({}, bandwidth(driver, clock, comparison, torch), [], [], [], [])
        timed: Timed | None = None
        for value, made_for in order.working_sets.items():
            if timed is None or timed.work.made_for != made_for:
                if timed is not None:
                    timed.free()
                say(f"working set of {declared.axis}={made_for:,}")
                work = WorkingSet(driver, operator, shape, declared, order.seeds, made_for)
                timed = _timed(driver, stream, work, order, folder, results)
            TimingSession(order, shape, declared, timed, clock, comparison, results, say).at(value)
            (folder / FINDINGS).write_bytes(msgspec.json.encode(results))


def _timed(
    driver: Driver, stream: c_void_p, work: WorkingSet, order: BenchOrder, folder: Path, results: BenchResults
) -> Timed:
    contenders: dict[str, Contender] = {}
    for entrant in order.entrants:
        cubin = (folder / entrant.cubin).read_bytes()
        results.fnv[entrant.name] = fnv1a64(cubin)
        variant = work.operator.variant(entrant.name)
        contenders[entrant.name] = Contender(driver, stream, work, variant, cubin, entrant.symbols)
    graphs = {name: (contender.graph(), contender.graph()) for name, contender in contenders.items()}
    return Timed(work, contenders, graphs)


def main(arguments: Sequence[str]) -> int:
    """The exit code."""
    if len(arguments) != 1:
        print("usage: python -m audit.bench.worker FOLDER", file=sys.stderr)
        return 2
    try:
        measure_bench(Path(arguments[0]), lambda line: print(line, file=sys.stderr, flush=True))
    except (NoDriver, Refused, CudaError, LaunchError, AuditError) as error:
        print(f"error {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    processes.end_with_parent()
    sys.exit(main(sys.argv[1:]))
