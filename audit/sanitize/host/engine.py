"""The engine of the host sanitizers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from audit.backends import child
from audit.bundle import Bundle
from audit.compile.host import HostBuild, build_host
from audit.compile.identity import BuildIdentity
from audit.compile.ptx_build import build_ptx
from audit.compile.source_words import nvcc_words
from audit.errors import PlanError
from audit.records.sanitize import Canary, Observation, Tool, ToolRecord
from audit.sanitize.canaries import planted
from audit.sanitize.canaries.planted import CanaryKernel
from audit.sanitize.host import output as host_output
from audit.sanitize.host import tools as host
from audit.sanitize.verdict import canary as judged
from audit.scratch import scratch_folder
from audit.spec import Binary, Machine, Variant


class HostEngine:
    """ThreadSanitizer, AddressSanitizer with UBSan, the barrier accounting and valgrind, over the source on this CPU.

    `arch` is the architecture of the modelled tensor cores.
    """

    together = False

    def __init__(self, arch: str, canary_limit: float) -> None:
        self._arch, self._canary_limit = arch, canary_limit

    def record(self, tool: Tool) -> ToolRecord:
        """The tool's version, options and gaps. Raises ToolMissing if it is not installed."""
        return host.host_tool_record(tool)

    def canaries(self, tool: Tool) -> tuple[Canary, ...]:
        """Run the tool's canaries and their twins."""
        build = host.build_canaries(tool, self._arch)
        canaries = []
        for canary in planted.canaries_of(tool):
            fault, twin = (self._canary(tool, canary, entry, build) for entry in (canary.name, canary.twin))
            lines = {(canary.source, line) for line in canary.lines}
            canaries.append(judged(canary.name, tool, fault, twin, {canary.kind}, lines))
        return tuple(canaries)

    def observe(
        self, tool: Tool, root: Path, variant: Variant, bundles: Sequence[tuple[Path, Bundle]], limit: float
    ) -> list[tuple[Observation, BuildIdentity]]:
        """Run each bundle under the tool, in its own process."""
        return [self._observe(tool, root, variant, folder, bundle, limit) for folder, bundle in bundles]

    def describe_device(self) -> str | None:
        """None: there is no GPU."""
        return None

    def abort(self) -> None:
        """Kill every running program."""
        child.abort()

    def _canary(self, tool: Tool, canary: CanaryKernel, entry: str, build: HostBuild) -> Observation:
        with scratch_folder() as folder:
            bundle = planted.write_canary(folder, canary, entry)
            result = host.run_host_tool(tool, folder, bundle, build, self._canary_limit)
            return host_output.observe_host_run(result, bundle, tuple(build.identity.sources))

    def _observe(
        self, tool: Tool, root: Path, variant: Variant, folder: Path, bundle: Bundle, limit: float
    ) -> tuple[Observation, BuildIdentity]:
        code = variant.code
        if isinstance(code, Binary):
            raise PlanError(
                f"variant {variant.name}: a frozen program has no source to build for a sanitizer; "
                "select other variants with --variant"
            )
        if isinstance(code, Machine):
            build = build_ptx(root, code, bundle.entries, arch=self._arch, sanitizer=host.BUILT_FOR[tool])
            result = host.run_host_tool(tool, folder, bundle, build, limit)
            return host_output.observe_host_run(result, bundle, tuple(build.identity.sources)), build.identity
        build = build_host(
            root,
            root / code.path,
            bundle.entries,
            arch=self._arch,
            defines=code.defines,
            words=nvcc_words(code),
            also=code.also,
            constants=bundle.constants,
            sanitizer=host.BUILT_FOR[tool],
        )
        result = host.run_host_tool(tool, folder, bundle, build, limit)
        return host_output.observe_host_run(result, bundle, tuple(build.identity.sources)), build.identity
