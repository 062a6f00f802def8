"""Each relation permits what it says and no more: every limit at its edge, NaN, infinity, and rows of many shapes."""

from __future__ import annotations

import inspect
from dataclasses import replace

import numpy as np
import pytest

from audit.backends.outcome import Crashed
from audit.checks import CHECKS, Result, View
from audit.checks.bytes import bytes_
from audit.checks.error import error
from audit.checks.judgement import judge, row_dims
from audit.checks.relation import NO_BUFFER, relation, relation_notes
from audit.errors import ProjectError
from audit.formats import encode_bf16, encode_e4m3
from audit.relations import Bitwise, NoWorse, Relation, Ulps, Unrelated, Within
from audit.spec import Array, Buffer

from .planting import changed, put, verdicts


def related(view: View, declared: object) -> View:
    """The view with another relation to its parent."""
    return replace(view, variant=replace(view.variant, relation=declared))


def moved(view: View, ulps: int, index: tuple[int, ...] = (3, 17)) -> View:
    """One element, in the first step, moved by a number of ulps away from zero."""

    def change(array: Array) -> None:
        array[index] = (array[index].view(np.uint32) + np.uint32(ulps)).view(np.float32)

    return changed(view, change)


def judged(view: View, declared: object) -> list[Result]:
    return list(relation(related(view, declared)))


@pytest.mark.parametrize(
    ("declared", "good", "bad"),
    [(Ulps(2), 2, 3), (Ulps(0), 0, 1), (Within(0.0, 3e-7), 1, 2000), (NoWorse(1.5), 1, 1 << 21)],
)
def test_what_is_permitted_passes_and_what_is_beyond_fails(fast: View, declared: Relation, good: int, bad: int) -> None:
    assert verdicts(judged(moved(fast, good), declared)) == ["pass", "pass"]
    first, second = judged(moved(fast, bad), declared)
    assert (first.verdict, second.verdict) == ("fail", "pass")
    assert first.measured
    assert first.limit
    assert not first.measured.value <= first.limit.value
    assert first.where == ("y[rows=3]" if isinstance(declared, NoWorse) else "y[rows=3, n=17]")
    assert sum(first.differences[0].values()) == 1


def test_exactly_one_check_judges_a_buffer(fast: View) -> None:
    other = moved(fast, 1)
    for declared, checks in (
        (Bitwise(), {"bytes"}),
        (Ulps(1), {"relation"}),
        (Unrelated(), set()),
        ({"y": Ulps(1)}, {"relation"}),
    ):
        assert {one.check for one in (*bytes_(related(other, declared)), *judged(other, declared))} == checks


def test_a_pass_with_other_bytes_never_reads_as_equality(fast: View) -> None:
    first, second = judged(moved(fast, 1), Ulps(1))
    assert "equal" not in first.detail
    assert first.detail.startswith("y: 1 of 231 elements differ from parent control, by at most ")
    assert "as accurate as its parent, not the same: relative L2 error " in first.detail
    assert first.largest[0].ulp_at == "y[rows=3, n=17]"
    (errors,) = first.errors
    assert (errors.buffer, errors.reference, errors.as_accurate) == ("y", "fp64", True)
    assert errors.mine.value != errors.parents.value
    assert second.detail.startswith("y: 231 elements equal parent control")


def test_a_larger_error_is_called_less_accurate(fast: View) -> None:
    first, _ = judged(moved(fast, 1 << 20), Within(1.0, 1.0))
    assert first.verdict == "pass"
    assert "less accurate than its parent" in first.detail


def test_bytes_that_fail_come_with_both_errors(fast: View) -> None:
    first, second = bytes_(moved(fast, 1))
    assert [one.buffer for one in first.errors] == ["y"]
    assert second.errors == ()


def test_unrelated_results_are_shown_and_not_judged_and_need_a_bound(fast: View) -> None:
    other = related(moved(fast, 1 << 22), Unrelated())
    assert list(relation(other)) == list(bytes_(other)) == []
    notes = [note for note in relation_notes(other) if note.step == "live"]
    assert [note.check for note in notes] == ["relation"]
    assert notes[0].detail.startswith("unrelated: y: 1 of 231 elements differ from parent control")
    assert notes[0].errors
    assert verdicts(list(error(other))) == ["fail", "pass"]
    bare = replace(other, operator=replace(other.operator, bounds=[]))
    assert verdicts(list(error(bare))) == ["inconclusive"]
    assert verdicts(list(error(related(bare, Ulps(1))))) == []


def test_relations_by_buffer_leave_the_others_bitwise(fast: View) -> None:
    with pytest.raises(ProjectError, match=r"expected outputs and workspaces of .'y'., but got .'z'."):
        judged(fast, {"z": Ulps(1)})
    assert [note.detail for note in relation_notes(related(fast, {"y": Ulps(1)}))] == [NO_BUFFER]
    assert [note.detail for note in relation_notes(related(fast, Ulps(1)))] == []


def test_a_parent_that_crashed_or_did_not_run_is_inconclusive(fast: View) -> None:
    assert fast.parent
    (crashed,) = judged(replace(fast, parent=replace(fast.parent, outcome=Crashed("signal", "11", 0.1))), Ulps(1))
    (absent,) = judged(replace(fast, parent=None), Ulps(1))
    assert (crashed.verdict, absent.verdict) == ("inconclusive", "inconclusive")
    assert verdicts(judged(replace(fast, parent=None, baseline_only=True), Ulps(1))) == []


def test_the_same_variant_at_a_revision_is_compared_bit_for_bit(fast: View) -> None:
    assert fast.parent
    past = replace(related(moved(fast, 1), Ulps(5)), parent=replace(fast.parent, revision="a" * 40))
    assert verdicts(list(bytes_(past))) == ["fail", "pass"]
    assert list(relation(past)) == []


def test_no_worse_needs_the_array_of_its_reference(fast: View) -> None:
    (first, _) = judged(fast, NoWorse(1.5, "exact"))
    assert first.verdict == "inconclusive"
    assert "reference exact has no f64 array for y" in first.detail


@pytest.mark.parametrize("declared", [Ulps(1 << 40), Within(1e30, 1e30), NoWorse(1e30)])
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_on_one_side_fails(fast: View, declared: Relation, wrong: float) -> None:
    assert verdicts(judged(changed(fast, put((0, 0), wrong)), declared)) == ["fail", "pass"]


def words(dtype: str, values: list[float]) -> Array:
    """The bits of values in a dtype."""
    if dtype in ("bf16", "e4m3"):
        return (encode_bf16 if dtype == "bf16" else encode_e4m3)(np.array(values))
    array = np.array(values).astype({"f16": "f2", "f32": "f4", "f64": "f8", "i32": "i4"}[dtype])
    return array.view(f"u{array.itemsize}")


def outside(declared: Relation, dtype: str, mine: list[float], theirs: list[float], right: object = None) -> int:
    buffer = Buffer("y", dtype, f"n={len(mine)}", "out")
    one, other = words(dtype, mine), words(dtype, theirs)
    expected = None if right is None else np.asarray(right, np.float64)
    return judge(declared, buffer, one, other, np.ones(one.shape, bool), expected).outside


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64", "bf16", "e4m3"])
def test_every_floating_dtype_is_judged_in_its_own_ulps(dtype: str) -> None:
    one = words(dtype, [1.0])
    for steps in (1, 2, 3):
        buffer = Buffer("y", dtype, "n=1", "out")
        found = judge(Ulps(2), buffer, one + one.dtype.type(steps), one, np.ones(1, bool), None)
        assert (found.value, found.outside) == (steps, int(steps > 2))


@pytest.mark.parametrize("declared", [Ulps(1), Within(0.1, 0.1)])
def test_nan_agrees_with_nan_and_infinity_with_infinity_of_its_sign(declared: Relation) -> None:
    quiet, other = np.array([0x7FC00000], np.uint32), np.array([0xFFC00001], np.uint32)
    buffer = Buffer("y", "f32", "n=1", "out")
    assert judge(declared, buffer, quiet, other, np.ones(1, bool), None).outside == 0
    assert outside(declared, "f32", [np.inf], [np.inf]) == 0
    assert outside(declared, "f32", [np.inf], [-np.inf]) == 1
    assert outside(declared, "f32", [float(np.finfo(np.float32).max)], [np.inf]) == 1
    assert outside(declared, "f32", [np.nan, 1.0], [1.0, np.nan]) == 2
    assert outside(declared, "f32", [0.0], [-0.0]) == 0


def test_integers_are_equal_under_ulps_and_near_within() -> None:
    assert outside(Ulps(100), "i32", [1, 2], [1, 3]) == 1
    assert outside(Within(1.0, 0.0), "i32", [1, 2], [1, 3]) == 0
    assert outside(Within(1.0, 0.0), "i32", [-(2**31)], [2**31 - 1]) == 1


@pytest.mark.parametrize(
    ("shape", "cut"),
    [((7, 33), 1), ((1000, 4), 0), ((1000, 8, 4), 1), ((5,), 0), ((64,), 0), ((4, 32), 1), ((2, 3, 31), 1), ((), 0)],
)
def test_a_row_has_at_least_32_elements(shape: tuple[int, ...], cut: int) -> None:
    assert row_dims(shape) == cut


def test_no_worse_holds_row_by_row_and_over_all() -> None:
    right = np.linspace(1, 2, 128).reshape(4, 32)
    parent = (right * (1 + 1e-4)).astype(np.float32)
    buffer = Buffer("y", "f32", "rows=4 n=32", "out")

    def outside_of(mine: Array) -> tuple[int, tuple[int, ...]]:
        given = (mine.astype(np.float32).view("u4"), parent.view("u4"))
        found = judge(NoWorse(2.0), buffer, *given, np.ones(mine.shape, bool), right)
        return found.outside, found.at

    assert outside_of(right * (1 - 1.9e-4))[0] == 0
    assert outside_of(right * (1 - 2.1e-4))[0] == 5
    wrong = right * (1 + 1e-4)
    wrong[2] = right[2] * (1 + 3e-4)  # one bad row hides in the error over all
    assert outside_of(wrong) == (1, (2,))


def test_an_error_below_the_rounding_of_the_result_is_not_held_against_a_kernel() -> None:
    exact = [1.0] * 32
    assert outside(NoWorse(1.0), "bf16", exact, exact, right=np.ones(32)) == 0
    assert outside(NoWorse(1.0), "f32", [1 + 2.0**-24] * 32, exact, right=np.ones(32)) == 0
    assert outside(NoWorse(1.0), "f32", [1 + 2.0**-22] * 32, exact, right=np.ones(32)) == 2


def test_a_parent_that_was_lucky_in_a_row_is_measured_by_what_rounded_inputs_do() -> None:
    right = np.linspace(1, 2, 64).reshape(2, 32)
    parent = right.astype(np.float32)  # exact but for the last rounding
    mine = (right * (1 + 1e-6)).astype(np.float32)
    buffer, written = Buffer("y", "f32", "rows=2 n=32", "out"), np.ones(right.shape, bool)

    def outside_of(nearby: Array | None) -> int:
        return judge(NoWorse(2.0), buffer, mine.view("u4"), parent.view("u4"), written, right, nearby).outside

    assert outside_of(None) == 3
    assert outside_of(right * (1 + 1e-6)) == 0
    moved = right * (1 + 1e-6)
    moved[1] = right[1]  # well conditioned, so that its row may not be off
    assert outside_of(moved) == 1
    assert outside_of(np.full(right.shape, np.nan)) == 3


def test_a_parent_with_an_infinite_error_permits_nothing() -> None:
    good, right = [1.0] * 32, np.ones(32)
    parent = [np.inf, *good[1:]]
    assert outside(NoWorse(2.0), "f32", good, parent, right) == 0
    assert outside(NoWorse(2.0), "f32", [np.nan, *good[1:]], parent, right) == 2
    assert outside(NoWorse(2.0), "f32", [5.0, *good[1:]], parent, right) == 2
    assert outside(NoWorse(2.0), "f32", parent, parent, right) == 0


def test_it_is_one_of_the_checks() -> None:
    assert inspect.unwrap(CHECKS["relation"]) is relation
