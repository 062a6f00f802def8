"""What a cubin says of itself: as NVIDIA's tools say it where they are, and from their recorded words."""

from __future__ import annotations

from pathlib import Path

import pytest

from audit.backends import cubin
from audit.backends.cubin import KernelResources
from audit.build.cuda import CubinBuild, compile_cubin
from audit.build.identity import BuildIdentity
from audit.errors import ToolMissing

ROOT = Path(__file__).parents[2]

USAGE = """
Resource usage:
 Common:
  GLOBAL:40 CONSTANT[4]:80
 Function _Z5mergePf:
  REG:32 STACK:288 SHARED:1024 LOCAL:16 CONSTANT[0]:568 TEXTURE:0 SURFACE:0 SAMPLER:0
 Function splits:
  REG:64 STACK:0 SHARED:0 LOCAL:0 CONSTANT[0]:640 TEXTURE:0 SURFACE:0 SAMPLER:0
"""
CODE = """
\t.target\tsm_90
_Z5mergePf:
.text._Z5mergePf:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0070*/              @!P0 BRA `(.L_x_0) ;
        /*0080*/              @P3  HMMA.16816.F32 R4, R8, R2, RZ ;
        /*0090*/             @!UP0 UIADD3 UR4, UR4, 0x1, URZ ;
.L_x_4:
        /*00a0*/                   HGMMA.64x64x16.F32 R24, gdesc[UR8], RZ, !UPT ;  /* a comment */
        /*00b0*/                   LDG.E.U8.CONSTANT R9, desc[UR4][R2.64] ;
"""


def program(folder: Path, name: str, says: str, code: int = 0) -> None:
    """A program that prints `says`, provided that it is given an ELF file."""
    (folder / "says").write_text(says)
    script = folder / name
    script.write_text(
        "#!/bin/sh\nfor last; do :; done\n"
        f'head -c 4 "$last" | grep -q ELF || exit 9\ncat {folder}/says\necho trouble >&2\nexit {code}\n'
    )
    script.chmod(0o755)


def by_hand() -> CubinBuild:
    entries = ("splits", "merge<6>")
    identity = BuildIdentity("cuda", "sm_90", "key", "k.cu", {}, entries, "none", (), "sha", "fnv")
    return CubinBuild(b"\x7fELF", {"splits": "splits", "merge<6>": "_Z5mergePf"}, identity)


def test_resources_are_read_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "cuobjdump", USAGE)
    monkeypatch.setattr(cubin.shutil, "which", lambda name: str(tmp_path / name))
    assert cubin.resources(by_hand()) == [
        KernelResources("splits", registers=64, shared_bytes=0, stack_bytes=0, local_bytes=0),
        KernelResources("merge<6>", registers=32, shared_bytes=1024, stack_bytes=288, local_bytes=16),
    ]
    program(tmp_path, "cuobjdump", USAGE.replace("Function splits", "Function other"))
    with pytest.raises(ToolMissing, match="names no resources of splits"):
        cubin.resources(by_hand())


def test_opcodes_are_what_follows_the_predicate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "nvdisasm", CODE)
    monkeypatch.setattr(cubin.shutil, "which", lambda name: str(tmp_path / name))
    assert cubin.opcodes(by_hand()) == {
        *("LDC", "BRA", "HMMA.16816.F32", "UIADD3", "HGMMA.64x64x16.F32", "LDG.E.U8.CONSTANT")
    }
    assert cubin.tensor_core_opcodes(by_hand()) == {"HMMA.16816.F32", "HGMMA.64x64x16.F32"}
    program(tmp_path, "nvdisasm", "", code=1)
    with pytest.raises(ToolMissing, match=r"nvdisasm cannot read the cubin \(exit 1\): trouble"):
        cubin.disassembly(by_hand())


def test_no_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cubin.shutil, "which", lambda _: None)
    monkeypatch.setattr(cubin.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ToolMissing, match="nvdisasm is not here: `pip install nvidia-cuda-nvdisasm`"):
        cubin.disassembly(by_hand())


@pytest.mark.parametrize(
    ("kernel", "arch", "instruction"),
    [
        ("control", "sm_75", "HMMA.1688.F32"),
        ("control", "sm_80", "HMMA.16816.F32"),
        ("control", "sm_90", "HMMA.16816.F32"),
        ("shared_kv", "sm_90", "HMMA.16816.F32"),
    ],
)
def test_the_tensor_core_instruction_of_our_own_kernels(kernel: str, arch: str, instruction: str) -> None:
    entries = [f"grouped_{kernel}_{part}<3, 64>" for part in ("splits", "merge")]
    try:
        build = compile_cubin(ROOT, ROOT / f"kernels/grouped/{kernel}.cu", entries, arch=arch)
        assert cubin.tensor_core_opcodes(build) == {instruction}
        found = cubin.resources(build)
    except ToolMissing as missing:
        pytest.skip(str(missing))
    assert [resource.entry for resource in found] == entries
    for resource in found:
        assert 16 <= resource.registers <= 255
        assert resource.stack_bytes == resource.local_bytes == 0
    code = cubin.opcodes(build)
    assert {"FFMA", "FADD", "FMUL"} <= code
