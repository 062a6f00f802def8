"""What a cubin says of itself: as the compiler and NVIDIA's tools say it, and from their recorded words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from audit.compile import cubin
from audit.compile.cuda import compile_cubin
from audit.compile.identity import KernelRecord
from audit.errors import ToolMissing
from audit.project import find_project

from ..conftest import ROOT

GROUPED = find_project(ROOT).operators["grouped"]

SYMBOLS = {"splits<6, 256>": "splits", "merge<6>": "_Z5mergePf"}
LOG = """\
ptxas info    : 110 bytes gmem, 80 bytes cmem[4]
ptxas info    : Compiling entry function 'splits' for 'sm_90'
ptxas info    : Function properties for splits
ptxas         .     288 bytes stack frame, 276 bytes spill stores, 540 bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers, 288 bytes cumulative stack size
ptxas info    : Compile time = 98.703 ms
ptxas info    : Compiling entry function '_Z5mergePf' for 'sm_90'
ptxas info    : Function properties for _Z5mergePf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 960+0 bytes smem, 568 bytes cmem[0]
"""
USAGE = """
Resource usage:
 Common:
  GLOBAL:40 CONSTANT[4]:80
 Function _Z5mergePf:
  REG:32 STACK:0 SHARED:1984 LOCAL:16 CONSTANT[0]:568 TEXTURE:0 SURFACE:0 SAMPLER:0
 Function splits:
  REG:64 STACK:288 SHARED:1024 LOCAL:0 CONSTANT[0]:640 TEXTURE:0 SURFACE:0 SAMPLER:0
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


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put a program into a folder; from now on the tools lie in these folders and nowhere else."""
    folders: list[str] = []
    monkeypatch.setattr(cubin, "_programs", lambda name: iter([f"{folder}/{name}" for folder in folders]))

    def put(folder: Path, name: str, says: str, code: int = 0) -> None:
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.says").write_text(says)
        script = folder / name
        script.write_text(
            f"#!/bin/sh\nif [ $1 = --version ]; then echo 'Cuda tools, release 13.5, V13.5.{code}'; exit; fi\n"
            f'for last; do :; done\nhead -c 4 "$last" | grep -q ELF || exit 9\ncat {script}.says\n'
            f"echo trouble >&2\nexit {code}\n"
        )
        script.chmod(0o755)
        if str(folder) not in folders:
            folders.append(str(folder))

    return put


def test_the_words_of_ptxas_are_read_by_name(tmp_path: Path, install: Callable[..., None]) -> None:
    install(tmp_path, "cuobjdump", USAGE)
    install(tmp_path, "nvdisasm", CODE)
    found = cubin.describe_cubin(b"\x7fELF", SYMBOLS, LOG)
    assert found.kernels == (
        KernelRecord("splits<6, 256>", "splits", 64, 0, 288, 0, 276, 540),
        KernelRecord("merge<6>", "_Z5mergePf", 32, 960, 0, 16, 0, 0),
    )
    assert found.tensor_core == ("HGMMA.64x64x16.F32", "HMMA.16816.F32")
    assert found.disassembler == "nvdisasm V13.5.0"


def test_what_no_tool_says_is_not_zero(tmp_path: Path, install: Callable[..., None]) -> None:
    silent = cubin.describe_cubin(b"\x7fELF", SYMBOLS, "")
    assert silent.kernels == tuple(KernelRecord(entry, symbol) for entry, symbol in SYMBOLS.items())
    assert all(value is None for value in (silent.kernels[0].registers, silent.kernels[0].spill_stores))
    assert silent.disassembler is silent.disassembly_sha256 is silent.tensor_core is None
    install(tmp_path, "nvdisasm", "", code=1)
    assert cubin.describe_cubin(b"\x7fELF", SYMBOLS, LOG).tensor_core is None
    assert cubin.describe_cubin(b"\x7fELF", SYMBOLS, LOG).kernels[1].local is None


def test_a_tool_that_cannot_read_the_code_gives_way_to_the_next(tmp_path: Path, install: Callable[..., None]) -> None:
    install(tmp_path / "old", "nvdisasm", "", code=1)
    with pytest.raises(ToolMissing, match=r"old/nvdisasm cannot read the cubin \(exit 1\): trouble"):
        cubin.disassembly(b"\x7fELF")
    install(tmp_path / "new", "nvdisasm", CODE)
    assert cubin.disassembly(b"\x7fELF") == CODE


def test_opcodes_are_what_follows_the_predicate() -> None:
    assert cubin.opcodes(CODE) == {
        *("LDC", "BRA", "HMMA.16816.F32", "UIADD3", "HGMMA.64x64x16.F32", "LDG.E.U8.CONSTANT")
    }


def test_no_tool_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cubin, "_programs", lambda _: iter(()))
    with pytest.raises(ToolMissing, match="no nvdisasm found: `pip install nvidia-cuda-nvdisasm`"):
        cubin.disassembly(b"\x7fELF")


def test_tools_are_found_beside_nvcc_and_in_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """nvcc on PATH is a link into a toolkit whose bin is not on PATH; a toolkit is named; Triton brings one."""
    homes = {name: tmp_path / name for name in ("toolkit", "named", "triton")}
    folders = [homes["toolkit"] / "bin", homes["named"] / "bin", homes["triton"] / "backends/nvidia/bin"]
    for folder in folders:
        folder.mkdir(parents=True)
        for name in ("nvcc", "nvdisasm"):
            (folder / name).write_text("#!/bin/sh\n")
            (folder / name).chmod(0o755)
    (homes["triton"] / "__init__.py").touch()
    (tmp_path / "path").mkdir()
    (tmp_path / "path/nvcc").symlink_to(homes["toolkit"] / "bin/nvcc")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("CUDA_HOME", str(homes["named"]))
    monkeypatch.syspath_prepend(tmp_path)
    found = list(cubin._programs("nvdisasm"))
    own = [program for program in found if program.startswith(str(tmp_path))]
    assert own == [str(folder / "nvdisasm") for folder in folders]


FILE_LOCAL = """
namespace {
__device__ int table[4] = {1, 2, 3, 4};
__device__ __noinline__ int twice(int x) { return x * 2 + table[x & 3]; }
}
template <int N> __global__ void k(int* p) { p[0] = twice(p[1]); table[p[N] & 3] = 5; }
"""


def test_the_disassembly_is_the_same_in_another_folder(tmp_path: Path) -> None:
    """The compiler puts a hash of the path, and its process, into what is local to a file."""
    texts = []
    for folder in (tmp_path / "here", tmp_path / "there"):
        folder.mkdir()
        (folder / "k.cu").write_text(FILE_LOCAL)
        try:
            texts.append(cubin.disassembly(compile_cubin(folder, Path("k.cu"), ["k<2>"]).cubin))
        except ToolMissing as missing:
            pytest.skip(str(missing))
    assert "_INTERNAL" in texts[0]
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("kernel", "arch", "instruction"),
    [
        ("control", "sm_75", "HMMA.1688.F32"),
        ("shared_kv", "sm_80", "HMMA.16816.F32"),
        ("control", "sm_90", "HMMA.16816.F32"),
    ],
)
def test_the_record_of_our_own_kernels(kernel: str, arch: str, instruction: str) -> None:
    entries = [f"grouped_{kernel}_{part}<3, 64>" for part in ("splits", "merge")]
    try:
        build = compile_cubin(ROOT, ROOT / GROUPED.variant(kernel).code.path, entries, arch=arch)
        code = cubin.opcodes(cubin.disassembly(build.cubin))
    except ToolMissing as missing:
        pytest.skip(str(missing))
    assert build.identity.code is not None
    assert build.identity.code.tensor_core == (instruction,)
    assert {"FFMA", "FADD", "FMUL"} <= code
    assert [record.entry for record in build.identity.code.kernels] == entries
    for record in build.identity.code.kernels:
        assert record.symbol == build.symbols[record.entry]
        assert record.local == 0
