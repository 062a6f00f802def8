"""Where nothing was compared nothing passes: no elements, no written element, a bound or a probe without a figure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from audit.checks import worst
from audit.plan import Selection
from audit.records.kind import PLAN
from audit.records.run import KIND, RunRecord

from ..conftest import Ran
from .projects import RESTORED, audit, make, results

BOUND = 'bounds=[RelL2("y", 1e-6)]'
WRITTEN = 'return {"w": np.arange(8) < 8 // 2}'
EMPTY_STEP = """
    steps=lambda c, x: {"live": {}, "empty": {"x": np.where(np.arange(c.n) < 0, x["x"], 1e9).astype(np.float32)}},"""


def changed(folder: Path, *changes: tuple[str, str], more: str = "") -> Path:
    """The clean project with a few words of its declaration changed."""
    project = make(folder / "project", "f32", "", more=more)
    declaration = project / "kernels/twice.py"
    text = declaration.read_text()
    for old, new in changes:
        assert text.count(old) == 1, (old, text.count(old))
        text = text.replace(old, new)
    declaration.write_text(text)
    return project


def inconclusive(record: RunRecord, variant: str = "fast") -> dict[str, str]:
    """Check -> sentence; the run is inconclusive, agrees with itself, and nothing failed."""
    assert record.summary.verdict == "inconclusive"
    assert list(KIND.disagrees(record, {PLAN: msgspec.json.encode(record.plan)})) == []
    assert not results(record, "fail", variant)
    return {name: result.detail for name, result in results(record, "inconclusive", variant).items()}


def bound(body: str) -> tuple[str, str]:
    return BOUND, f'{BOUND[:-1]}, Bound("mine", lambda c, x, got, want: {body})]'


def test_a_case_without_elements(tmp_path: Path, audit: Callable[..., Ran]) -> None:
    project = changed(tmp_path)
    ran = audit(project, "run", "--axis", "n=0")
    assert ran.code == 3
    assert "x has no elements in this case" in ran.out
    assert "y has no elements in this case" in ran.out


def test_a_case_without_elements_in_a_record(tmp_path: Path) -> None:
    record = audit(changed(tmp_path), Selection(axes={"n": [0]}))
    for variant in ("control", "fast"):
        found = inconclusive(record, variant)
        assert found["inputs"] == "the input x has no elements in this case"
        assert found["workspace"] == "y has no elements in this case"


def test_one_empty_buffer_beside_full_ones(tmp_path: Path) -> None:
    extra = 'Buffer("y", "f32", "n", "out"),\n        Buffer("spare", "f32", "part=0", "{role}"),'
    given = '{"x": r.normal(0, 1, c.n), "spare": np.zeros(0, np.float32)}'
    for role in ("out", "workspace", "in"):
        project = changed(
            tmp_path / role,
            ('Buffer("y", "f32", "n", "out"),', extra.format(role=role)),
            *([('{"x": r.normal(0, 1, c.n)}', given)] if role == "in" else []),
        )
        assert any("spare has no elements" in detail for detail in inconclusive(audit(project)).values())


def test_nothing_must_be_written_at_all(tmp_path: Path) -> None:
    """The kernels write nothing, and the masks ask for nothing: every comparison is empty."""
    project = changed(
        tmp_path,
        (WRITTEN, 'return {"w": np.zeros(8, bool), "y": np.zeros(c.n, bool)}'),
        (BOUND, "bounds=[]"),
        more=RESTORED,
    )
    for source in (project / "kernels").glob("*.cu"):
        source.write_text(source.read_text().replace("y[i] = value;", "").replace("if (threadIdx.x < 4)", "if (n < 0)"))
    found = inconclusive(audit(project))
    assert found["bytes"] == "no element is written, and none was compared with parent control"
    assert "none was compared with live" in found["repeat"]
    assert found["finite"] == "no element is written"
    assert found["workspace"] == "no step of this case must write an element of y"


def test_an_output_that_must_never_be_written(tmp_path: Path) -> None:
    """The workspace is compared; the output, which matters, is not."""
    project = changed(
        tmp_path,
        (WRITTEN, 'return {"w": np.arange(8) < 4, "y": False}'),
        (
            BOUND,
            'bounds=[Bound("w", lambda c, x, got, want: Measured(got["w"][:4] * 0.0, got["w"][:4] * 0.0, ("i",)))]',
        ),
    )
    for source in (project / "kernels").glob("*.cu"):
        source.write_text(source.read_text().replace("y[i] = value;", ""))
    assert inconclusive(audit(project)) == {"workspace": "no step of this case must write an element of y"}


@pytest.mark.parametrize("shape", ["0", "(0, 3)", "(3, 0)"])
def test_a_bound_that_measures_no_element(tmp_path: Path, shape: str) -> None:
    made = f"Measured(np.zeros({shape}), np.zeros({shape}), tuple('ab'[:np.zeros({shape}).ndim]))"
    record = audit(changed(tmp_path, bound(made)))
    assert inconclusive(record) == {"error:mine": "the bound measured no element"}
    assert inconclusive(record, "control") == {"error:mine": "the bound measured no element"}


def test_a_bound_that_never_applies(tmp_path: Path) -> None:
    """In no case of the default plan; a plan that options narrowed makes no claim about it."""
    project = changed(tmp_path, bound("None"))
    record = audit(project)
    assert inconclusive(record, "control") == {"error:mine": "the bound applied to no step of any case of the plan"}
    assert audit(project, Selection(seeds=(2,))).summary.verdict == "pass"


def test_only_bounds_that_do_not_apply_and_no_parent(tmp_path: Path) -> None:
    project = changed(tmp_path, (BOUND, 'bounds=[Bound("mine", lambda c, x, got, want: None)]'))
    found = inconclusive(audit(project, Selection(seeds=(2,))), "control")
    assert found["error"] == "neither a parent nor a bound that applies to this case says what is right"


def test_a_probe_without_a_figure(tmp_path: Path) -> None:
    probe = """
    probes=[Probe("none", lambda c, r: {"x": r.normal(0, 1, c.n)},
                  lambda c, x, got: Measured(*np.zeros((2, 0)), ("i",)))],
    plan={"": [Line({}), Line({}, probe="none")]},"""
    project = changed(tmp_path, more=probe)
    assert inconclusive(audit(project)) == {"probe:none": "the bound measured no element"}


def test_a_step_that_compares_nothing_passes_beside_one_that_does(tmp_path: Path) -> None:
    """As where no row sees a token: nothing is written in that step, nothing measured, and the case passes."""
    empty = "given['x'][0] > 1e8"
    project = changed(
        tmp_path,
        (WRITTEN, f'return {{"w": np.arange(8) < (0 if {empty} else 4), "y": not {empty}}}'),
        bound("Measured(got['y'][x['x'] < 1e8] * 0.0, got['y'][x['x'] < 1e8] * 0.0, ('n',))"),
        (BOUND[:-1], 'bounds=[Bound("y", lambda c, x, got, want: None if x["x"][0] > 1e8 else Measured('
         'np.abs(got["y"] - want["y"]), np.abs(want["y"]) * 1e-6 + 1e-9, ("n",)))'),
        more=EMPTY_STEP,
    )  # fmt: skip
    for source in (project / "kernels").glob("*.cu"):
        text = source.read_text().replace("y[i] = value;", "if (x[0] < 1e8f) y[i] = value;")
        source.write_text(text.replace("if (threadIdx.x < 4)", "if (threadIdx.x < 4 && x[0] < 1e8f)"))
    record = audit(project)
    assert record.summary.verdict == "pass", [one.results for one in record.audits]
    details = {
        (result.check, result.step): (result.verdict, result.detail)
        for one in record.audits
        for result in one.results
        if one.variant == "fast"
    }
    assert details["bytes", "empty"] == ("pass", "no element is written, and none was compared with parent control")
    assert details["finite", "empty"] == ("pass", "no element is written")
    assert details["error:mine", "empty"] == ("pass", "the bound measured no element")
    assert details["workspace", "empty"] == ("pass", "0 elements written, all others untouched")


def test_no_verdict_at_all_is_no_pass() -> None:
    assert worst([]) == "inconclusive"


@pytest.mark.parametrize(
    ("reference", "measure", "words"),
    [
        ("{'y': t, 'first': t[:1]}", "abs(got['y'] - want['first'])", "result y and reference first to have one shape"),
        ("{'y': t, 'total': t.sum()[None]}", "got['y'] / want['total']", "but got (40,) and (1,)"),
        ("{'y': t, 'column': t[:, None]}", "abs(want['column'] - got['y'])", "but got (40, 1) and (40,)"),
        ("{'all': np.zeros(())}", "(got['y'] != want['all']) * 0.0", "but got (40,) and ()"),
    ],
)
def test_a_reference_that_has_the_shape_of_no_output_is_not_broadcast(
    tmp_path: Path, audit: Callable[..., Ran], reference: str, measure: str, words: str
) -> None:
    """A bound of the project's own compares it: numpy would repeat its elements until the shapes agree."""
    made = f"(lambda e: Measured(e, np.full(e.shape, 1e9), ()))({measure})"
    project = changed(
        tmp_path,
        ('return {"y": 2 * np.asarray(given["x"], np.float64)}',
         f'return (lambda t: {reference})(2 * np.asarray(given["x"], np.float64))'),
        (BOUND, f'bounds=[Bound("mine", lambda c, x, got, want: {made})]'),
    )  # fmt: skip
    ran = audit(project, "run")
    assert ran.code == 2, ran.out
    assert words in ran.err
    assert "bound mine raised ValueError" in ran.err
    assert "kernels/twice.py:" in ran.err


def test_errors_of_another_shape_than_the_output_that_names_their_dimensions(
    tmp_path: Path, audit: Callable[..., Ran]
) -> None:
    made = "Measured(np.zeros(3), np.zeros(3), ())"
    project = changed(tmp_path, (BOUND, f'bounds=[Bound("mine", lambda c, x, got, want: {made}, output="y")]'))
    ran = audit(project, "run")
    assert ran.code == 2, ran.out
    assert "bound mine: expected errors of the shape of y, or of its first dimensions, (40,), but got (3,)" in ran.err
