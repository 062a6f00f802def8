"""Right and wrong kernels, of kinds that public reports of bugs tell of: a run or a sanitizer judges each right."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.conformance.projects import commanded, verdicts

HERE = Path(__file__).parent


# What a run says of the wrong one. Those that it cannot see belong to a sanitizer.
RUN = {
    "b01_misaligned_f4_store": ("fail", "misaligned"),
    "b02_misaligned_f2_half2": ("fail", "misaligned"),
    "b03_one_writes_all_read": ("fail", "bytes"),
    "b04_wmma_store_no_syncwarp": ("fail", "bytes"),
    "b05_grid_y_65536": ("fail", "expected grid y of 1 to 65535, but got 65536"),
    "b07_launch_bounds_exceeded": ("fail", "expected at most 128 threads a block"),
    "b08_tail_rows_unwritten": ("fail", "workspace"),
    "b10_full_mask_in_divergent_if": ("fail", "__shfl_xor_sync"),
    "b12_shared_max_uninit": ("fail", "repeat"),
    "b14_float_atomic_splitk": ("fail", "repeat"),
    "b16_oob_sin_offset": ("fail", "bytes"),
    "b18_max_from_flt_min": ("fail", "16 of 16 outside the bound"),
    "b19_dynamic_shared_too_small": ("fail", "past the end of its 800 bytes"),
    "b20_static_shared_oob_neighbour": ("fail", "a write past the end of shared `a`"),
    "b24_cuda_arch_fast_path_wrong": ("fail", "bytes"),
    "b25_shift_by_32": ("inconclusive", "not supported here: "),
    "b26_neg_float_to_uint": ("inconclusive", "not supported here: "),
    "b32_ldg_of_written": ("fail", "__ldg reads 4 bytes"),
}
SANITIZE = {
    "b13_vote_is_no_fence": "racecheck",
    "b15_oob_read_dead_lane": "memcheck",
    "b22_uninit_accumulator": "initcheck",
}
FAULTLESS = ("b28_same_merge_kernel", "b29_u8_output", "b31_waw_same_value", "b33_constant_not_set")
ALONE = {"inout": ["control"], "null": ["control"], "tune": ["control", "wider", "unrolled"]}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs") / "project"
    shutil.copytree(HERE / "pairs", folder, ignore=shutil.ignore_patterns("runs", "__pycache__"))
    commanded(folder, "run", "--shape", "all")
    return folder


@pytest.mark.parametrize("name", RUN)
def test_a_run_tells_them_apart(name: str, project: Path) -> None:
    found = verdicts(project, name)
    assert found["good"] == ("pass", "")
    verdict, words = RUN[name]
    assert found["bad"][0] == verdict
    assert words in found["bad"][1]


@pytest.mark.parametrize("name", [*SANITIZE, *FAULTLESS])
def test_a_run_passes_what_it_cannot_see_and_what_is_right(name: str, project: Path) -> None:
    assert verdicts(project, name) == {"good": ("pass", ""), "bad": ("pass", "")}


@pytest.mark.parametrize("name", ALONE)
def test_what_once_could_not_be_said_passes(name: str, project: Path) -> None:
    assert verdicts(project, name) == dict.fromkeys(ALONE[name], ("pass", ""))


@pytest.mark.full
@pytest.mark.parametrize("name", SANITIZE)
def test_a_sanitizer_tells_them_apart(name: str, project: Path) -> None:
    code, said = commanded(project, "sanitize", "--shape", name, "--tool", SANITIZE[name], "--json")
    assert code == 1, said
    assert sanitized(project, name) == {"good": "pass", "bad": "fail"}


@pytest.mark.full
@pytest.mark.parametrize("name", ["b03_one_writes_all_read", *FAULTLESS])
def test_no_sanitizer_accuses_the_right_ones(name: str, project: Path) -> None:
    commanded(project, "sanitize", "--shape", name)
    wanted = {"good": "pass", "bad": "pass" if name in FAULTLESS else "fail"}
    assert sanitized(project, name) == wanted


def sanitized(folder: Path, shape: str) -> dict[str, str]:
    """The worst verdict of the newest session, by variant."""
    record = json.loads(max((folder / "runs").glob(f"*-sanitize-{shape}-*/sanitize.json")).read_text())
    found: dict[str, str] = {}
    for check in record["checked"]:
        found[check["variant"]] = max(found.get(check["variant"], ""), check["verdict"], key=ORDER.index)
    return found


ORDER = ["", "pass", "inconclusive", "fail"]
