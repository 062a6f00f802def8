"""What a cubin says about itself, read without a GPU: what its kernels take, and the instructions in it.

Registers, stack, static shared memory and spills are the words of ptxas (`--ptxas-options=-v`); NVIDIA's cuobjdump adds
local memory, and nvdisasm the instructions. What no tool says is None. All of it is what the compiler decided:
nothing here was measured, and nothing says how well a launch uses a device.
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
# NVRTC names what is local to a file after a hash of its path and its own process: no part of what the code does.
_FILE_LOCAL = re.compile(r"\d*_(INTERNAL|GLOBAL__N_)_[0-9a-f]{8}_\d+_\w+?_cu_[0-9a-f]{8}_\d+")
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?(?P<opcode>[A-Z][\w.]*)", re.MULTILINE)


def describe(cubin: bytes, symbols: Mapping[str, str], log: str) -> CodeRecord:
    """The record of a cubin with the kernels `symbols` (entry -> name inside it), `log` being what ptxas said."""
    said = {match["symbol"]: match for match in _PROPERTIES.finditer(log)}
    local = _local_bytes(cubin)
    kernels = []
    for entry, symbol in symbols.items():
        found = said.get(symbol)
        if found is None:
            kernels.append(KernelRecord(entry, symbol, local=local.get(symbol)))
            continue
        shared = _STATIC_SHARED.search(found["used"])
        kernels.append(
            KernelRecord(
                entry,
                symbol,
                registers=int(found["registers"]),
                static_shared=int(shared[1]) if shared else 0,  # ptxas leaves out what is zero
                stack=int(found["stack"]),
                local=local.get(symbol),
                spill_stores=int(found["spill_stores"]),
                spill_loads=int(found["spill_loads"]),
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
    """The machine code of all kernels as nvdisasm writes it, the same for every build of the same sources and tools.

    Raises ToolMissing without a disassembler that reads the cubin.
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
    """The first such program that reads the cubin, and what it prints: an old one does not know new code."""
    said = ""
    with tempfile.NamedTemporaryFile(prefix="kernel-audit-", suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        for program in _programs(name):
            command = [program, *options, file.name]
            try:
                done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_LIMIT)
            except (OSError, subprocess.TimeoutExpired) as error:
                said = f"{program} cannot be run: {error}"
                continue
            if done.returncode == 0:
                return program, done.stdout
            said = f"{program} cannot read the cubin (exit {done.returncode}): {done.stderr.strip()[:300]}"
    raise ToolMissing(
        said or f"{name} is not here: `pip install nvidia-cuda-{name}`, or put a CUDA toolkit's bin on PATH"
    )


def _programs(name: str) -> Iterator[str]:
    """Those on PATH, beside nvcc, in a toolkit, in the package nvidia-cuda-NAME, and in Triton's."""
    found = [Path(program) for tool in (name, "nvcc") if (program := shutil.which(tool))]
    homes = [Path(home) for variable in ("CUDA_HOME", "CUDA_PATH") if (home := os.environ.get(variable))]
    homes += [Path("/usr/local/cuda"), *sorted(Path("/usr/local").glob("cuda-*"), reverse=True)]
    homes += [home for folder in _package("nvidia") for home in sorted(folder.glob("cu*"), reverse=True)]
    homes += [folder / "backends/nvidia" for folder in _package("triton")]
    places = [program.parent for program in found] + [program.resolve().parent for program in found]
    places += [home / "bin" for home in homes]
    for candidate in dict.fromkeys(folder / name for folder in places):
        if candidate.is_file() and os.access(candidate, os.X_OK):
            yield str(candidate)


def _package(name: str) -> list[Path]:
    spec = importlib.util.find_spec(name)
    return [Path(place) for place in (spec.submodule_search_locations or [])] if spec else []


@cache
def _version(program: str) -> str:
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=_LIMIT)
    found = re.search(r"\bV\d[\d.]*\d", done.stdout)
    return f"{Path(program).name} {found[0] if found else 'of unknown version'}"
