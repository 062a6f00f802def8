"""The examples of README and of the docs, unchanged, for every architecture that is named in docs/gpus.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from audit.compile import nvrtc, toolkit
from audit.compile.cuda import compile_cubin

ROOT = Path(__file__).parents[2]
ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100")
SOURCES = {
    "README.md": ("softmax/kernels/softmax.cu", ["softmax_control", "softmax_fast"]),
}


def block(page: str, name: str) -> str:
    """The block of a page that a comment says is the file `name`."""
    found = re.search(rf"<!-- file: {re.escape(name)} -->\n```\w+\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert found is not None, (page, name)
    return found[1]


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("tool", ["nvcc", "nvrtc"])
@pytest.mark.parametrize("page", SOURCES)
def test_examples_compile(page: str, tool: str, arch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if tool == "nvrtc":
        monkeypatch.setenv("KERNEL_AUDIT_NVCC", "none")
    if not (nvrtc.is_installed() if tool == "nvrtc" else toolkit.find_nvcc()):
        pytest.skip(f"{tool} is not here")
    name, entries = SOURCES[page]
    (tmp_path / "k.cu").write_text(block(page, name))
    built = compile_cubin(tmp_path, Path("k.cu"), entries, arch=arch)
    assert list(built.symbols) == entries
    assert built.identity.stubs == ()
    assert built.identity.host_code
    assert len(set(built.identity.machine_code.values())) == len(entries)
