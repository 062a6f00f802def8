"""The scalar variants after `token_groups`: loads one step ahead, heads spread over blocks, halves of the heads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
REDUCER, SCHEDULES, SHARES, VALUES = (
    f"kernels/scalar/streamed/{name}.cuh"
    for name in ("column_reduce", "token_schedules", "head_shares", "token_values")
)
FEW = "shares > 1 && active_partitions(length) <= kShareBlocks / shares"
SMALL, LARGE = {"heads": 3, "dim": 64}, {"heads": 6, "dim": 256}


def words(variant: str, geometry: dict[str, int], *contexts: int) -> list[str]:
    """A narrowed plan of q1: pages of 16 tokens."""
    chosen = [*geometry.items(), *(("context", context) for context in contexts)]
    options = [word for name, value in chosen for word in ("--axis", f"{name}={value}")]
    return ["run", "--shape", "q1", "--variant", variant, "--json", *options]


def planted(project: Path, file: str, old: str, new: str) -> None:
    source = project / file
    text = source.read_text(encoding="utf-8")
    assert text.count(old) == 1
    source.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.parametrize(
    ("variant", "geometry", "contexts", "shared"),
    [
        ("token_ahead", SMALL, (1, 7, 8, 9, 63, 64, 65, 127, 128, 129, 1024, 1025, 1089), True),
        ("token_ahead", SMALL, (1, 8, 65, 129, 1024, 1089), False),
        ("token_ahead", LARGE, (65,), True),
        ("token_ahead", LARGE, (65,), False),
        pytest.param(
            "head_halves", LARGE, (1, 64, 1026), True, marks=pytest.mark.full
        ),  # with shares there are no halves
        ("head_halves", LARGE, (1, 64, 1026), False),
    ],
    ids=[
        f"{heads}, {blocks}"
        for heads in ("3 heads", "6 heads", "halves of 6 heads")
        for blocks in ("shared out", "a block a partition")
    ],
)
def test_the_bytes_are_the_parents(
    audit: Callable, own_project: Path, variant: str, geometry: dict[str, int], contexts: tuple[int, ...], shared: bool
) -> None:
    if not shared:
        planted(own_project, SHARES, FEW, "false")
    ran = audit(own_project, *words(variant, geometry, *contexts))
    assert ran.code == 0, ran.out + ran.err
    compared = {r["case"] for r in ran.results() if (r["check"], r["variant"]) == ("bytes", variant)}
    assert len(compared) == len(contexts)


def test_where_the_sharing_ends(audit: Callable, own_project: Path) -> None:
    """Three shares a partition: with 6 blocks, the heads of 2 partitions are spread over blocks, those of 3 are not."""
    planted(own_project, SHARES, "<= kShareBlocks / shares", "<= 6 / shares")
    ran = audit(own_project, *words("token_ahead", SMALL, 2048, 2049))
    assert ran.code == 0, ran.out + ran.err


def test_the_reducer_one_step_ahead(audit: Callable, own_project: Path) -> None:
    """With 4 links a step, 8 partitions are two steps, and a ninth is left over."""
    planted(own_project, REDUCER, "kLinks = 16", "kLinks = 4")
    ran = audit(own_project, *words("token_ahead", SMALL, 8200))
    assert ran.code == 0, ran.out + ran.err
    planted(own_project, REDUCER, "i + (half + 1) * kLinks", "i + half * kLinks")
    ran = audit(own_project, *words("token_ahead", SMALL, 8200))
    assert ran.code == 1, ran.out + ran.err
    assert "bytes" in ran.failed()


@pytest.mark.full
@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (SHARES, "blockIdx.x % shares * heads", "0"),
        (SCHEDULES, "(step + 1) % steps * kScored * D", "0"),
        (SCHEDULES, "(i + 1) % batches * kAdded * kSlab", "i * kAdded * kSlab"),
        (VALUES, "d + g * kColumns * kVector + e", "d + g * kVector + e"),
        (VALUES, "% kColumns + g * kColumns;", "% kColumns;"),
        (VALUES, "threadIdx.x % 4 / kColumns * kHeads", "0"),
    ],
    ids=["one share", "a step's keys", "a batch's values", "a column", "half of the values", "half of the heads"],
)
def test_a_fault_shows_in_the_bytes(audit: Callable, own_project: Path, file: str, old: str, new: str) -> None:
    """Six heads without shares, the only case with halves."""
    planted(own_project, file, old, new)
    if file != SHARES:
        planted(own_project, SHARES, FEW, "false")
    ran = audit(own_project, *words("head_halves", LARGE, 129))
    assert ran.code == 1, ran.out + ran.err
    assert "head_halves" in {result["variant"] for result in ran.results() if result["verdict"] == "fail"}
