"""The CUDA sources compile for three architectures, and state the shared memory of their launches."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from audit.compile.cuda import CubinBuild, compile_cubin
from audit.compile.host import TARGETS
from audit.compile.tensor_cores import model_of
from audit.errors import CompileError, ToolMissing
from audit.project import find_project

from ..conftest import full_run

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "kernels"
GEOMETRIES = [(6, 256), (3, 64)]


def _source(kernel: str, root: Path = ROOT) -> Path:
    return root / find_project(ROOT).operators["grouped"].variant(kernel).code.path


def _entries(kernel: str) -> list[str]:
    return [f"grouped_{kernel}_{part}<{g}, {d}>" for g, d in GEOMETRIES for part in ("splits", "merge")]


def _compile(root: Path, kernel: str) -> CubinBuild:
    try:
        return compile_cubin(root, _source(kernel, root), _entries(kernel))
    except ToolMissing as missing:
        pytest.skip(str(missing))


def _edited_copy(kernel: str, root: Path, text: str) -> None:
    shutil.copytree(KERNELS, root / "kernels", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    _source(kernel, root).write_text(text, encoding="utf-8")


@pytest.mark.parametrize("kernel", ["control", "shared_kv"])
def test_every_entry_is_in_the_cubin(kernel: str) -> None:
    built = _compile(ROOT, kernel)
    assert built.cubin.startswith(b"\x7fELF")
    assert list(built.symbols) == _entries(kernel)
    assert len(set(built.symbols.values())) == len(built.symbols)
    for symbol in built.symbols.values():
        assert symbol.encode() in built.cubin


INSTRUCTION = {"sm_75": "HMMA.1688.F32", "sm_80": "HMMA.16816.F32", "sm_90": "HMMA.16816.F32"}
STATUS = {(o.name, v.name): v.status for o in find_project(ROOT).operators.values() for v in o.variants}
EACH = [
    pytest.param(*variant, arch, marks=[] if usual else [pytest.mark.full])
    for variant, status in STATUS.items()
    for arch in INSTRUCTION
    for usual in [arch == "sm_90" or status in ("control", "admitted")]
]


NOTHING = (0, 0, 0)
SPILLS = {("piped_roles", "sm_75"): {(6, 256): (8, 18, 6), (3, 64): (8, 6, 2)}}
"""Known spills: bytes of stack, bytes stored, bytes loaded. Without mbarriers, the number and count of a barrier come
from shared memory. No such GPU has run it; two blocks on an SM leave a thread 128 registers."""


@pytest.mark.parametrize(("operator", "variant", "arch"), EACH)
def test_every_variant_compiles_with_what_it_launches(operator: str, variant: str, arch: str) -> None:
    """Compile every variant for every architecture.

    On sm_90, a variant that is not admitted is compiled only in its largest geometry, unless --full. Other
    architectures get a geometry whose shared memory fits all of them, and only the first kernel, which a variant does
    not share with its parent.
    """
    declared = find_project(ROOT).operators[operator]
    kernel = declared.variant(variant)
    whole = arch == "sm_90" and (full_run() or kernel.status in ("control", "admitted"))
    largest = (6, 256, 16)
    chosen = [(3, 64, 16), largest, (6, 256, 3296)] if whole else [largest if arch == "sm_90" else (3, 64, 16)]
    cases = [
        declared.case(declared.shapes[-1], {"heads": heads, "dim": dim, "page": page, "context": 129})
        for heads, dim, page in chosen
    ]
    launches = [launch for case in cases for launch in kernel.launches(case)]
    if not whole and kernel.parent is not None:
        launches = launches[:1]
    entries = list(dict.fromkeys(launch.entry for launch in launches))
    try:
        built = compile_cubin(
            ROOT, ROOT / kernel.code.path, entries, arch=arch, defines=kernel.code.defines, flags=kernel.code.flags
        )
    except ToolMissing as missing:
        pytest.skip(str(missing))
    assert list(built.symbols) == entries
    code = built.identity.code
    assert code is not None
    for record in code.kernels:
        asked = max(launch.shared_bytes for launch in launches if launch.entry == record.entry)
        assert record.registers is not None
        assert 16 <= record.registers <= 255
        assert record.static_shared is not None
        assert asked + record.static_shared <= TARGETS[arch].shared_limit
        assert record.stack is not None
        assert record.spill_stores is not None
        if kernel.status != "closed":
            known = [
                spilt
                for (g, d), spilt in SPILLS.get((variant, arch), {}).items()
                if f"splits<{g}, {d}," in record.entry
            ]
            assert (record.stack, record.spill_stores, record.spill_loads) in (NOTHING, *known)
    if code.tensor_core is not None:
        assert code.tensor_core == ((INSTRUCTION[arch],) if operator == "grouped" else ())
        assert {model_of(opcode, arch) for opcode in code.tensor_core} <= {TARGETS[arch].model}


def test_a_size_formula_that_is_off_does_not_compile(tmp_path: Path) -> None:
    text = _source("control").read_text(encoding="utf-8")
    planted = text.replace("__half p[kTileRows][kTileTokens + 8];", "__half p[kTileRows][kTileTokens + 16];")
    assert planted != text
    _edited_copy("control", tmp_path, planted)
    with pytest.raises(CompileError, match="the launch uses the formula"):
        _compile(tmp_path, "control")


@pytest.mark.parametrize(
    ("kernel", "sizes"),
    [
        (
            "control",
            {"control::split_memory_bytes<256>": 97_536, "control::split_memory_bytes<64>": 29_952},
        ),
        (
            "shared_kv",
            {
                "grouped::staged::split_memory_bytes<256, SharedKv<6>::row_tiles, 8>": 87_616,
                "grouped::staged::split_memory_bytes<64, SharedKv<3>::row_tiles, 8>": 36_224,
            },
        ),
    ],
)
def test_the_sizes_in_the_comments_are_the_real_ones(kernel: str, sizes: dict[str, int], tmp_path: Path) -> None:
    text = _source(kernel).read_text(encoding="utf-8")
    asserts = [f'static_assert({expression} == {size}, "another");\n' for expression, size in sizes.items()]
    _edited_copy(kernel, tmp_path, text + "".join(asserts))
    _compile(tmp_path, kernel)
    for size in sizes.values():
        assert f"{size:,}" in text
        assert size % 32 == 0  # a fragment's address is a multiple of 32 from either end of the memory
        assert size <= 200 * 1024


def test_control_includes_nothing_of_the_project() -> None:
    text = _source("control").read_text(encoding="utf-8")
    assert re.findall(r"^#include (\S+)", text, re.MULTILINE) == ["<cuda_fp16.h>", "<mma.h>"]


def test_sources_hold_nothing_that_a_cpu_cannot_repeat() -> None:
    sources = [*KERNELS.rglob("*.cu"), *KERNELS.rglob("*.cuh")]
    assert len(sources) > 2
    for source in sources:
        code = re.sub(r"//.*", "", source.read_text(encoding="utf-8"))
        assert not re.search(r"\basm\b|\bfmaxf\b|\b(__)?exp2?f?\(", code), source
