"""The engine of compute-sanitizer on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from audit import processes
from audit.backends import cuda
from audit.bundle import Bundle
from audit.compile.cuda import compile_cubin
from audit.compile.device import build_device
from audit.compile.identity import BuildIdentity
from audit.records.sanitize import Canary, Observation, Tool, ToolRecord
from audit.sanitize.canaries.planted import FOLDER
from audit.sanitize.device import canaries as compute_canaries
from audit.sanitize.device import compute_sanitizer
from audit.sanitize.device.compute_sanitizer import Installation, Work
from audit.spec import Variant


class DeviceEngine:
    """The tools of compute-sanitizer. Raises ToolMissing without a GPU or without compute-sanitizer."""

    together = True

    def __init__(self, chosen: Path | None, canary_limit: float) -> None:
        self._device = cuda.require_device()
        self._installed: Installation = compute_sanitizer.find_compute_sanitizer(chosen)
        self._canary_limit = canary_limit

    def record(self, tool: Tool) -> ToolRecord:
        """The tool's version, options and gaps."""
        return compute_sanitizer.device_tool_record(tool, self._installed)

    def canaries(self, tool: Tool) -> tuple[Canary, ...]:
        """Run the tool's canaries and their twins."""
        source, entries = compute_canaries.source(tool), compute_canaries.canary_entries(tool, self._installed)
        build = compile_cubin(FOLDER, source, entries, arch=self._device.arch, line_info=True)
        return compute_canaries.check_canaries(tool, self._installed, build, self._canary_limit)

    def observe(
        self, tool: Tool, root: Path, variant: Variant, bundles: Sequence[tuple[Path, Bundle]], limit: float
    ) -> list[tuple[Observation, BuildIdentity]]:
        """Run all bundles in one process, then each in its own unless all were clean. Apart from line info the builds
        are those of a run."""
        works = [
            Work(folder, bundle, build_device(root, variant, bundle.entries, self._device.arch, line_info=True))
            for folder, bundle in bundles
        ]
        observations = compute_sanitizer.run_together(tool, self._installed, works, limit) if len(works) > 1 else None
        if observations is None:
            observations = [compute_sanitizer.run_tool(tool, self._installed, work, limit) for work in works]
        return [(observed, work.build.identity) for observed, work in zip(observations, works, strict=True)]

    def describe_device(self) -> str | None:
        """The GPU in words."""
        return self._device.described()

    def abort(self) -> None:
        """Kill every tool that is running now, with its target."""
        processes.abort()
