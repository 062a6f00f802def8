"""Compiled GPU code as a variant: a cubin, the image of a fatbin for the GPU at hand, or PTX, which is assembled."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from audit import foreign, processes
from audit.compile import compiler
from audit.compile import cubin as contents
from audit.compile.cubin_build import CubinBuild
from audit.compile.elf import CUDA_MACHINE, is_elf, read_elf
from audit.compile.identity import BuildIdentity, build_key, fnv1a64, sha256
from audit.compile.machine_code import cubin_digests
from audit.compile.symbols import UnknownKernel, find_kernel
from audit.compile.toolkit import tools
from audit.errors import CompileError, ProjectError, ToolMissing
from audit.foreign import ForeignError
from audit.scratch import scratch_folder
from audit.spec import Machine

_MOST = 2**30  # bytes
_FATBIN = b"\x50\xed\x55\xba"
_IMAGE = re.compile(r"^ELF file\s+\d+: (?P<name>\S*?(?P<arch>sm_\d+[af]?)\S*\.cubin)\s*$", re.MULTILINE)
_PTX_IMAGE = re.compile(r"^PTX file\s+\d+: (?P<name>\S*?(?P<arch>sm_\d+[af]?)\S*\.ptx)\s*$", re.MULTILINE)
_INSTALL = "put a CUDA toolkit's bin on PATH"


def load_machine(root: Path, code: Machine, entries: Sequence[str], arch: str) -> CubinBuild:
    """The code of a file in the project, with the kernels `entries`, for a GPU of architecture `arch`.

    Raises ProjectError if the file or a kernel is not there or the code is for other GPUs, CompileError for PTX that
    cannot be assembled, ToolMissing without a program that reads a fatbin or assembles PTX.
    """
    path = (root / code.path).resolve()
    if not path.is_relative_to(root.resolve()):
        raise ProjectError(f"Machine({code.path!r}): expected a file inside the project, but got {path}")
    try:
        content = foreign.read(path, _MOST)
    except ForeignError as error:
        raise ProjectError(f"Machine({code.path!r}): {error}") from None
    cubin, maker, log = _cubin(code.path, content, arch)
    file = read_elf(cubin)
    symbols = {entry: kernel_of(code, entry, file.kernels) for entry in entries}
    code_arch = cubin_arch(cubin) or arch
    parts = {"backend": "cuda", "file": sha256(content), "entries": symbols, "arch": code_arch, "maker": maker}
    identity = BuildIdentity(
        backend="cuda",
        arch=code_arch,
        key=build_key(parts),
        source=code.path,
        sources={code.path: sha256(content)},
        entries=tuple(entries),
        compiler=maker,
        flags=(),
        binary_sha256=sha256(cubin),
        binary_fnv=fnv1a64(cubin),
        code=contents.describe_cubin(cubin, symbols, log),
        machine_code=cubin_digests(cubin, symbols),
    )
    return CubinBuild(cubin, symbols, identity)


def cubin_arch(cubin: bytes) -> str:
    """The architecture of a cubin: sm_90; empty if its header does not say."""
    flags, version = read_elf(cubin).flags, cubin[8]
    number = flags >> 8 & 0xFF if version >= 8 else flags & 0xFF  # bits moved with ABI version 8
    return f"sm_{number}" if 50 <= number < 200 else ""


def is_ptx(content: bytes) -> bool:
    """Whether a file is PTX, by its first directive."""
    return re.search(rb"^\s*\.version\s+\d", content[:65536], re.MULTILINE) is not None


def kernel_of(code: Machine, entry: str, kernels: Sequence[str]) -> str:
    """The kernel of a file that an entry of a launch means. Raises ProjectError for a kernel that is not there."""
    wanted = code.entry.get(entry, entry) if isinstance(code.entry, dict) else code.entry or entry
    try:
        return find_kernel(wanted, kernels)
    except UnknownKernel as error:
        raise ProjectError(f"Machine({code.path!r}): {error}; correct the launches or Machine.entry") from None


def _cubin(name: str, content: bytes, arch: str) -> tuple[bytes, str, str]:
    """The cubin of a file, what made it, and what its maker reports of the kernels."""
    if is_elf(content):
        try:
            machine = read_elf(content).machine
        except ValueError as error:
            raise ProjectError(f"Machine({name!r}): {error}") from None
        if machine == CUDA_MACHINE:
            return content, "a cubin of the project", ""
        return _image(name, content, arch)  # an object or a library, with a fatbin inside
    if content[:4] == _FATBIN:
        return _image(name, content, arch)
    if is_ptx(content):
        return _assembled(name, content, arch)
    raise ProjectError(f"Machine({name!r}): expected a cubin, a fatbin or PTX, but the file is none of them")


def _image(name: str, content: bytes, arch: str) -> tuple[bytes, str, str]:
    """The image of a fatbin that a GPU of this architecture runs: the newest cubin that fits, else PTX."""
    program = next(tools("cuobjdump"), None)
    if program is None:
        raise ToolMissing(
            f"Machine({name!r}): reading a fatbin needs cuobjdump: `pip install nvidia-cuda-cuobjdump`, or {_INSTALL}"
        )
    with scratch_folder() as folder:
        (folder / "code.fatbin").write_bytes(content)
        images = {match["name"]: match["arch"] for match in _IMAGE.finditer(_run(program, "-lelf", folder))}
        fitting = sorted((image for image in images if _runs(images[image], arch)), key=lambda one: images[one])
        if fitting:
            _run(program, "-xelf", folder, fitting[-1])
            maker = f"the {images[fitting[-1]]} image of a fatbin of the project"
            return (folder / fitting[-1]).read_bytes(), maker, ""
        ptx = {match["name"]: match["arch"] for match in _PTX_IMAGE.finditer(_run(program, "-lptx", folder))}
        older = sorted((image for image in ptx if _number(ptx[image]) <= _number(arch)), key=lambda one: ptx[one])
        if older:
            _run(program, "-xptx", folder, older[-1])
            return _assembled(name, (folder / older[-1]).read_bytes(), arch)
    present = ", ".join([*images.values(), *(f"PTX for {each}" for each in ptx.values())]) or "no GPU code"
    raise ProjectError(f"Machine({name!r}): expected code that {arch} runs, but the file has {present}")


def _run(program: Path, option: str, folder: Path, image: str = "") -> str:
    command = [str(program), option, *([image] if image else []), "code.fatbin"]
    done = processes.run_process(command, compiler.TIME_LIMIT, cwd=folder)
    return done.output.decode(errors="replace")


def _runs(code: str, device: str) -> bool:
    """A cubin runs on devices of its major version, from its minor version on; with the suffix `a` only on its own."""
    code_number, number = _number(code), _number(device)
    if code.endswith("a"):
        return code_number == number
    return code_number // 10 == number // 10 and code_number <= number


def _number(arch: str) -> int:
    return int(re.sub(r"\D", "", arch) or 0)


def _assembled(name: str, ptx: bytes, arch: str) -> tuple[bytes, str, str]:
    """PTX as a cubin, by ptxas."""
    program = next(tools("ptxas"), None)
    if program is None:
        raise ToolMissing(
            f"Machine({name!r}): assembling PTX needs ptxas: `pip install nvidia-cuda-nvcc`, or {_INSTALL}"
        )
    target = re.search(rb"^\s*\.target\s+(sm_\d+)([af]?)", ptx, re.MULTILINE)
    suffix = target[2].decode() if target and target[1].decode() == arch else ""
    with scratch_folder() as folder:
        (folder / "code.ptx").write_bytes(ptx.rstrip(b"\0"))
        command = [str(program), f"-arch={arch}{suffix}", "-v", "-o", "code.cubin", "code.ptx"]
        done = processes.run_process(command, compiler.TIME_LIMIT, cwd=folder, env={**os.environ, "LC_ALL": "C"})
        errors = done.errors.decode(errors="replace")
        compiler.require_compiler_end("ptxas", done.code, errors)
        if done.code != 0:
            lines = [line for line in errors.replace("code.ptx", name).splitlines() if line.strip()][:20]
            raise CompileError("\n".join(dict.fromkeys(lines)) or f"{name}: ptxas ended with {done.code}")
        version = processes.run_process([str(program), "--version"], compiler.TIME_LIMIT).output
        release = (version.decode(errors="replace").strip().splitlines() or ["of unknown version"])[-1]
        return (folder / "code.cubin").read_bytes(), f"ptxas {release}", errors
