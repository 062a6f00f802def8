"""`piped_roles`: the bytes of its parent; neither role overtakes the other, and every wait ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from audit.backends import Completed
from audit.project import find_project

from .one_block import run_one_block

ROOT = Path(__file__).resolve().parents[2]
GROUPED = find_project(ROOT).operators["grouped"]
VARIANT = GROUPED.variant("piped_roles")
SMALL = {"heads": [3], "dim": [64]}
PIPED = "kernels/grouped/direct/piped_roles.cuh"
SPLITS_OF_THREE_CHUNKS = 24_577
SPLITS_OF_SIX_CHUNKS = 53_761
"""21 or 22 tiles a split: each of the 6 stages is filled three or four times."""


def words(shape: str, *more: str, **axes: list[int]) -> list[str]:
    narrowed = [word for name, values in axes.items() for value in values for word in ("--axis", f"{name}={value}")]
    return ["run", "--shape", shape, "--json", "--capture", "none", "--variant", VARIANT.name, *narrowed, *more]


@pytest.mark.parametrize(
    ("shape", "axes", "more"),
    [
        ("q3", {**SMALL, "context": [1, 65, 129]}, ()),
        pytest.param("q8", {**SMALL, "context": [SPLITS_OF_SIX_CHUNKS], "page": [3296]}, (), marks=pytest.mark.full),
        ("q6", {"heads": [6], "dim": [256], "context": [33], "page": [1648]}, ()),
        ("q2", {**SMALL, "context": [129], "layout": ["padded"], "base": [8]}, ()),
        ("q2", {**SMALL, "context": [129]}, ("--arch", "sm_80")),
    ],
    ids=["3 heads", "stages filled several times", "a padded half", "8-byte loads", "steps of 8"],
)
def test_the_bytes_are_the_parents(
    audit: Callable, tmp_path: Path, shape: str, axes: dict[str, list[int]], more: tuple[str, ...]
) -> None:
    ran = audit(ROOT, *words(shape, *more, **axes), "--out", str(tmp_path))
    assert ran.code == 0, ran.out + ran.err
    assert VARIANT.name in {result["variant"] for result in ran.results() if result["check"] == "bytes"}


@pytest.mark.full
@pytest.mark.parametrize(
    ("find", "replace"),
    [
        ("      copies.wait<0>();\n      m.pipeline", "      m.pipeline"),
        ("in.v, tile, address);", "in.v, tile, next);"),
        ("m.weights[i / kChunkTiles % 2];", "m.weights[0];"),
    ],
    ids=["V is not waited for", "V of another tile", "weights of another chunk"],
)
def test_a_fault_shows_in_the_bytes(
    audit: Callable, own_project: Path, tmp_path: Path, find: str, replace: str
) -> None:
    damage(own_project, find, replace)
    axes = {**SMALL, "context": [SPLITS_OF_THREE_CHUNKS], "page": [1648]}
    ran = audit(own_project, *words("q2", "--probe", "none", **axes), "--out", str(tmp_path))
    assert ran.code == 1, ran.out + ran.err
    failed = {(result["variant"], result["check"]) for result in ran.results() if result["verdict"] == "fail"}
    assert (VARIANT.name, "bytes") in failed
    assert {name for name, _ in failed} == {VARIANT.name}


def damage(root: Path, find: str, replace: str) -> None:
    source = root / PIPED
    text = source.read_text()
    assert text.count(find) == 1
    source.write_text(text.replace(find, replace))


@pytest.mark.parametrize("schedule", [0, 7])
def test_the_roles_do_not_race(tmp_path: Path, schedule: int) -> None:
    ran, _ = run_one_block(ROOT, tmp_path / "case", VARIANT.name, SPLITS_OF_SIX_CHUNKS, schedule=schedule)
    assert isinstance(ran.outcome, Completed), ran.log
    assert ran.log == ""


@pytest.mark.full
@pytest.mark.parametrize(
    ("find", "replace"),
    [
        ("    audit::barrier_sync(kMaximaBarrier, kThreads);\n", ""),
        ("m.tile_max[parity], warp, before", "m.tile_max[parity ^ 1], warp, before"),
        ("m.weights[i / kChunkTiles % 2];", "m.weights[(i / kChunkTiles + 1) % 2];"),
        ("    __syncthreads();  // q is there, and the pipeline\n", ""),
        ("    m.pipeline.consumer_wait(stage);\n", ""),
    ],
    ids=["maxima", "the other chunk's maxima", "the other chunk's weights", "q", "full"],
)
def test_what_is_not_waited_for_is_a_race(own_project: Path, tmp_path: Path, find: str, replace: str) -> None:
    damage(own_project, find, replace)
    _, observed = run_one_block(own_project, tmp_path / "case", VARIANT.name, SPLITS_OF_SIX_CHUNKS)
    assert "race" in {finding.kind for finding in observed.findings}


@pytest.mark.full
@pytest.mark.parametrize(
    ("find", "replace"),
    [
        ("if (tile - block.first >= kStages) m.pipeline.producer_acquire(stage);", ""),
        ("if (i + kStages < count) m.pipeline.consumer_release(stage);", ""),
        ("      m.pipeline.producer_commit(stage);\n", ""),
    ],
    ids=["no acquire", "no release", "no commit"],
)
def test_half_a_handover_is_reported(own_project: Path, tmp_path: Path, find: str, replace: str) -> None:
    damage(own_project, find, replace)
    _, observed = run_one_block(own_project, tmp_path / "case", VARIANT.name, SPLITS_OF_SIX_CHUNKS, "synccheck")
    (finding,) = observed.findings
    assert finding.kind == "divergent-barrier"
    assert "threads wait for one another" in finding.message
    waiting = {side.what for side in finding.sides}
    assert waiting & {f"barrier barrier_sync {number}" for number in range(1, 13)}, waiting
    assert {side.file for side in finding.sides if side.what.startswith("barrier")} == {PIPED}


def test_the_source_states_the_shared_memory_of_its_launch() -> None:
    text = (ROOT / VARIANT.code.path).read_text()
    for heads, dim in ((6, 256), (3, 64)):
        case = GROUPED.case(GROUPED.shapes[-1], {"heads": heads, "dim": dim, "context": 129})
        splits = next(iter(VARIANT.launches(case)))
        assert f"{splits.shared_bytes:,} (G={heads}, D={dim})" in text
