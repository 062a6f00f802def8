"""The interface of a backend's sanitizers: the tools, their canaries, and a tool's run over bundles."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from audit.bundle import Bundle
from audit.compile.identity import BuildIdentity
from audit.records.sanitize import Canary, Observation, Tool, ToolRecord
from audit.spec import Variant


class Engine(Protocol):
    """The sanitizers of one backend."""

    together: bool
    """Whether all cases of a variant should be observed in one call, because that is faster."""

    def record(self, tool: Tool) -> ToolRecord:
        """The tool's version, options and gaps. Raises ToolMissing if the tool is not installed."""

    def canaries(self, tool: Tool) -> tuple[Canary, ...]:
        """Run the tool's canaries and their twins, with the command line of the audited variants."""

    def observe(
        self, tool: Tool, root: Path, variant: Variant, bundles: Sequence[tuple[Path, Bundle]], limit: float
    ) -> list[tuple[Observation, BuildIdentity]]:
        """Run bundles of the policy `exact`, each in its folder, under the tool, for at most `limit` seconds each."""

    def describe_device(self) -> str | None:
        """The GPU; None for a backend without one."""

    def abort(self) -> None:
        """Kill every running tool."""
