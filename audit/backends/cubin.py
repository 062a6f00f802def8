"""What a cubin says about itself, read without a GPU: resources of its kernels, its instructions."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from audit.build.cuda import CubinBuild
from audit.errors import ToolMissing

_LIMIT = 120.0  # seconds
_FUNCTION = re.compile(r"^ Function (?P<symbol>[^\s:]+):\s*\n\s*(?P<values>REG:.*)$", re.MULTILINE)
_VALUE = re.compile(r"\b(REG|STACK|SHARED|LOCAL):(\d+)")
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?(?P<opcode>[A-Z][\w.]*)", re.MULTILINE)


class KernelResources(msgspec.Struct, frozen=True):
    """What one kernel takes. A thread's spilled registers lie in its stack frame, beside arrays that it indexes."""

    entry: str
    registers: int  # of a thread
    shared_bytes: int  # static, of a block; on sm_90 and later with the 1,024 bytes that the system keeps
    stack_bytes: int  # of a thread, in local memory
    local_bytes: int  # of a thread, beside the stack


def resources(build: CubinBuild) -> list[KernelResources]:
    """One for every entry, in their order. Raises ToolMissing without cuobjdump."""
    text = _dump("cuobjdump", ["--dump-resource-usage"], build.cubin)
    found = {match["symbol"]: dict(_VALUE.findall(match["values"])) for match in _FUNCTION.finditer(text)}
    if missing := [entry for entry, symbol in build.symbols.items() if symbol not in found]:
        raise ToolMissing(f"cuobjdump names no resources of {', '.join(missing)}; it may be too old for this cubin")
    return [
        KernelResources(
            entry,
            *(int(found[build.symbols[entry]][word]) for word in ("REG", "SHARED", "STACK", "LOCAL")),
        )
        for entry in build.identity.entries
    ]


def disassembly(build: CubinBuild) -> str:
    """The machine code of all kernels as nvdisasm writes it. Raises ToolMissing without nvdisasm."""
    return _dump("nvdisasm", ["--print-code"], build.cubin)


def opcodes(build: CubinBuild) -> set[str]:
    """Every instruction that occurs, with its modifiers: FFMA, LDG.E.U8."""
    return {match["opcode"] for match in _INSTRUCTION.finditer(disassembly(build))}


def tensor_core_opcodes(build: CubinBuild) -> set[str]:
    """The tensor-core instructions that occur, HMMA.16816.F32 and the like: they decide which model holds."""
    return {opcode for opcode in opcodes(build) if opcode.partition(".")[0].endswith("MMA")}


def _dump(name: str, options: Sequence[str], cubin: bytes) -> str:
    program = _tool(name)
    with tempfile.NamedTemporaryFile(prefix="kernel-audit-", suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run(
            [program, *options, file.name], capture_output=True, text=True, check=False, timeout=_LIMIT
        )
    if done.returncode != 0:
        raise ToolMissing(f"{program} cannot read the cubin (exit {done.returncode}): {done.stderr.strip()[:300]}")
    return done.stdout


def _tool(name: str) -> str:
    """From PATH, else from the package nvidia-cuda-NAME."""
    if found := shutil.which(name):
        return found
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for program in sorted(Path(folder).glob(f"*/bin/{name}"), reverse=True):
            return str(program)
    raise ToolMissing(f"{name} is not here: `pip install nvidia-cuda-{name}`, or put a CUDA toolkit's bin on PATH")
