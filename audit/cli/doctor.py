"""`audit doctor`: what this machine can run, found out by trying it."""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
import msgspec

from audit.cli.main import PASS, USAGE
from audit.compile.host import build_host
from audit.errors import AuditError
from audit.records.sanitize import TOOLS, Tool
from audit.sanitize.device import compute_sanitizer
from audit.sanitize.host import tools as host


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at."""

    name: str
    needed: bool  # without it `audit run` cannot work
    works: bool
    detail: str


@click.command(name="doctor")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
def command(as_json: bool) -> None:
    """Say what works here and what to install for the rest; exit 2 if `audit run` cannot work."""
    tools: list[Callable[[], Finding]] = [partial(_host_tool, tool) for tool in TOOLS]
    looks = [_host_backend, *tools, _capture_extra, _cuda_compiler, _gpu, _compute_sanitizer]
    findings = [look() for look in looks]
    if as_json:
        click.echo(msgspec.json.encode(findings).decode())
    else:
        for finding in findings:
            state = "ok" if finding.works else "MISSING" if finding.needed else "absent"
            click.echo(f"{state:8} {finding.name}: {finding.detail}")
    able = all(finding.works for finding in findings if finding.needed)
    raise click.exceptions.Exit(PASS if able else USAGE)


def _host_backend() -> Finding:
    name = "host backend"
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        (root / "probe.cu").write_text('extern "C" __global__ void probe(int* x) { *x = threadIdx.x; }\n')
        try:
            build = build_host(root, root / "probe.cu", ["probe"], cache=root / "cache")
        except AuditError as error:
            return Finding(name, True, False, str(error))
    return Finding(name, True, True, f"built a kernel with {build.identity.compiler}")


def _host_tool(tool: Tool) -> Finding:
    name = f"{tool} on this CPU"
    try:
        return Finding(name, False, True, f"by {host.record(tool).by}")
    except AuditError as error:
        return Finding(name, False, False, str(error))


def _compute_sanitizer() -> Finding:
    name = "sanitizers on a GPU"
    try:
        found = compute_sanitizer.find()
    except AuditError as error:
        return Finding(name, False, False, str(error))
    return Finding(name, False, True, f"compute-sanitizer {found.version} at {found.executable}")


def _capture_extra() -> Finding:
    missing = [name for name in ("torch", "transformers", "gguf") if importlib.util.find_spec(name) is None]
    detail = f"lacks {', '.join(missing)}; pip install 'kernel-audit[capture]'" if missing else "all packages are there"
    return Finding("recording captures", False, not missing, detail)


def _cuda_compiler() -> Finding:
    nvrtc = _spec("cuda.core") is not None
    nvcc = shutil.which("nvcc")
    found = [what for what, there in (("NVRTC through cuda.core", nvrtc), (f"nvcc at {nvcc}", nvcc)) if there]
    detail = " and ".join(found) or "neither cuda.core nor nvcc; pip install 'kernel-audit[gpu]'"
    return Finding("compiling for a GPU", False, bool(found), detail)


def _gpu() -> Finding:
    there = Path("/dev/nvidiactl").exists()
    return Finding(
        "NVIDIA GPU", False, there, "device nodes are there" if there else "none; the host backend needs none"
    )


def _spec(name: str) -> object | None:
    look: Callable[[str], object | None] = importlib.util.find_spec
    try:
        return look(name)
    except ModuleNotFoundError:
        return None
