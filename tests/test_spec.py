"""The vocabulary: axes admit what they promise, cases have stable names and seeds, buffers have extents."""

from __future__ import annotations

import re

import ml_dtypes
import pytest

from audit.errors import PlanError, ProjectError
from audit.spec import Axis, Buffer, Case, Operator, Probe, Shape, Source, Variant


def operator() -> Operator:
    return Operator(
        "op",
        [Axis("rows", 4, at_least=1, at_most=8), Axis("page", 16, multiple_of=16, quiet=True), Axis("layout", "split")],
        buffers=lambda _: [],
        inputs=lambda *_: {},
        variants=[Variant("control", Source("k.cu"), lambda _: [])],
        probes=[Probe("ones", lambda *_: {}, lambda *_: None)],  # type: ignore[arg-type, return-value]
    )


@pytest.mark.parametrize("value", [1, 8])
def test_an_axis_admits_its_range(value: int) -> None:
    Axis("rows", 4, at_least=1, at_most=8).admit(value)


@pytest.mark.parametrize(
    ("axis", "value", "words"),
    [
        (Axis("rows", 4, at_least=1), 0, "axis rows: expected an integer of at least 1, but got 0"),
        (Axis("rows", 4, at_most=8), 9, "at most 8, but got 9"),
        (Axis("rows", 4, at_least=1), 2.5, "but got 2.5"),
        (Axis("rows", 4, at_least=1), "many", "but got 'many'"),
        (Axis("page", 16, multiple_of=16), 24, "axis page: expected a multiple of 16, but got 24"),
        (Axis("layout", "split", values=("split", "joined")), "other", "expected one of ['split', 'joined']"),
    ],
)
def test_an_axis_refuses_what_it_does_not_promise(axis: Axis, value: int | float | str, words: str) -> None:
    with pytest.raises(PlanError, match=re.escape(words)):
        axis.admit(value)


def test_an_axis_without_limits_admits_anything() -> None:
    for value in (-1, 0.5, "text"):
        Axis("free", 0).admit(value)


def test_a_case_takes_the_shapes_values_then_those_given_then_defaults() -> None:
    case = operator().case(Shape("s", {"rows": 6}), {"layout": "joined"})
    assert case.axes == {"rows": 6, "page": 16, "layout": "joined"}
    assert (case.rows, case.layout) == (6, "joined")


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ({"row": 1}, "expected an axis of ['layout', 'page', 'rows'], but got 'row'"),
        ({"rows": 5}, "shape s means rows=6, but got rows=5"),
        ({"page": 24}, "multiple of 16"),
    ],
)
def test_a_case_that_the_operator_does_not_have_is_refused(axes: dict[str, int | float | str], words: str) -> None:
    with pytest.raises(PlanError, match=re.escape(words)):
        operator().case(Shape("s", {"rows": 6}), axes)


def test_a_case_is_named_by_shape_origin_and_axes_without_quiet_defaults() -> None:
    shape = Shape("s", {"rows": 6})
    assert operator().case(shape, {}, seed=3).id == "s/seed3/rows=6,layout=split"
    assert operator().case(shape, {"page": 32}).id == "s/seed0/rows=6,page=32,layout=split"
    assert operator().case(shape, {}, capture="set/layer0").id.startswith("s/set/layer0/")
    assert operator().case(shape, {}, probe="ones").id.startswith("s/probe-ones/")


def test_a_case_without_that_axis_says_which_it_has() -> None:
    with pytest.raises(AttributeError, match=re.escape("expected one of the axes ['n'], but got 'rows'")):
        _ = Case("s", "op", {"n": 1}).rows


def test_the_generator_depends_on_the_whole_identity_and_on_nothing_else() -> None:
    def draw(case: Case) -> float:
        return float(case.rng().standard_normal())

    case = Case("s", "op", {"n": 1}, seed=1)
    assert draw(case) == draw(Case("s", "op", {"n": 1}, seed=1))
    others = [Case("t", "op", {"n": 1}, seed=1), Case("s", "op", {"n": 2}, seed=1), Case("s", "op", {"n": 1}, seed=2)]
    assert len({draw(each) for each in (case, *others)}) == 4


def test_the_extents_of_a_buffer_are_axes_or_written_sizes() -> None:
    case = Case("s", "op", {"rows": 3, "layout": "split"})
    buffer = Buffer("y", "f16", "rows head=2 dim=5", "out")
    assert buffer.extents(case) == (("rows", 3), ("head", 2), ("dim", 5))
    assert (buffer.dims_of(case), buffer.shape(case)) == (("rows", "head", "dim"), (3, 2, 5))
    assert buffer.nbytes(case) == 3 * 2 * 5 * 2
    assert Buffer("t", "e4m3", "n=7", "in").numpy_dtype() == ml_dtypes.float8_e4m3fn


@pytest.mark.parametrize("dims", ["columns", "layout", "n=", "n=x"])
def test_a_dimension_without_a_size_is_refused(dims: str) -> None:
    with pytest.raises(ProjectError, match=re.escape(f"buffer y: dimension {dims!r}")):
        Buffer("y", "f32", dims, "out").shape(Case("s", "op", {"rows": 3, "layout": "split"}))


def test_an_unknown_dtype_is_refused() -> None:
    with pytest.raises(ProjectError, match=r"buffer y: expected a dtype of .*, but got 'float32'"):
        Buffer("y", "float32", "n=1", "out").numpy_dtype()


def test_variants_and_probes_are_found_by_name_or_refused() -> None:
    declared = operator()
    assert (declared.variant("control").name, declared.probe("ones").name) == ("control", "ones")
    with pytest.raises(PlanError, match=r"expected a variant of \['control'\], but got 'contrl'"):
        declared.variant("contrl")
    with pytest.raises(PlanError, match=r"expected a probe of \['ones'\], but got 'one'"):
        declared.probe("one")
