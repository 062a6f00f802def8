"""`warp_roles` and `rolled_steps`: their parents' bytes, and no role overtakes the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from audit.backends import Completed
from audit.project import find_project

from .one_block import run_one_block

ROOT = Path(__file__).resolve().parents[2]
GROUPED = find_project(ROOT).operators["grouped"]
VARIANT, ROLLED = GROUPED.variant("warp_roles"), GROUPED.variant("rolled_steps")
SMALL = {"heads": [3], "dim": [64]}
ROLES = "kernels/grouped/direct/warp_roles.cuh"
SPLITS_OF_THREE_CHUNKS = 24_577
SPLITS_OF_SIX_CHUNKS = 53_761
"""21 or 22 tiles a split: more than the 16 addresses that are kept."""


def words(shape: str, *more: str, **axes: list[int]) -> list[str]:
    narrowed = [word for name, values in axes.items() for value in values for word in ("--axis", f"{name}={value}")]
    return ["run", "--shape", shape, "--json", "--capture", "none", *narrowed, *more]


@pytest.mark.parametrize(
    ("shape", "axes", "more"),
    [
        ("q3", {**SMALL, "context": [1, 65, 129]}, ()),
        ("q8", {**SMALL, "context": [SPLITS_OF_THREE_CHUNKS], "page": [3296]}, ()),
        ("q6", {"heads": [6], "dim": [256], "context": [33], "page": [1648]}, ()),
        ("q2", {**SMALL, "context": [129], "layout": ["padded"], "base": [8]}, ()),
        ("q2", {**SMALL, "context": [129]}, ("--arch", "sm_80")),
    ],
    ids=["3 heads", "several chunks", "a padded half", "8-byte loads", "steps of 8"],
)
def test_the_bytes_are_the_parents(
    audit: Callable, tmp_path: Path, shape: str, axes: dict[str, list[int]], more: tuple[str, ...]
) -> None:
    named = ("--variant", VARIANT.name, "--variant", ROLLED.name)
    ran = audit(ROOT, *words(shape, *named, *more, **axes), "--out", str(tmp_path))
    assert ran.code == 0, ran.out + ran.err
    assert {VARIANT.name, ROLLED.name} <= {result["variant"] for result in ran.results() if result["check"] == "bytes"}


@pytest.mark.full
@pytest.mark.parametrize(
    ("find", "replace"),
    [
        ("copies.wait<1>();", ""),
        ("copies.wait<kValueTiles - 1>();", ""),
        ("unsigned known = kValueTiles;", "unsigned known = 0;"),
        ("parity ^ 1, next)", "parity ^ 1, {})"),
    ],
    ids=["K is not waited for", "V is not waited for", "V of another tile", "K of another page"],
)
def test_a_fault_shows_in_the_bytes(
    audit: Callable, own_project: Path, tmp_path: Path, find: str, replace: str
) -> None:
    damage(own_project, find, replace)
    axes = {**SMALL, "context": [SPLITS_OF_THREE_CHUNKS], "page": [1648]}
    named = ("--variant", VARIANT.name, "--probe", "none")
    ran = audit(own_project, *words("q2", *named, **axes), "--out", str(tmp_path))
    assert ran.code == 1, ran.out + ran.err
    failed = {(result["variant"], result["check"]) for result in ran.results() if result["verdict"] == "fail"}
    assert (VARIANT.name, "bytes") in failed
    assert {name for name, _ in failed} == {VARIANT.name}


def damage(root: Path, find: str, replace: str) -> None:
    source = root / ROLES
    text = source.read_text()
    assert text.count(find) == 1
    source.write_text(text.replace(find, replace))


def test_the_roles_do_not_race(tmp_path: Path) -> None:
    ran, _ = run_one_block(ROOT, tmp_path / "case", VARIANT.name, SPLITS_OF_SIX_CHUNKS)
    assert isinstance(ran.outcome, Completed), ran.log
    assert ran.log == ""


@pytest.mark.full
@pytest.mark.parametrize(
    ("find", "replace"),
    [
        ("ChunkWeights& weights = m.weights[parity];", "ChunkWeights& weights = m.weights[parity ^ 1];"),
        ("kAddresses = 16;", "kAddresses = 8; "),
    ],
    ids=["weights that are being made", "addresses still in use"],
)
def test_a_role_that_overtakes_the_other_is_a_race(own_project: Path, tmp_path: Path, find: str, replace: str) -> None:
    damage(own_project, find, replace)
    ran, _ = run_one_block(own_project, tmp_path / "case", VARIANT.name, SPLITS_OF_SIX_CHUNKS)
    assert "data race" in ran.log


def test_the_source_states_the_shared_memory_of_its_launch() -> None:
    for variant in (VARIANT, ROLLED):
        text = (ROOT / variant.code.path).read_text()
        for heads, dim in ((6, 256), (3, 64)):
            case = GROUPED.case(GROUPED.shapes[-1], {"heads": heads, "dim": dim, "context": 129})
            splits = next(iter(variant.launches(case)))
            assert f"{splits.shared_bytes:,} (G={heads}, D={dim})" in text
