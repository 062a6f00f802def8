"""The machine of a run, as far as numbers may depend on it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

import msgspec

from audit.git import git


class MachineRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The machine of a run."""

    system: str
    processor: str
    cores: int
    python: str
    packages: dict[str, str]
    device: str | None = None  # the GPU, if kernels ran on one


def describe_machine(device: str | None = None) -> MachineRecord:
    """This machine and the GPU that kernels ran on."""
    return MachineRecord(
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        processor=_processor(),
        cores=os.cpu_count() or 1,
        python=platform.python_version(),
        packages={name: version(name) for name in ("numpy", "torch", "msgspec")},
        device=device,
    )


def commit(root: Path) -> str | None:
    """The project's git commit, with `+changes` if the working tree differs; None outside git."""
    try:
        head = _git(root, "rev-parse", "HEAD")
        changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return head + ("+changes" if changed else "")


def _git(root: Path, *words: str) -> str:
    done = git(root, *words)
    done.check_returncode()
    return done.stdout.decode(errors="replace").strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def version(name: str) -> str:
    """The version of an installed distribution, or `absent`."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "absent"
