"""CUDA's compilers and headers on this machine: the user's toolkit first, then the packages of `kernel-audit[gpu]`."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from audit.errors import ToolMissing

CHOICE = "KERNEL_AUDIT_NVCC"
"""The variable that names nvcc; `none` chooses NVRTC."""
PACKAGES = "cuda-bindings nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cccl"


def find_nvcc() -> Path | None:
    """The nvcc that $KERNEL_AUDIT_NVCC names, else that of a toolkit with a host compiler; None leaves it to NVRTC.

    Raises ToolMissing if the variable names no program.
    """
    chosen = os.environ.get(CHOICE, "").strip()
    if chosen == "none":
        return None
    if chosen:
        found = shutil.which(chosen)
        if found is None:
            raise ToolMissing(f"{CHOICE}={chosen}: no such program; name an nvcc, or `none` for NVRTC")
        return Path(found)
    if not (os.environ.get("NVCC_CCBIN") or shutil.which("g++")):  # nvcc preprocesses by it
        return None
    return next(tools("nvcc"), None)


def tools(name: str) -> Iterator[Path]:
    """The programs of that name: in $CUDA_HOME, on PATH, beside nvcc, in a toolkit, and in NVIDIA's and Triton's
    packages."""
    on_path = [Path(program) for tool in (name, "nvcc") if (program := shutil.which(tool))]
    folders = [home / "bin" for home in _chosen_homes()]
    folders += [program.parent for program in on_path] + [program.resolve().parent for program in on_path]
    folders += [home / "bin" for home in _installed_homes()]
    folders += [home / "bin" for folder in package_folders("nvidia") for home in _newest(folder, "cu*")]
    folders += [folder / "backends/nvidia/bin" for folder in package_folders("triton")]
    for candidate in dict.fromkeys(folder / name for folder in folders):
        if candidate.is_file() and os.access(candidate, os.X_OK):
            yield candidate


def cuda_headers() -> Path:
    """The folder of cuda_runtime.h: of the packages, else of an installed toolkit. Raises ToolMissing without any."""
    packaged = [include for folder in package_folders("nvidia") for include in _newest(folder, "*/include")]
    for include in (*packaged, *(home / "include" for home in (*_chosen_homes(), *_installed_homes()))):
        if (include / "cuda_fp16.h").is_file() and (include / "crt" / "mma.h").is_file():
            return include
    raise ToolMissing(f"NVRTC is here, but CUDA's headers are not: `pip install {PACKAGES}`, or set CUDA_HOME")


def headers_version(include: Path) -> str:
    """The CUDA version of a folder of headers, as cuda.h writes it: 13000."""
    text = (include / "cuda.h").read_text(errors="replace") if (include / "cuda.h").is_file() else ""
    found = re.search(r"#define\s+CUDA_VERSION\s+(\d+)", text)
    return found.group(1) if found else "unknown"


def package_headers() -> tuple[Path, ...]:
    """The folders of headers that installed packages bring: NVIDIA's libraries, CCCL and torch."""
    folders = [include for folder in package_folders("nvidia") for include in _newest(folder, "*/include")]
    folders += [include / "cccl" for include in folders]
    for folder in package_folders("torch"):
        folders += [folder / "include", folder / "include/torch/csrc/api/include"]
    return tuple(folder for folder in folders if folder.is_dir())


def package_folders(name: str) -> list[Path]:
    """The folders of an installed Python package, found without importing it."""
    try:
        spec = importlib.util.find_spec(name)
    except ValueError:  # a module that was put together by hand has no spec
        return []
    return [Path(folder) for folder in (spec.submodule_search_locations or [])] if spec else []


def _chosen_homes() -> list[Path]:
    return [Path(home) for variable in ("CUDA_HOME", "CUDA_PATH") if (home := os.environ.get(variable))]


def _installed_homes() -> list[Path]:
    return [Path("/usr/local/cuda"), *_newest(Path("/usr/local"), "cuda-*")]


def _newest(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.glob(pattern), key=lambda path: [int(n) for n in re.findall(r"\d+", str(path))], reverse=True)
