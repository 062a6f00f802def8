"""`audit doctor`: what this machine can run, found by trying it."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
import msgspec

from audit import processes, scratch
from audit.cli import options
from audit.cli.exit_codes import PASS, USAGE
from audit.cli.terminal import echo, echo_json
from audit.compile import clang, nvrtc, toolkit
from audit.compile.host import build_host
from audit.errors import AuditError
from audit.project import find_project
from audit.records.sanitize import TOOLS, Tool
from audit.sanitize.device import compute_sanitizer
from audit.sanitize.host import tools as host


class Diagnosis(msgspec.Struct, frozen=True):
    """One thing that was tried."""

    name: str
    needed: bool  # without it `audit run` cannot work
    works: bool
    detail: str


@click.command(name="doctor")
@options.JSON
def command(as_json: bool) -> None:
    """Show what works here and what to install for the rest; exit 2 if `audit run` cannot work."""
    tools: list[Callable[[], Diagnosis]] = [partial(_host_tool, tool) for tool in TOOLS]
    probes = [_host_backend, _clang, *tools, _capture_extra, _cuda_compiler, _gpu, _compute_sanitizer, _left_overs]
    diagnoses = [probe() for probe in probes]
    if as_json:
        echo_json(diagnoses)
    else:
        for one in diagnoses:
            state = "ok" if one.works else "MISSING" if one.needed else "absent"
            echo(f"{state:8} {one.name}: {one.detail}")
    able = all(one.works for one in diagnoses if one.needed)
    raise click.exceptions.Exit(PASS if able else USAGE)


def _host_backend() -> Diagnosis:
    name = "host backend"
    with scratch.scratch_folder() as root:
        (root / "probe.cu").write_text('extern "C" __global__ void probe(int* x) { *x = threadIdx.x; }\n')
        try:
            build = build_host(root, root / "probe.cu", ["probe"], cache=root / "cache")
        except AuditError as error:
            return Diagnosis(name, True, False, str(error))
    return Diagnosis(name, True, True, f"built a kernel with {build.identity.compiler}")


def _clang() -> Diagnosis:
    name = "more CUDA C++ on this CPU"
    try:
        return Diagnosis(name, False, True, f"clang: {clang.require_clang().identity}")
    except AuditError as error:
        return Diagnosis(name, False, False, str(error))


def _host_tool(tool: Tool) -> Diagnosis:
    name = f"{tool} on this CPU"
    try:
        return Diagnosis(name, False, True, f"uses {host.host_tool_record(tool).by}")
    except AuditError as error:
        return Diagnosis(name, False, False, str(error))


def _compute_sanitizer() -> Diagnosis:
    name = "sanitizers on a GPU"
    try:
        found = compute_sanitizer.find_compute_sanitizer()
    except AuditError as error:
        return Diagnosis(name, False, False, str(error))
    return Diagnosis(name, False, True, f"compute-sanitizer {found.version} at {found.executable}")


def _capture_extra() -> Diagnosis:
    missing = [name for name in ("torch", "transformers", "gguf") if importlib.util.find_spec(name) is None]
    detail = (
        f"missing {', '.join(missing)}; install with: pip install 'kernel-audit[capture]'"
        if missing
        else "all packages are installed"
    )
    return Diagnosis("recording captures", False, not missing, detail)


def _cuda_compiler() -> Diagnosis:
    name = "compiling for a GPU"
    try:
        nvcc = toolkit.find_nvcc()
    except AuditError as error:
        return Diagnosis(name, False, False, str(error))
    if nvcc is not None:
        return Diagnosis(name, False, True, f"nvcc at {nvcc}")
    if nvrtc.is_installed():
        return Diagnosis(name, False, True, "NVRTC; a CUDA toolkit's nvcc would be preferred")
    return Diagnosis(name, False, False, "found neither nvcc nor NVRTC; install with: pip install 'kernel-audit[gpu]'")


def _gpu() -> Diagnosis:
    found = Path("/dev/nvidiactl").exists()
    return Diagnosis(
        "NVIDIA GPU",
        False,
        found,
        "has device nodes" if found else "not found: no /dev/nvidiactl; the host backend works without a GPU",
    )


def _left_overs() -> Diagnosis:
    """What killed runs left behind: programs, scratch folders, unfinished records."""
    programs = [f"process {number}" for number in processes.orphans()]
    folders = [f"{folder}" for folder in scratch.left_over()]
    partial = []
    with contextlib.suppress(AuditError):
        partial = [f"{folder}" for folder in sorted(find_project(Path()).runs.glob(".*.partial"))]
    remedies = []
    if programs:
        remedies.append(f"{', '.join(programs)} of an audit command that has ended: end with kill")
    if folders:
        remedies.append(
            f"{', '.join(folders)} of processes that have ended: the next run removes those of this container"
        )
    if partial:
        remedies.append(f"{', '.join(partial)} of runs that did not finish: remove them unless a run is in progress")
    return Diagnosis("no left-overs", False, not remedies, "; ".join(remedies) or "no killed run left anything behind")
