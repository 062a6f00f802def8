"""The content of a cubin, read without a GPU: the resources that its kernels use, and its instructions.

ptxas (`--ptxas-options=-v`) reports registers, stack, static shared memory and spills. NVIDIA's cuobjdump adds local
memory, and nvdisasm the instructions. A figure that no tool reports is None. The compiler decided all of these; none is
measured, and none shows how well a launch uses a device.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from audit.compile.identity import CodeRecord, KernelRecord, sha256
from audit.compile.tensor_cores import is_tensor_core
from audit.errors import ToolMissing

_LIMIT = 120.0  # seconds
_PROPERTIES = re.compile(
    r"Function properties for (?P<symbol>\S+)\s*\n.*?(?P<stack>\d+) bytes stack frame, "
    r"(?P<spill_stores>\d+) bytes spill stores, (?P<spill_loads>\d+) bytes spill loads\s*\n"
    r"[^\n]*Used (?P<registers>\d+) registers(?P<used>[^\n]*)"
)
_STATIC_SHARED = re.compile(r"(\d+)(?:\+(\d+))? bytes smem")  # the second number is the system's own
_FUNCTION = re.compile(r"^ Function (?P<symbol>[^\s:]+):\s*\n.*?\bLOCAL:(?P<local>\d+)", re.MULTILINE)
# NVRTC puts a hash of path and process into file-local names; it differs between builds of the same code.
_FILE_LOCAL = re.compile(r"\d*_(INTERNAL|GLOBAL__N_)_[0-9a-f]{8}_\d+_\w+?_cu_[0-9a-f]{8}(?:_\d+)?")
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?(?P<opcode>[A-Z][\w.]*)", re.MULTILINE)


def describe_cubin(cubin: bytes, symbols: Mapping[str, str], log: str) -> CodeRecord:
    """The record of a cubin. `symbols` maps its kernels' entries to names inside it; `log` is the output of ptxas."""
    properties = {match["symbol"]: match for match in _PROPERTIES.finditer(log)}
    local = _local_bytes(cubin)
    kernels = []
    for entry, symbol in symbols.items():
        match = properties.get(symbol)
        if match is None:
            kernels.append(KernelRecord(entry, symbol, local=local.get(symbol)))
            continue
        shared = _STATIC_SHARED.search(match["used"])
        kernels.append(
            KernelRecord(
                entry,
                symbol,
                registers=int(match["registers"]),
                static_shared=int(shared[1]) if shared else 0,  # ptxas omits zeros
                stack=int(match["stack"]),
                local=local.get(symbol),
                spill_stores=int(match["spill_stores"]),
                spill_loads=int(match["spill_loads"]),
            )
        )
    try:
        program, text = _disassembled(cubin)
    except ToolMissing:
        return CodeRecord(tuple(kernels))
    tensor_core = tuple(sorted(opcode for opcode in opcodes(text) if is_tensor_core(opcode)))
    return CodeRecord(tuple(kernels), _version(program), sha256(text.encode()), tensor_core)


def opcodes(disassembly: str) -> set[str]:
    """Every instruction that occurs, with its modifiers: FFMA, LDG.E.U8."""
    return {match["opcode"] for match in _INSTRUCTION.finditer(disassembly)}


def disassembly(cubin: bytes) -> str:
    """The machine code of all kernels as nvdisasm prints it: equal for every build of the same sources and tools.

    Raises ToolMissing if no disassembler can read the cubin.
    """
    return _disassembled(cubin)[1]


def _disassembled(cubin: bytes) -> tuple[str, str]:
    program, text = _dump("nvdisasm", ["--print-code"], cubin)
    return program, _FILE_LOCAL.sub(r"_\1", text)


def _local_bytes(cubin: bytes) -> dict[str, int]:
    try:
        _, text = _dump("cuobjdump", ["--dump-resource-usage"], cubin)
    except ToolMissing:
        return {}
    return {match["symbol"]: int(match["local"]) for match in _FUNCTION.finditer(text)}


def _dump(name: str, options: Sequence[str], cubin: bytes) -> tuple[str, str]:
    """The first program of that name that can read the cubin, and its output. An old program cannot read new code."""
    problem = ""
    with tempfile.NamedTemporaryFile(prefix="kernel-audit-", suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        for program in _programs(name):
            command = [program, *options, file.name]
            try:
                result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_LIMIT)
            except (OSError, subprocess.TimeoutExpired) as error:
                problem = f"{program} cannot be run: {error}"
                continue
            if result.returncode == 0:
                return program, result.stdout
            problem = f"{program} cannot read the cubin (exit {result.returncode}): {result.stderr.strip()[:300]}"
    raise ToolMissing(
        problem or f"no {name} found: `pip install nvidia-cuda-{name}`, or put a CUDA toolkit's bin on PATH"
    )


def _programs(name: str) -> Iterator[str]:
    """The programs of that name on PATH, beside nvcc, in a toolkit, in the package nvidia-cuda-NAME and in Triton's."""
    on_path = [Path(program) for tool in (name, "nvcc") if (program := shutil.which(tool))]
    homes = [Path(home) for variable in ("CUDA_HOME", "CUDA_PATH") if (home := os.environ.get(variable))]
    homes += [Path("/usr/local/cuda"), *sorted(Path("/usr/local").glob("cuda-*"), reverse=True)]
    homes += [home for folder in _package("nvidia") for home in sorted(folder.glob("cu*"), reverse=True)]
    homes += [folder / "backends/nvidia" for folder in _package("triton")]
    folders = [program.parent for program in on_path] + [program.resolve().parent for program in on_path]
    folders += [home / "bin" for home in homes]
    for candidate in dict.fromkeys(folder / name for folder in folders):
        if candidate.is_file() and os.access(candidate, os.X_OK):
            yield str(candidate)


def _package(name: str) -> list[Path]:
    spec = importlib.util.find_spec(name)
    return [Path(folder) for folder in (spec.submodule_search_locations or [])] if spec else []


@cache
def _version(program: str) -> str:
    result = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=_LIMIT)
    match = re.search(r"\bV\d[\d.]*\d", result.stdout)
    return f"{Path(program).name} {match[0] if match else 'of unknown version'}"
