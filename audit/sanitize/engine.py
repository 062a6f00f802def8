"""What a session needs of a backend: its tools, their canaries, and a tool over one bundle."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from audit.build.identity import BuildIdentity
from audit.bundle import Bundle
from audit.sanitize.schema import Canary, Observed, Tool, ToolRecord
from audit.spec import Variant


class Engine(Protocol):
    """The sanitizers of one backend."""

    def record(self, tool: Tool) -> ToolRecord:
        """The tool as it is used. Raises ToolMissing where it is not there."""

    def canaries(self, tool: Tool) -> tuple[Canary, ...]:
        """Its canaries and their twins, run now, by the command line of the audited variants."""

    def observe(
        self, tool: Tool, root: Path, variant: Variant, folder: Path, bundle: Bundle, limit: float
    ) -> tuple[Observed, BuildIdentity]:
        """A bundle of the policy `exact`, run under the tool for at most `limit` seconds."""

    def describe_device(self) -> str | None:
        """The GPU, where there is one."""

    def abort(self) -> None:
        """Kill every tool that is running now."""
