"""`woven_steps`: its parent's bytes, and no chunk overtakes the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from audit.backends import Completed
from audit.project import find_project

from .one_block import run_one_block

ROOT = Path(__file__).resolve().parents[2]
GROUPED = find_project(ROOT).operators["grouped"]
VARIANT = GROUPED.variant("woven_steps")
SMALL = {"heads": [3], "dim": [64]}
WOVEN = "kernels/grouped/closed/woven_steps.cuh"
SPLITS_OF_THREE_CHUNKS = 24_577


def words(shape: str, *more: str, **axes: list[int]) -> list[str]:
    narrowed = [word for name, values in axes.items() for value in values for word in ("--axis", f"{name}={value}")]
    return ["run", "--shape", shape, "--json", "--capture", "none", "--variant", VARIANT.name, *narrowed, *more]


@pytest.mark.full
@pytest.mark.parametrize(
    ("shape", "axes", "more"),
    [
        ("q3", {**SMALL, "context": [1, 65, 129]}, ()),
        ("q8", {**SMALL, "context": [SPLITS_OF_THREE_CHUNKS], "page": [1648]}, ()),
        ("q6", {"heads": [6], "dim": [256], "context": [33], "page": [1648]}, ()),
        ("q2", {**SMALL, "context": [129], "layout": ["padded"], "base": [8]}, ()),
        ("q2", {**SMALL, "context": [129]}, ("--arch", "sm_80")),
    ],
    ids=["3 heads", "three chunks a split", "a padded half", "8-byte loads", "steps of 8"],
)
def test_the_bytes_are_the_parents(
    audit: Callable, tmp_path: Path, shape: str, axes: dict[str, list[int]], more: tuple[str, ...]
) -> None:
    ran = audit(ROOT, *words(shape, *more, **axes), "--out", str(tmp_path))
    assert ran.code == 0, ran.out + ran.err
    assert VARIANT.name in {result["variant"] for result in ran.results() if result["check"] == "bytes"}


@pytest.mark.parametrize("schedule", [0, 7])
def test_the_chunks_do_not_race(tmp_path: Path, schedule: int) -> None:
    ran, _ = run_one_block(ROOT, tmp_path / "case", VARIANT.name, SPLITS_OF_THREE_CHUNKS, schedule=schedule)
    assert isinstance(ran.outcome, Completed), ran.log
    assert ran.log == ""


@pytest.mark.full
@pytest.mark.parametrize(
    "find",
    [
        "    copies.wait<0>();\n    __syncthreads();\n\n    int pending",
        "      __syncthreads();\n\n      if (early)",
        "      copies.wait<0>();\n      __syncthreads();\n",
    ],
    ids=["q", "maxima", "weights"],
)
def test_without_a_barrier_there_is_a_race(own_project: Path, tmp_path: Path, find: str) -> None:
    source = own_project / WOVEN
    text = source.read_text()
    assert text.count(find) == 1
    source.write_text(text.replace(find, find.replace("__syncthreads();", "")))
    _, observed = run_one_block(own_project, tmp_path / "case", VARIANT.name, SPLITS_OF_THREE_CHUNKS)
    assert "race" in {finding.kind for finding in observed.findings}


def test_the_source_states_the_shared_memory_of_its_launch() -> None:
    text = (ROOT / VARIANT.code.path).read_text()
    for heads, dim in ((6, 256), (3, 64)):
        case = GROUPED.case(GROUPED.shapes[-1], {"heads": heads, "dim": dim, "context": 129})
        splits = next(iter(VARIANT.launches(case)))
        assert f"{splits.shared_bytes:,} (G={heads}, D={dim})" in text
