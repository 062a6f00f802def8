"""Compiled GPU code as a variant: which kernel is meant, and which image runs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from audit.compile import toolkit
from audit.compile.gpu_file import load_machine
from audit.compile.symbols import UnknownKernel, find_kernel
from audit.errors import CompileError, ProjectError, ToolMissing
from audit.spec import Machine

SOURCE = """
template <int Rows, int Threads>
__global__ void splits(const float* x, float* y) { y[threadIdx.x] = Rows * x[Threads]; }
template __global__ void splits<6, 256>(const float*, float*);
template __global__ void splits<8, 256>(const float*, float*);
namespace ops { __global__ void softmax(float* x, int n) { x[0] = n; } }
extern "C" __global__ void plain(float* x) { x[0] = 1; }
"""
KERNELS = ["_Z6splitsILi6ELi256EEvPKfPf", "_Z6splitsILi8ELi256EEvPKfPf", "_ZN3ops7softmaxEPfi", "plain"]
TYPED = ["_Z4castIjEvPT_", "_Z4castIhEvPT_", "_Z4castI6__halfEvPT_", "_Z4flagILb1EEvPf"]


@pytest.mark.parametrize(
    ("entry", "symbol"),
    [
        ("splits<6, 256>", 0),
        ("splits<8,256>", 1),
        ("_Z6splitsILi8ELi256EEvPKfPf", 1),
        ("void splits<6, 256>(float const*, float*)", 0),
        ("splits<6u, (int)256>", 0),
        ("softmax", 2),
        ("ops::softmax", 2),
        ("ops::softmax(float*, int)", 2),
        ("plain", 3),
    ],
)
def test_a_kernel_has_many_names(entry: str, symbol: int) -> None:
    assert find_kernel(entry, KERNELS) == KERNELS[symbol]


def test_types_have_many_names() -> None:
    for entry, symbol in (("cast<uint32_t>", 0), ("cast<unsigned>", 0), ("cast<uint8_t>", 1), ("cast<half>", 2)):
        assert find_kernel(entry, TYPED) == TYPED[symbol]
    assert find_kernel("flag<true>", TYPED) == TYPED[3]


def test_a_name_that_is_none_or_several() -> None:
    with pytest.raises(UnknownKernel, match=r"splits means several kernels: void splits<6, 256>.*splits<8, 256>"):
        find_kernel("splits", KERNELS)
    with pytest.raises(UnknownKernel, match=r"no kernel gelu; it has void splits<6, 256>.*plain"):
        find_kernel("gelu", KERNELS)
    with pytest.raises(UnknownKernel, match="it has no kernel at all"):
        find_kernel("gelu", [])


def make(folder: Path, *words: str) -> None:
    nvcc = toolkit.find_nvcc()
    if nvcc is None:
        pytest.skip("there is no nvcc")
    (folder / "k.cu").write_text(SOURCE)
    subprocess.run([nvcc, *words, "k.cu"], cwd=folder, check=True, capture_output=True)


def test_a_cubin(tmp_path: Path) -> None:
    make(tmp_path, "-cubin", "-arch=sm_90", "-o", "k.cubin")
    build = load_machine(tmp_path, Machine("k.cubin", {"fast": "splits<8, 256>"}), ["fast", "plain"], "sm_90")
    assert build.symbols == {"fast": KERNELS[1], "plain": "plain"}
    assert build.cubin == (tmp_path / "k.cubin").read_bytes()
    assert build.identity.sources.keys() == {"k.cubin"}
    assert build.identity.arch == "sm_90"
    assert build.identity.machine_code.keys() == {"fast", "plain"}
    with pytest.raises(ProjectError, match=r"Machine\('k\.cubin'\): no kernel gelu; it has .*correct the launches"):
        load_machine(tmp_path, Machine("k.cubin"), ["gelu"], "sm_90")


def test_the_image_of_a_fatbin_is_the_one_that_fits(tmp_path: Path) -> None:
    gencode = ["-gencode=arch=compute_80,code=sm_80", "-gencode=arch=compute_90,code=sm_90"]
    make(tmp_path, "-fatbin", *gencode, "-gencode=arch=compute_90,code=compute_90", "-o", "k.fatbin")
    try:
        build = load_machine(tmp_path, Machine("k.fatbin"), ["plain"], "sm_90")
    except ToolMissing as missing:
        pytest.skip(str(missing))
    assert (build.identity.arch, build.identity.compiler) == ("sm_90", "the sm_90 image of a fatbin of the project")
    assert load_machine(tmp_path, Machine("k.fatbin"), ["plain"], "sm_86").identity.arch == "sm_80"
    newer = load_machine(tmp_path, Machine("k.fatbin"), ["plain"], "sm_100").identity
    assert newer.arch == "sm_100"
    assert newer.compiler.startswith("ptxas ")
    with pytest.raises(
        ProjectError, match="expected code that sm_75 runs, but the file has sm_80, sm_90, PTX for sm_90"
    ):
        load_machine(tmp_path, Machine("k.fatbin"), ["plain"], "sm_75")


def test_ptx_is_assembled(tmp_path: Path) -> None:
    make(tmp_path, "-ptx", "-arch=sm_80", "-o", "k.ptx")
    build = load_machine(tmp_path, Machine("k.ptx", "splits<6, 256>"), ["anything"], "sm_90")
    assert build.symbols == {"anything": KERNELS[0]}
    assert build.identity.compiler.startswith("ptxas ")
    assert build.identity.code is not None
    assert build.identity.code.kernels[0].registers is not None
    (tmp_path / "bad.ptx").write_text((tmp_path / "k.ptx").read_text().replace("ret;", "return;"))
    with pytest.raises(CompileError, match=r"bad\.ptx, line \d+; error") as raised:
        load_machine(tmp_path, Machine("bad.ptx"), ["plain"], "sm_90")
    assert len(set(str(raised.value).splitlines())) == len(str(raised.value).splitlines())


def test_a_file_that_is_none_of_them(tmp_path: Path) -> None:
    (tmp_path / "k.cubin").write_text("not code\n")
    with pytest.raises(ProjectError, match="expected a cubin, a fatbin or PTX, but the file is none of them"):
        load_machine(tmp_path, Machine("k.cubin"), ["plain"], "sm_90")
    (tmp_path / "k.cubin").write_bytes(b"\x7fELF\x02\x01" + b"\xff" * 200)
    with pytest.raises(ProjectError, match="expected a whole ELF file"):
        load_machine(tmp_path, Machine("k.cubin"), ["plain"], "sm_90")
    with pytest.raises(ProjectError, match=r"Machine\('nothing'\)"):
        load_machine(tmp_path, Machine("nothing"), ["plain"], "sm_90")
    with pytest.raises(ProjectError, match="expected a file inside the project"):
        load_machine(tmp_path, Machine("../k.cubin"), ["plain"], "sm_90")
