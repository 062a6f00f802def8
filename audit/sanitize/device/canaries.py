"""The planted faults that compute-sanitizer must find in every session, and the clean twins that it must pass.

They are the faults of `canaries.planted` that it can find; the gaps in `compute_sanitizer.record` state the others.
Each runs with the command line of the audited variants.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from audit.compile.cubin_build import CubinBuild
from audit.records.sanitize import Canary, Observation, Tool
from audit.sanitize.canaries import planted
from audit.sanitize.canaries.planted import FOLDER, CanaryKernel
from audit.sanitize.device import compute_sanitizer
from audit.sanitize.device.compute_sanitizer import Installation, Work
from audit.sanitize.verdict import canary as judged
from audit.scratch import scratch_folder

_AT_ONCE = 8
_KINDS: Mapping[str, str] = {
    "out_of_bounds_write": "out-of-bounds",
    "out_of_bounds_read": "out-of-bounds",
    "dynamic_out_of_bounds": "out-of-bounds",
    "misaligned_vector": "misaligned",
    "race_between_warps": "race",
    "race_inside_warp": "race",
    "race_over_iterations": "race",
    "divergent_barrier": "divergent-barrier",
    "uninitialised_global": "uninitialised",
    "uninitialised_shared": "uninitialised",
}


def visible_canaries(tool: Tool, installed: Installation) -> tuple[CanaryKernel, ...]:
    """The canaries that this release of the tool must find."""
    return tuple(
        canary
        for canary in planted.canaries_of(tool)
        if canary.name in _KINDS and (canary.name != "uninitialised_shared" or installed.sees_shared_initialisation)
    )


def source(tool: Tool) -> Path:
    """The file in FOLDER with a tool's canaries. Its cubin needs `entries` and line info."""
    return FOLDER / planted.canaries_of(tool)[0].source


def canary_entries(tool: Tool, installed: Installation) -> tuple[str, ...]:
    """The kernels that a cubin of `source` must contain."""
    return tuple(name for canary in visible_canaries(tool, installed) for name in (canary.name, canary.twin))


def check_canaries(tool: Tool, installed: Installation, built: CubinBuild, limit: float) -> tuple[Canary, ...]:
    """Run every canary of a tool and its twin, each in its own process, for at most `limit` seconds each."""
    kernels = visible_canaries(tool, installed)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        observed = pool.map(
            lambda each: _run(tool, installed, built, each[0], each[1], limit),
            [(canary, name) for canary in kernels for name in (canary.name, canary.twin)],
        )
        both = zip(observed, observed, strict=True)
        return tuple(
            judged(
                canary.name, tool, fault, twin, {_KINDS[canary.name]}, {(canary.source, line) for line in canary.lines}
            )
            for canary, (fault, twin) in zip(kernels, both, strict=True)
        )


def _run(
    tool: Tool, installed: Installation, built: CubinBuild, canary: CanaryKernel, entry: str, limit: float
) -> Observation:
    with scratch_folder() as folder:
        bundle = planted.write_canary(folder, canary, entry)
        return compute_sanitizer.run_tool(tool, installed, Work(folder, bundle, built), limit)
