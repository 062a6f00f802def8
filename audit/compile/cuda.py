"""Compiles a CUDA source to a cubin: with the user's nvcc where there is one, else with NVRTC. Needs no GPU.

The code is what ships: nvcc's own defaults hold, and what the variant's `Source` declares. An operator that promises a
GPU the bytes of a CPU declares `-fmad=false`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from audit import processes
from audit.compile import compiler, nvrtc, toolkit
from audit.compile import cubin as contents
from audit.compile.cubin_build import CubinBuild
from audit.compile.device_order import Compiled, DeviceOrder, Refusal, include_folders
from audit.compile.device_sources import device_sources
from audit.compile.identity import BuildIdentity, build_key, checked_entries, fnv1a64, sha256, sha256_of_file
from audit.compile.machine_code import cubin_digests
from audit.compile.nvcc import compile_by_nvcc
from audit.compile.source_words import has_fast_math, is_contracted
from audit.compile.sources import PORTABLE
from audit.compile.unset_constants import unset_constants
from audit.errors import CompileError, MachineError, PlanError, ToolMissing
from audit.scratch import scratch_folder


def compile_cubin(
    root: Path,
    source: Path,
    entries: Sequence[str],
    *,
    arch: str = "sm_90",
    defines: Mapping[str, str] = {},
    flags: Sequence[str] = (),
    also: Sequence[str] = (),
    line_info: bool = False,
) -> CubinBuild:
    """Compile `source` (a path, absolute or relative to `root`) with the kernels `entries` for one architecture.

    `flags` are words for nvcc, `also` further sources of the unit.
    `line_info` lets a sanitizer name lines of the source; it changes no instruction. The
    compiler reads a copy of the bytes that the identity records. Raises ProjectError or CompileError for the source,
    ToolMissing if there is neither nvcc nor NVRTC.
    """
    entries = checked_entries(entries)
    if not re.fullmatch(r"sm_\d{2,3}[af]?", arch):
        raise PlanError(f"--arch: expected a real architecture such as sm_90, but got {arch!r}")
    files = device_sources(root, source, include_folders(flags), also)
    first = next(iter(files))
    order = DeviceOrder(first, entries, arch, dict(defines), tuple(flags), line_info, tuple(files), tuple(also))
    with scratch_folder() as tree:
        for file, content in files.items():
            (tree / file).parent.mkdir(parents=True, exist_ok=True)
            (tree / file).write_bytes(content)
        nvcc = toolkit.find_nvcc()
        compiled = compile_by_nvcc(nvcc, tree, order) if nvcc else _by_nvrtc(tree, order)
    symbols = {entry: compiled.symbols.get(entry, "") for entry in entries}
    hashes = {file: sha256(content) for file, content in files.items()}
    parts = {
        "backend": "cuda",
        "arch": order.code_arch,
        "compiler": compiled.compiler,
        "flags": compiled.flags,
        "entries": entries,
        "sources": hashes,
        "stubs": compiled.stubs,
        "host_code": compiled.host_code,
        "read": {file: sha256_of_file(Path(file)) for file in compiled.read},
        "portable": {path.name: sha256(path.read_bytes()) for path in PORTABLE.iterdir()},
    }
    identity = BuildIdentity(
        backend="cuda",
        arch=order.code_arch,
        key=build_key(parts),
        source=first,
        sources=hashes,
        entries=entries,
        compiler=compiled.compiler,
        flags=compiled.flags,
        binary_sha256=sha256(compiled.cubin),
        binary_fnv=fnv1a64(compiled.cubin),
        code=contents.describe_cubin(compiled.cubin, symbols, compiled.log),
        stubs=compiled.stubs,
        host_code=compiled.host_code,
        machine_code=cubin_digests(compiled.cubin, symbols),
        contracted=is_contracted(flags),
        fast_math=has_fast_math(flags),
        unset_constants=unset_constants(content.decode(errors="replace") for content in files.values()),
    )
    return CubinBuild(compiled.cubin, symbols, identity)


def _by_nvrtc(tree: Path, order: DeviceOrder) -> Compiled:
    """NVRTC in a process of its own, which can be stopped, and whose end is not this one's."""
    if not nvrtc.is_installed():
        raise ToolMissing(
            f"a cubin needs nvcc or NVRTC: put a CUDA toolkit's nvcc on PATH, or `pip install {toolkit.PACKAGES}`"
        )
    (tree / nvrtc.ORDER).write_bytes(msgspec.json.encode(order))
    command = [sys.executable, "-P", "-m", nvrtc.__name__, str(tree)]
    environment = nvrtc.without_driver(processes.package_environment())
    done = processes.run_process(command, compiler.TIME_LIMIT, env=environment)
    printed = done.errors.decode(errors="replace").strip()
    compiler.require_compiler_end("NVRTC", done.code, printed)
    if done.code != 0:
        raise MachineError(f"NVRTC failed: {(printed.splitlines() or ['it printed nothing'])[-1]}; nothing was judged")
    result = msgspec.msgpack.decode((tree / nvrtc.RESULT).read_bytes(), type=Compiled | Refusal)
    if isinstance(result, Compiled):
        return result
    raise CompileError(result.message) if result.by_source else ToolMissing(result.message)
