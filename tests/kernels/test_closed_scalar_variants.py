"""Closed variants of the scalar operator: the bytes of control with another schedule of PV loads, run only by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from audit import plan as planning
from audit.plan import Selection
from audit.project import find_project

ROOT = Path(__file__).resolve().parents[2]
CLOSED = ("pv_unroll4", "pv_prefetch")
TRAP = "behind=CANARY.to_bytes("
PAST_ALL_MEMORY = "behind=(1 << 30).to_bytes("


def words(variant: str, *contexts: int, **axes: str) -> list[str]:
    """A narrowed plan of q1: 3 heads of 64 dimensions, pages of 16 tokens."""
    chosen = [("heads", 3), ("dim", 64), *(("context", context) for context in contexts), *axes.items()]
    options = [word for name, value in chosen for word in ("--axis", f"{name}={value}")]
    return ["run", "--shape", "q1", "--variant", variant, "--json", *options]


def planted(project: Path, file: str, *edits: tuple[str, str]) -> Path:
    source = project / file
    text = source.read_text(encoding="utf-8")
    for old, new in edits:
        assert text.count(old) == 1
        text = text.replace(old, new)
    source.write_text(text, encoding="utf-8")
    return project


@pytest.mark.parametrize("variant", CLOSED)
def test_it_leaves_the_bytes_of_control(audit: Callable, tmp_path: Path, variant: str) -> None:
    """Every remainder of four tokens, alone, in a second page, and in a second partition."""
    contexts = (1, 2, 3, 4, 5, 18, 19, 1024, 1026, 1031)
    ran = audit(ROOT, *words(variant, *contexts), "--out", str(tmp_path))
    assert ran.code == 0, ran.out + ran.err
    compared = [result for result in ran.results() if result["check"] == "bytes" and result["variant"] == variant]
    assert {result["case"] for result in compared} == {result["case"] for result in ran.results()}
    assert len({result["case"] for result in compared}) == len(contexts)
    assert {result["verdict"] for result in compared} == {"pass"}


@pytest.mark.parametrize("variant", CLOSED)
def test_it_follows_the_lengths(audit: Callable, tmp_path: Path, variant: str) -> None:
    ran = audit(ROOT, *words(variant, 4096, lengths="replayed"), "--out", str(tmp_path))
    assert ran.code == 0, ran.out + ran.err
    assert ran.json["passed"] == 2


@pytest.mark.parametrize(
    ("variant", "old", "new"),
    [
        pytest.param("pv_unroll4", "weight[i + j], code[j]", "weight[i + 3 - j], code[3 - j]", marks=pytest.mark.full),
        ("pv_unroll4", "for (; i < tokens; ++i)", "for (; i + 1 < tokens; ++i)"),
        ("pv_prefetch", "acc = add_value(acc, weight[i], code);", "acc = add_value(acc, weight[i], next);"),
    ],
    ids=["order", "last token", "token"],
)
def test_another_schedule_of_sums_is_caught(
    audit: Callable, own_project: Path, variant: str, old: str, new: str
) -> None:
    ran = audit(planted(own_project, "kernels/scalar/closed/pv_schedules.cuh", (old, new)), *words(variant, 33))
    assert ran.code == 1, ran.out + ran.err
    assert "bytes" in ran.failed()
    assert {result["variant"] for result in ran.results() if result["verdict"] == "fail"} == {variant}


def test_no_token_past_the_length_is_asked_for(audit: Callable, own_project: Path) -> None:
    """16 tokens fill the one page that the table names; the entry after it names a page outside all memory."""
    planted(own_project, "kernels/paged/axes.py", (TRAP, PAST_ALL_MEMORY))
    for variant in CLOSED:
        clean = audit(own_project, *words(variant, 16))
        assert clean.code == 0, clean.out + clean.err
    planted(own_project, "kernels/scalar/closed/pv_schedules.cuh", ("i + 1 < tokens;", "i < tokens;"))
    ran = audit(own_project, *words("pv_prefetch", 16))
    assert ran.code == 1, ran.out + ran.err
    assert "completion" in ran.failed()


def test_it_runs_only_when_it_is_named() -> None:
    project = find_project(ROOT)
    for shape in project.operators["scalar"].shapes:
        planned = planning.make_plan(project, shape.name, Selection(full=True), arch="sm_90", time_limit=60)
        assert not set(CLOSED) & {variant.name for variant in planned.variants}
    for name in CLOSED:
        variant = project.operators["scalar"].variant(name)
        assert (variant.parent, variant.status) == ("control", "closed")
        assert variant.why
        planned = planning.make_plan(project, "q1", Selection(variants=(name,)), arch="sm_90", time_limit=60)
        assert [(each.name, each.parent) for each in planned.variants] == [("control", None), (name, "control")]
