"""Which constructs the compilers for a GPU take: all that nvcc takes by itself, and those whose header is missing."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from audit.compile import nvrtc, toolkit
from audit.compile.cuda import compile_cubin
from audit.errors import CompileError

FOLDER = Path(__file__).with_name("constructs")
CONSTRUCTS = json.loads((FOLDER / "constructs.json").read_text())
REFUSED = {
    "nvcc": {"m_std_max", "q_noinline_lambda", "w_ballot_legacy"},
    # NVRTC has no statement expressions, ({ ... })
    "nvrtc": {
        "q_noinline_lambda", "w_ballot_legacy", "f8x2", "f8x4", "h_half2_pluseq", "h_half2float2_cvt", "m_sincosf",
        "m_sincospif",
    },
}  # fmt: skip


def refused(construct: dict[str, str]) -> str | None:
    """The name of a construct that the compiler refuses."""
    name = construct["name"]
    try:
        compile_cubin(FOLDER, Path("kernels") / f"{name}.cu", [construct["entry"]])
    except CompileError:
        return name
    return None


@pytest.mark.full
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("tool", sorted(REFUSED))
def test_the_constructs_that_it_refuses(tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if tool == "nvrtc":
        monkeypatch.setenv("KERNEL_AUDIT_NVCC", "none")
    if not (nvrtc.is_installed() if tool == "nvrtc" else toolkit.find_nvcc()):
        pytest.skip(f"{tool} is not here")
    with ThreadPoolExecutor(2) as pool:
        assert {name for name in pool.map(refused, CONSTRUCTS) if name} == REFUSED[tool]


def test_nvcc_takes_all_that_it_took() -> None:
    plain = {construct["name"] for construct in CONSTRUCTS if construct["compiles"]}
    assert len(plain) == 171
    assert plain & REFUSED["nvcc"] == {"w_ballot_legacy"}  # nvcc makes PTX of it, and no cubin for sm_70 and later
