"""`direct_fragments`: the bytes of its parent for every page, load width, geometry and tensor-core step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from audit.backends import Completed
from audit.project import find_project

from .one_block import run_one_block

ROOT = Path(__file__).resolve().parents[2]
GROUPED = find_project(ROOT).operators["grouped"]
VARIANT = GROUPED.variant("direct_fragments")
SMALL = {"heads": [3], "dim": [64]}
SPLITS_OF_TWO_CHUNKS = 10_241
"""The smallest context at which a split has more than four tiles."""
SPLITS_OF_THREE_CHUNKS = 24_577
"""Nine or ten tiles a split: a first chunk, one in the middle, and a last one with warps that have no tile."""


def words(shape: str, *more: str, **axes: list[int]) -> list[str]:
    narrowed = [word for name, values in axes.items() for value in values for word in ("--axis", f"{name}={value}")]
    return ["run", "--shape", shape, "--json", "--variant", VARIANT.name, *narrowed, *more]


@pytest.mark.parametrize(
    ("shape", "axes", "more"),
    [
        ("q3", {**SMALL, "context": [1, 65, 129]}, ()),
        ("q8", {**SMALL, "context": [SPLITS_OF_THREE_CHUNKS], "page": [3296]}, ("--capture", "none")),
        ("q6", {"heads": [6], "dim": [256], "context": [33], "page": [1648]}, ()),
        ("q2", {**SMALL, "context": [129]}, ("--arch", "sm_80")),
        ("q2", {**SMALL, "context": [129]}, ("--arch", "sm_70")),
    ],
    ids=["3 heads", "several chunks", "a padded half", "steps of 8", "steps of 4"],
)
def test_the_bytes_are_the_parents(
    audit: Callable, tmp_path: Path, shape: str, axes: dict[str, list[int]], more: tuple[str, ...]
) -> None:
    ran = audit(ROOT, *words(shape, *more, **axes), "--out", str(tmp_path))
    assert ran.code == 0, ran.out + ran.err
    assert VARIANT.name in {result["variant"] for result in ran.results() if result["check"] == "bytes"}


@pytest.mark.parametrize(
    ("file", "find", "replace"),
    [
        ("direct_fragments.cuh", "copies.wait<1>();", ""),
        pytest.param("direct_fragments.cuh", "copies.wait<2>();", "", marks=pytest.mark.full),
        pytest.param(
            "operands.cuh", "16 * step + 4 * t + 2 * part", "16 * step + 2 * t + 8 * part", marks=pytest.mark.full
        ),
        ("scores.cuh", "step < Steps - 1", "step < 1"),
        pytest.param("scores.cuh", "if (i < warp)", "if (i <= 0)", marks=pytest.mark.full),
        ("weights.cuh", "(p[0][i] + p[2][i]) + (p[1][i] + p[3][i])", "(p[0][i] + p[1][i]) + (p[2][i] + p[3][i])"),
        ("numerator.cuh", "r, shrunk", "r, values[j]"),
        ("direct_fragments.cuh", "buffer ^= 1;", ""),
    ],
    ids=[
        "K is not waited for",
        "V is not waited for",
        "q and K in different orders",
        "compensation stops",
        "a tile misses the maxima before it",
        "another tree",
        "the rest is not scaled back",
        "V of another chunk",
    ],
)
def test_a_fault_shows_in_the_bytes(
    audit: Callable, own_project: Path, tmp_path: Path, file: str, find: str, replace: str
) -> None:
    source = own_project / "kernels/grouped/direct" / file
    text = source.read_text()
    assert text.count(find) == 1
    source.write_text(text.replace(find, replace))
    axes = {**SMALL, "context": [SPLITS_OF_TWO_CHUNKS if "buffer" in find else 65]}
    ran = audit(own_project, *words("q2", "--probe", "none", "--capture", "none", **axes), "--out", str(tmp_path))
    assert ran.code == 1, ran.out + ran.err
    failed = {(result["variant"], result["check"]) for result in ran.results() if result["verdict"] == "fail"}
    assert (VARIANT.name, "bytes") in failed
    assert {name for name, _ in failed} == {VARIANT.name}


def test_the_chunks_of_a_split_do_not_race(tmp_path: Path) -> None:
    ran, _ = run_one_block(ROOT, tmp_path / "case", VARIANT.name, SPLITS_OF_THREE_CHUNKS, page=16)
    assert isinstance(ran.outcome, Completed), ran.log
    assert ran.log == ""


@pytest.mark.parametrize(
    ("find", "replace"),
    [
        ("skip_scores(m.tile_max, warp);", "m.weights.tiles[warp].rescale[lane % 16] = 1.0f;"),
        ("      __syncthreads();\n\n      if (has_next)", "      if (has_next)"),
    ],
    ids=["factors that are still read", "V that is still read"],
)
def test_a_chunk_that_overtakes_the_one_before_it_is_a_race(
    own_project: Path, tmp_path: Path, find: str, replace: str
) -> None:
    source = own_project / "kernels/grouped/direct/direct_fragments.cuh"
    text = source.read_text()
    assert text.count(find) == 1
    source.write_text(text.replace(find, replace))
    ran, _ = run_one_block(own_project, tmp_path / "case", VARIANT.name, SPLITS_OF_THREE_CHUNKS, page=16)
    assert "data race" in ran.log


def test_the_source_states_the_shared_memory_of_its_launch() -> None:
    text = (ROOT / VARIANT.code.path).read_text()
    for heads, dim in ((6, 256), (3, 64)):
        case = GROUPED.case(GROUPED.shapes[-1], {"heads": heads, "dim": dim, "context": 129})
        splits = next(iter(VARIANT.launches(case)))
        assert f"{splits.shared_bytes:,} (G={heads}, D={dim})" in text
