"""Bytes of device and host: equal ones pass, others are held against what both computed with."""

from __future__ import annotations

import dataclasses

import msgspec
import numpy as np
import pytest

from audit import arena
from audit.backends import Completed
from audit.checks import Result, View
from audit.checks import device as checks
from audit.checks.completion import completion
from audit.compile.identity import BuildIdentity, CodeRecord, KernelRecord


def of_device(host_build: BuildIdentity, code: CodeRecord | None, arch: str = "sm_90") -> BuildIdentity:
    """The build of a device, with each product rounded for itself, as an operator that promises equality declares."""
    return msgspec.structs.replace(host_build, backend="cuda", arch=arch, code=code, contracted=False)


def code(*opcodes: str, symbols: str = "_Z1", known: bool = True) -> CodeRecord:
    kernels = tuple(KernelRecord(entry, symbols + entry) for entry in ("softmax_control",))
    return CodeRecord(kernels, "nvdisasm", "sha", opcodes) if known else CodeRecord(kernels)


@pytest.fixture
def view(control: View) -> View:
    """A softmax that ran on the host, its bytes laid down as those of a device, of a graph and of the host."""
    assert control.build
    assert isinstance(control.outcome, Completed)
    launches = control.outcome.launches
    return dataclasses.replace(
        control,
        operator=dataclasses.replace(control.operator, same_on_host=True),
        build=of_device(control.build, code()),
        graph=control.steps,
        on_host=control.steps,
        launched={"graph": launches, "again": launches[: len(control.bundle.launches)]},
        host_build=control.build,
    )


def with_code(view: View, record: CodeRecord | None, arch: str = "sm_90", *, differ: bool = False) -> Result:
    """The first result of the check `host` with this record of the device's code."""
    assert view.host_build
    built = of_device(view.host_build, record, arch)
    on_host = view.on_host
    if differ:
        data = view.steps[0].snapshots["y"].data.copy()
        data[0] ^= 1
        snapshots = {**view.steps[0].snapshots, "y": arena.Snapshot(data, ())}
        on_host = [dataclasses.replace(view.steps[0], snapshots=snapshots), *view.steps[1:]]
    return next(checks.host(dataclasses.replace(view, build=built, on_host=on_host)))


@pytest.mark.parametrize(
    ("record", "arch", "verdict", "words"),
    [
        (code(), "sm_90", "fail", "the code has no tensor-core instruction"),
        (code("HMMA.16816.F32"), "sm_90", "fail", "HMMA.16816.F32 on sm_90: sm_90; of the host: sm_90"),
        (code("HMMA.16816.F32"), "sm_80", "inconclusive", "HMMA.16816.F32 on sm_80: sm_80; of the host: sm_90"),
        (code("HMMA.1688.F32"), "sm_90", "inconclusive", "HMMA.1688.F32 on sm_90: no model known"),
        (code("HGMMA.64x64x16.F32", "HMMA.16816.F32"), "sm_90", "inconclusive", "HGMMA.64x64x16.F32 on sm_90: no"),
        (code(known=False), "sm_90", "inconclusive", "tensor-core instructions unknown without a disassembler"),
        (None, "sm_90", "inconclusive", "without a disassembler"),
    ],
)
def test_other_bytes_are_a_finding_where_the_models_agree(
    view: View, record: CodeRecord | None, arch: str, verdict: str, words: str
) -> None:
    found = with_code(view, record, arch, differ=True)
    assert found.verdict == verdict
    assert found.detail.startswith("1 of ")
    assert words in found.detail
    equal = with_code(view, record, arch)
    assert equal.verdict == "pass"
    assert words in equal.detail


def test_without_the_hosts_build_nothing_is_comparable(view: View) -> None:
    y = view.steps[0].snapshots["y"]
    other = dataclasses.replace(view.steps[0], snapshots={"y": arena.Snapshot(np.zeros_like(y.data), ())})
    (result, *_) = checks.host(dataclasses.replace(view, host_build=None, on_host=[other]))
    assert result.verdict == "inconclusive"
    assert result.detail.endswith("; the record of a build is missing")


def test_launches_of_every_execution_are_counted(view: View) -> None:
    assert [result.verdict for result in completion(view)] == ["pass"] * 3
    graph = view.launched["graph"]
    short = dataclasses.replace(view, launched={**view.launched, "graph": graph[:-1]})
    plain, replayed, again = completion(short)
    assert (plain.verdict, replayed.verdict, again.verdict) == ("pass", "fail", "pass")
    assert replayed.detail.startswith(f"{len(graph) - 1} launches seen, {len(graph)} planned (graph); seen")


def test_a_host_that_built_nothing_leaves_the_promise_open(view: View) -> None:
    unsupported = dataclasses.replace(view, on_host=(), host_build=None, host_reason="<cub/cub.cuh> is not supported")
    (result,) = checks.host(unsupported)
    assert (result.verdict, "<cub/cub.cuh>" in result.detail) == ("inconclusive", True)
    assert list(checks.host_notes(unsupported)) == []


def test_without_a_promise_the_difference_is_shown_and_not_judged(view: View) -> None:
    data = view.steps[0].snapshots["y"].data.copy()
    data[0] ^= 1
    other = dataclasses.replace(view.steps[0], snapshots={"y": arena.Snapshot(data, ())})
    stranger = dataclasses.replace(
        view, operator=dataclasses.replace(view.operator, same_on_host=False), on_host=[other, *view.steps[1:]]
    )
    assert list(checks.host(stranger)) == []
    first, second = checks.host_notes(stranger)
    assert first.detail.startswith("1 of 231 elements differ, by at most ")
    assert (first.step, first.largest[0].differing, first.largest[0].ulp) == ("live", 1, 1)
    assert second.detail == "231 elements equal the host"
    (reason,) = checks.host_notes(dataclasses.replace(stranger, on_host=(), host_reason="no C++ compiler"))
    assert reason.detail == "not compared with a CPU: no C++ compiler"
