"""`--shape`: may be left out where there is one, `all` for a record of each, and an error that lists what there is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from audit.cli.shapes import chosen_shape, chosen_shapes, require_variants
from audit.errors import PlanError
from audit.project import find_project

from ..conftest import Ran

Audit = Callable[..., Ran]


def test_the_only_shape_may_be_left_out(softmax_project: Path) -> None:
    project = find_project(softmax_project)
    assert chosen_shape(project, None) == "softmax"
    assert chosen_shapes(project, None) == chosen_shapes(project, "all") == ("softmax",)


def test_several_shapes_are_listed_where_none_is_given(two_shapes: Path) -> None:
    project = find_project(two_shapes)
    assert chosen_shapes(project, "all") == ("short", "long")
    with pytest.raises(PlanError, match="expected one of short, long, or `all` for each of them, but none was given"):
        chosen_shapes(project, None)
    with pytest.raises(PlanError, match="expected one of short, long, but none was given; name one"):
        chosen_shape(project, None)


@pytest.mark.parametrize("choose", [chosen_shape, chosen_shapes])
def test_a_mistyped_shape_is_answered_with_a_close_one(two_shapes: Path, choose: Callable[..., object]) -> None:
    with pytest.raises(PlanError, match=r"expected one of short, long, but got 'shrot'; did you mean 'short'\?"):
        choose(find_project(two_shapes), "shrot")


def test_one_shape_alone_is_not_all(two_shapes: Path) -> None:
    with pytest.raises(PlanError, match="expected one of short, long, but got 'all'"):
        chosen_shape(find_project(two_shapes), "all")


def test_a_shape_named_all_is_that_shape(two_shapes: Path) -> None:
    source = two_shapes / "kernels/softmax.py"
    source.write_text(source.read_text().replace('Shape("long"', 'Shape("all"'))
    assert chosen_shapes(find_project(two_shapes), "all") == ("all",)


def test_a_mistyped_variant_is_answered_with_a_close_one(softmax_project: Path) -> None:
    project = find_project(softmax_project)
    require_variants(project, "softmax", ("fast", "wrong"))
    with pytest.raises(
        PlanError, match=r"operator softmax.*expected one of control, fast, wrong, .*did you mean 'fast'"
    ):
        require_variants(project, "softmax", ("fast", "fats"))


def test_all_shapes_leave_a_record_each_and_the_worst_verdict(two_shapes: Path, audit: Audit) -> None:
    ran = audit(two_shapes, "run", "--shape", "all", "--seed", "1", "--json")
    assert ran.code == 1, ran.out + ran.err
    objects = [json.loads(line) for line in ran.out.splitlines()]
    assert [(one["shape"], one["verdict"]) for one in objects] == [("short", "pass"), ("long", "fail")]
    assert len({one["evidence"] for one in objects}) == 2
    assert all((two_shapes / one["page"]).is_file() for one in objects)
    assert [one["check"] for one in objects[1]["findings"]] == ["bytes"]


def test_all_shapes_of_sanitizers(two_shapes: Path, audit: Audit) -> None:
    words = ("sanitize", "--shape", "all", "--tool", "synccheck", "--variant", "fast")
    ran = audit(two_shapes, *words)
    assert ran.code == 0, ran.out + ran.err
    assert [line for line in ran.out.splitlines() if line.startswith("shape ")] == ["shape short", "shape long"]
    assert ran.out.count("\nevidence ") == 2


def test_nothing_runs_where_one_of_all_plans_cannot_be_made(two_shapes: Path, audit: Audit) -> None:
    ran = audit(two_shapes, "run", "--shape", "all", "--variant", "fats")
    assert (ran.code, ran.out) == (2, "")
    assert "did you mean 'fast'?" in ran.err
    assert not (two_shapes / "runs").exists()
