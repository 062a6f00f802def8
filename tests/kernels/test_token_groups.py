"""The scalar variant `token_groups`: the bytes of its parent at every edge of a stage, a run and a partition."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STREAM, SCORES, VALUES, WEIGHTS = (
    f"kernels/scalar/streamed/token_{part}.cuh" for part in ("stream", "scores", "values", "weights")
)
WIDTH = "kernels/paged/inputs.cuh"
WIDEST = "bits % 16 == 0 ? 16 : bits % 8 == 0 ? 8 : 1"
SMALL, LARGE = {"heads": 3, "dim": 64}, {"heads": 6, "dim": 256}


def words(geometry: dict[str, int], *contexts: int, **axes: str | int) -> list[str]:
    """A narrowed plan of q1: pages of 16 tokens unless `axes` say otherwise."""
    chosen = [*geometry.items(), *(("context", context) for context in contexts), *axes.items()]
    options = [word for name, value in chosen for word in ("--axis", f"{name}={value}")]
    return ["run", "--shape", "q1", "--variant", "token_groups", "--json", *options]


def planted(project: Path, file: str, old: str, new: str) -> None:
    source = project / file
    text = source.read_text(encoding="utf-8")
    assert text.count(old) == 1
    source.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.parametrize(
    ("geometry", "contexts"),
    [
        (SMALL, (1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 257, 1023, 1024, 1025, 1031)),
        (LARGE, (1, 8, 17, 33, 1026)),
    ],
    ids=["3 heads", "6 heads"],
)
def test_the_bytes_are_the_parents(
    audit: Callable, tmp_path: Path, geometry: dict[str, int], contexts: tuple[int, ...]
) -> None:
    ran = audit(ROOT, *words(geometry, *contexts), "--out", str(tmp_path))
    assert ran.code == 0, ran.out + ran.err
    compared = {r["case"] for r in ran.results() if (r["check"], r["variant"]) == ("bytes", "token_groups")}
    assert len(compared) == len(contexts)


def test_it_follows_the_lengths(audit: Callable, tmp_path: Path) -> None:
    ran = audit(ROOT, *words(SMALL, 4096, lengths="replayed"), "--out", str(tmp_path))
    assert ran.code == 0, ran.out + ran.err


@pytest.mark.parametrize("width", [8, 1])
def test_a_narrower_copy_leaves_the_same_bytes(audit: Callable, own_project: Path, width: int) -> None:
    planted(own_project, WIDTH, WIDEST, str(width))
    ran = audit(own_project, *words(LARGE, 33))
    assert ran.code == 0, ran.out + ran.err


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (STREAM, "template wait<kStages - 2>", "template wait<kStages - 1>"),
        (STREAM, "x ^ 4 * (token & 1)", "x ^ 4 * (token & 2)"),
        (SCORES, "second ? eight[1] : eight[0]", "second ? eight[0] : eight[1]"),
        (VALUES, "!Full && i >= count", "!Full && i + 1 >= count"),
        (WEIGHTS, "kGroupThreads * (v + 2 * j)", "kGroupThreads * (4 * v + j)"),
    ],
    ids=["a wait too short", "a vector misplaced", "the tree's halves", "short of the last token", "another tree"],
)
def test_a_fault_shows_in_the_bytes(audit: Callable, own_project: Path, file: str, old: str, new: str) -> None:
    planted(own_project, file, old, new)
    ran = audit(own_project, *words(LARGE, 1007))
    assert ran.code == 1, ran.out + ran.err
    assert "bytes" in ran.failed()
    assert {result["variant"] for result in ran.results() if result["verdict"] == "fail"} == {"token_groups"}


def test_no_table_entry_past_the_length_is_read(audit: Callable, own_project: Path) -> None:
    """16 tokens fill the one page that the table names; the entry after it names a page outside all memory."""
    planted(own_project, "kernels/paged/axes.py", "behind=CANARY.to_bytes(", "behind=(1 << 30).to_bytes(")
    clean = audit(own_project, *words(SMALL, 16))
    assert clean.code == 0, clean.out + clean.err
    planted(own_project, STREAM, "run * kRun < partition.tokens", "run * kRun <= partition.tokens")
    planted(own_project, STREAM, "plain_ = bytes_ == kVector ? tokens / kStageTokens : 0;", "plain_ = stages_;")
    ran = audit(own_project, *words(SMALL, 16))
    assert ran.code == 1, ran.out + ran.err
    assert "completion" in ran.failed()
