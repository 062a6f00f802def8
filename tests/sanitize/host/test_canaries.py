"""Every planted fault is found by its tool, at its lines, and its clean twin is passed."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from audit.backends import Completed
from audit.compile.host import HostBuild
from audit.records.sanitize import Tool
from audit.sanitize.canaries import planted
from audit.sanitize.canaries.planted import CANARIES, CanaryKernel
from audit.sanitize.host import tools as host
from audit.sanitize.host.tools import FOUND, HostRun

KIND = {
    "out_of_bounds_write": "heap-buffer-overflow.*\nWRITE of size 4",
    "out_of_bounds_read": "heap-buffer-overflow.*\nREAD of size 4",
    "shared_out_of_bounds": "heap-buffer-overflow.*\nWRITE of size 4",
    "dynamic_out_of_bounds": "heap-buffer-overflow.*\nWRITE of size 4",
    "misaligned_vector": "misaligned address .* which requires 16 byte alignment",
    "divergent_barrier": "error barrier .*threads wait for one another at different places",
    "divergent_warp": "error collective .*has exited, but lane 0 waits for it",
}

program: Callable[[Tool], HostBuild] = cache(host.build_canaries)


def run(canary: CanaryKernel, entry: str, folder: Path) -> HostRun:
    return host.run_host_tool(
        canary.tool, folder, planted.write_canary(folder, canary, entry), program(canary.tool), 60
    )


@pytest.mark.parametrize("canary", CANARIES, ids=lambda canary: canary.name)
def test_a_canary_is_found_at_its_lines(canary: CanaryKernel, tmp_path: Path) -> None:
    ran = run(canary, canary.name, tmp_path)
    said = ran.log + "\n".join(ran.report)
    default = "data race" if canary.tool == "racecheck" else "Uninitialised|UninitCondition"
    assert re.search(KIND.get(canary.name, default), said), said
    assert canary.lines
    for line in canary.lines:
        assert f"{canary.source}:{line}" in said or f"<line>{line}</line>" in said, said
    assert not isinstance(ran.outcome, Completed)
    assert ran.ended == (canary.tool != "synccheck")
    if ran.ended:
        assert ran.outcome.kind == f"exit {FOUND}"


@pytest.mark.parametrize("canary", CANARIES, ids=lambda canary: canary.name)
def test_its_clean_twin_is_passed(canary: CanaryKernel, tmp_path: Path) -> None:
    ran = run(canary, canary.twin, tmp_path)
    assert isinstance(ran.outcome, Completed), ran.log + "\n".join(ran.report)
    assert "<error>" not in ran.log
    assert canary.tool == "initcheck" or ran.log == ""
    assert [(launch.entry, launch.blocks, launch.threads) for launch in ran.outcome.launches] == [
        (canary.twin, canary.blocks, 64)
    ]
