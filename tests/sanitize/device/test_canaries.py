"""Every canary and its twin is run, and each finding held against the lines that its source marks."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from audit.records.sanitize import TOOLS, Observation, Side, Tool, ToolFinding
from audit.sanitize.device import canaries as compute_canaries
from audit.sanitize.device import compute_sanitizer
from audit.sanitize.device.compute_sanitizer import FOUND, Installation, Work

from ...backends.test_cuda import by_hand

INSTALLED = Installation(Path("compute-sanitizer"), "2026.4.0.0", frozenset({"--initcheck-address-space"}))
BUILD = by_hand()
CLEAN = Observation(("tool",), 0, True, 0, (), (), 1, 0.1)
KINDS = {"divergent_barrier": "divergent-barrier", "misaligned_vector": "misaligned"}


def kind(name: str) -> str:
    starts = {"race": "race", "uninitialised": "uninitialised"}
    return KINDS.get(name) or next((starts[start] for start in starts if name.startswith(start)), "out-of-bounds")


class Runs:
    """Answers as a tool would that finds each canary at its marked lines, moved by `off`."""

    def __init__(self, off: int = 0) -> None:
        self.off, self.ran = off, list[str]()

    def __call__(self, tool: Tool, installed: Installation, work: Work, limit: float) -> Observation:
        assert (work.build, limit) == (BUILD, 1)
        (entry,) = work.bundle.entries
        assert all((work.folder / slot.file).stat().st_size == slot.size for slot in work.bundle.slots)
        self.ran.append(entry)
        if entry.endswith("_clean"):
            return CLEAN
        canary = next(one for one in compute_canaries.visible_canaries(tool, installed) if one.name == entry)
        sides = tuple(Side("read", entry, canary.source, line + self.off) for line in canary.lines)
        finding = ToolFinding(tool, kind(entry), "error", entry, "planted", sides, 1, "")
        return msgspec.structs.replace(CLEAN, exit_code=FOUND, reported=1, findings=(finding,))


@pytest.mark.parametrize("tool", TOOLS)
def test_each_is_found_at_its_own_lines_and_nowhere_else(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    for off in (0, 100):
        runs = Runs(off)
        monkeypatch.setattr(compute_sanitizer, "run_tool", runs)
        found = compute_canaries.check_canaries(tool, INSTALLED, BUILD, 1)
        assert sorted(runs.ran) == sorted(compute_canaries.canary_entries(tool, INSTALLED))  # side by side
        assert {canary.found for canary in found} == {off == 0}
        assert all(canary.twin_clean for canary in found)
