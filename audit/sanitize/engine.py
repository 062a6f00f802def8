"""What a session needs of a backend: its tools, their canaries, and a tool over one bundle."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from audit.bundle import Bundle
from audit.compile.identity import BuildIdentity
from audit.records.sanitize import Canary, Observed, Tool, ToolRecord
from audit.spec import Variant


class Engine(Protocol):
    """The sanitizers of one backend."""

    together: bool
    """Whether it gains by having all cases of a variant at once."""

    def record(self, tool: Tool) -> ToolRecord:
        """The tool as it is used. Raises ToolMissing where it is not there."""

    def canaries(self, tool: Tool) -> tuple[Canary, ...]:
        """Its canaries and their twins, run now, by the command line of the audited variants."""

    def observe(
        self, tool: Tool, root: Path, variant: Variant, bundles: Sequence[tuple[Path, Bundle]], limit: float
    ) -> list[tuple[Observed, BuildIdentity]]:
        """Bundles of the policy `exact`, each in its folder, run under the tool for at most `limit` seconds each."""

    def describe_device(self) -> str | None:
        """The GPU, where there is one."""

    def abort(self) -> None:
        """Kill every tool that is running now."""
