"""The host sanitizers, as an engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from audit.backends import child
from audit.bundle import Bundle
from audit.compile.host import HostBuild, build_host
from audit.compile.identity import BuildIdentity
from audit.errors import PlanError
from audit.records.sanitize import Canary, Observation, Tool, ToolRecord
from audit.sanitize.canaries import planted
from audit.sanitize.canaries.planted import CanaryKernel
from audit.sanitize.host import output as host_output
from audit.sanitize.host import tools as host
from audit.sanitize.verdict import canary as judged
from audit.scratch import scratch_folder
from audit.spec import Binary, Variant


class HostEngine:
    """ThreadSanitizer, AddressSanitizer and UBSan, the barrier accounting, valgrind: over the same source on this CPU.

    `arch` says whose tensor cores are modelled.
    """

    together = False

    def __init__(self, arch: str, canary_limit: float) -> None:
        self._arch, self._canary_limit = arch, canary_limit

    def record(self, tool: Tool) -> ToolRecord:
        """The tool as it is used. Raises ToolMissing where it is not there."""
        return host.record(tool)

    def canaries(self, tool: Tool) -> tuple[Canary, ...]:
        """Its canaries and their twins."""
        build = host.build_canaries(tool, self._arch)
        found = []
        for canary in planted.canaries_of(tool):
            fault, twin = (self._canary(tool, canary, entry, build) for entry in (canary.name, canary.twin))
            lines = {(canary.source, line) for line in canary.lines}
            found.append(judged(canary.name, tool, fault, twin, {canary.kind}, lines))
        return tuple(found)

    def observe(
        self, tool: Tool, root: Path, variant: Variant, bundles: Sequence[tuple[Path, Bundle]], limit: float
    ) -> list[tuple[Observation, BuildIdentity]]:
        """Each bundle under the tool, by itself."""
        return [self._observe(tool, root, variant, folder, bundle, limit) for folder, bundle in bundles]

    def describe_device(self) -> str | None:
        """There is no GPU in it."""
        return None

    def abort(self) -> None:
        """Kill every program that is running now."""
        child.abort()

    def _canary(self, tool: Tool, canary: CanaryKernel, entry: str, build: HostBuild) -> Observation:
        with scratch_folder() as folder:
            bundle = planted.write(folder, canary, entry)
            ran = host.run(tool, folder, bundle, build, self._canary_limit)
            return host_output.observe(ran, bundle, tuple(build.identity.sources))

    def _observe(
        self, tool: Tool, root: Path, variant: Variant, folder: Path, bundle: Bundle, limit: float
    ) -> tuple[Observation, BuildIdentity]:
        code = variant.code
        if isinstance(code, Binary):
            raise PlanError(f"variant {variant.name}: a frozen program cannot be built for a sanitizer; leave it out")
        build = build_host(
            root,
            root / code.path,
            bundle.entries,
            arch=self._arch,
            defines=code.defines,
            sanitizer=host.BUILT_FOR[tool],
        )
        ran = host.run(tool, folder, bundle, build, limit)
        return host_output.observe(ran, bundle, tuple(build.identity.sources)), build.identity
