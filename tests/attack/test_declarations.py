"""A mistake in a declaration, and a hook that raises or returns something else, end with one line and exit code 2.

The line names the file, the operator, the field or hook, what was expected and what came.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from audit.declaration import admit, mismatch
from audit.errors import ProjectError
from audit.project import find_project
from audit.spec import Axis, Buffer, Launch, Operator, Shape

from ..conftest import ROOT, Ran

DECLARATION = """
import numpy as np

from audit.bounds import RelL2
from audit.spec import *


def softmax64(case, inputs):
    x = inputs["x"].astype(np.float32).astype(np.float64)
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return {"y": e / e.sum(axis=-1, keepdims=True)}


def launches(case):
    return [Launch("softmax_control", (case.rows,), (128,), 0, ("x", "y", case.n))]


def buffers(case):
    return [Buffer("x", "f32", "rows n", "in"), Buffer("y", "f32", "rows n", "out")]


def inputs(case, rng):
    return {"x": rng.normal(0, 3, (case.rows, case.n))}


def steps(case, inputs):
    return {"live": {}, "restore": {}}


def written(case, inputs):
    return {"y": np.ones((case.rows, 1), bool)}


def describe(case):
    return "rows of normal numbers"


def derived(case, inputs, got):
    return got["y"].sum(axis=-1)


def measure(case, inputs, got, expected):
    error = abs(got["y"] - expected["y"])
    return Measured(error, np.full(error.shape, 1e-6), ())


def expect(case, inputs, got):
    return Measured(abs(got["y"] - 1 / case.n), np.full(got["y"].shape, 1e-6), ())


def mutate(case, inputs, right, references):
    return {"y": right["y"] * np.float32(1.01)}


def admit_inputs(case, inputs):
    pass


def share(case, inputs, references):
    return 1.0


softmax = Operator(
    "softmax",
    axes=[Axis("rows", 7), Axis("n", 33, at_least=1)],
    buffers=buffers,
    inputs=inputs,
    variants=[Variant("control", Source("kernels/control.cu"), launches)],
    references=[Reference("fp64", softmax64, computed_by=lambda case: "numpy")],
    bounds=[RelL2("y", 1e-6), Bound("largest", measure)],
    shapes=[Shape("wide", {"rows": 3})],
    plan={"wide": [Line({"n": 33}), Line({}, probe="equal")]},
    probes=[Probe("equal", lambda case, rng: {"x": np.ones((case.rows, case.n))}, expect)],
    mutations=[Mutation("scaled", mutate)],
    steps=steps,
    written=written,
    describe=describe,
    derived={"total": derived},
    admit_inputs=admit_inputs,
    omission_share=share,
)
"""

# what stands there, what stands there by mistake, and parts of the line
MISTAKES = (
    ('axes=[Axis("rows", 7), Axis("n", 33, at_least=1)]', 'axes={"rows": 7}', "axes: expected a list of Axis"),
    ('Axis("rows", 7)', '"rows"', "axes[0]: expected an Axis, but got 'rows' (str)"),
    ('Axis("rows", 7)', 'Axis("rows", [7])', "axes[0].default: expected an int or a number or a str"),
    ('Axis("rows", 7)', 'Axis("n", 7)', "axes: expected distinct names, but got 'n' twice"),
    ('Axis("rows", 7)', 'Axis("no name", 7)', "axes[0].name: expected a name that Python takes for an attribute"),
    ("buffers=buffers", 'buffers={"x": "f32"}', "buffers: expected a function, but got {'x': 'f32'} (dict)"),
    ("buffers=buffers", "buffers=[]", "buffers: expected a function"),
    ('Source("kernels/control.cu")', '"kernels/control.cu"', "variants[0].code: expected a Source or a Machine or a "
     "Binary"),
    ('Source("kernels/control.cu")', "Source(4)", "variants[0].code.path: expected a str, but got 4 (int)"),
    ('Source("kernels/control.cu")', 'Source("k.cu", flags=("-DROWS=3",))', "code.flags: expected words for nvcc"),
    ('Source("kernels/control.cu")', 'Source("k.cu", flags=("-o", "k"))', "code.flags: expected words for nvcc"),
    ('Source("kernels/control.cu")', 'Source("k.cu", flags="-O3")', "code.flags: expected a tuple of str"),
    (', launches)]', ', launches, parent="base")]', "[0].parent: expected a variant of 'control', but got 'base'"),
    (', launches)]', ', launches, status="admited")]', "variants[0].status: expected one of control, admitted"),
    (', launches)]', ', launches, evidence="runs/x")]', "variants[0].evidence: expected a tuple of str"),
    (", launches)]", ", [])]", "variants[0].launches: expected a function, but got [] (list)"),
    ('variants=[Variant(', 'variants=(Variant(', "variants: expected a list of Variant, but got a Variant"),
    ('[Shape("wide", {"rows": 3})]', '["wide"]', "shapes[0]: expected a Shape, but got 'wide' (str)"),
    ('[Shape("wide", {"rows": 3})]', '"wide"', "shapes: expected a list of Shape, but got 'wide' (str)"),
    ('Shape("wide"', 'Shape("../wide"', "shapes[0].name: expected a plain name"),
    ('Shape("wide"', 'Shape("wi\\x00de"', "shapes[0].name: expected a plain name"),
    ('Shape("wide"', 'Shape("w" * 101', "shapes[0].name: expected a plain name"),
    ('Shape("wide", {"rows": 3})', 'Shape("wide", {"row": 3})', "shapes[0].fixed: expected an axis of 'rows', 'n'"),
    ('Bound("largest", measure)', "measure", "bounds[1]: expected a Bound, but got a function"),
    ('Bound("largest", measure)', 'Bound("largest", 1e-6)', "bounds[1].measure: expected a function"),
    ('[Reference("fp64", softmax64, computed_by=lambda case: "numpy")]', "[softmax64]", "references[0]: expected a"),
    ('[Reference("fp64", softmax64, computed_by=lambda case: "numpy")]', "softmax64", "references: expected a list of"),
    ("[Line({\"n\": 33}), ", '[{"n": 33}, ', "plan['wide'][0]: expected a Line, but got {'n': 33} (dict)"),
    ("plan={", 'plan={"wild": [Line()], ', "plan (key): expected a shape of '', 'wide', but got 'wild'"),
    ('probe="equal"', 'probe="equals"', "plan['wide'][1].probe: expected a probe of 'equal', but got 'equals'"),
    ('derived={"total": derived}', "derived=derived", "derived: expected a dict, but got a function"),
    ('mutations=[Mutation("scaled", mutate)]', "mutations=mutate", "mutations: expected a list of Mutation"),
    ('    steps=steps,', '    steps={"live": {}},', "steps: expected a function"),
    ('"softmax",\n', '"soft/max",\n', "name: expected a plain name"),
    ('"softmax",\n', '"soft\\x1b[31mmax",\n', "name: expected a plain name"),
    ('"softmax",\n', '".softmax",\n', "name: expected a plain name"),
)  # fmt: skip

# hook, what it returns by mistake (or raises), and parts of the line
HOOKS = (
    ("buffers", '{"x": 1}', "what buffers returned: expected a list of Buffer"),
    ("buffers", '[Buffer("x", "f32", "rows n", "input"), Buffer("y", "f32", "rows n", "out")]', "role: expected one"),
    ("buffers", '[Buffer("x", "fp32", "rows n", "in"), Buffer("y", "f32", "rows n", "out")]', "dtype: expected one"),
    ("buffers", '[Buffer("x/y", "f32", "rows n", "in"), Buffer("y", "f32", "rows n", "out")]', "[0].name: expected"),
    ("buffers", '[Buffer("y", "f32", "rows n", "in"), Buffer("y", "f32", "rows n", "out")]', "expected distinct names"),
    ("buffers", '[Buffer("x", "f32", "rows n", "in", offset=-4), Buffer("y", "f32", "rows n", "out")]', "[0].offset"),
    ("launches", "None", "launches of control returned: expected a list of Launch, but got None"),
    ("launches", 'Launch("softmax_control", (case.rows,), (128,), 0, ("x", "y", case.n))', "a list of Launch"),
    ("launches", '[Launch("softmax_control", case.rows, (128,), 0, ("x", "y", 1))]', "grid: expected a tuple of int"),
    ("launches", '[Launch("softmax_control", (0,), (128,), 0, ("x", "y", 1))]', "[0].grid: expected one to three pos"),
    ("launches", '[Launch("softmax_control", (7,), (128,), -1, ("x", "y", 1))]', "[0].shared_bytes: expected an"),
    ("launches", '[Launch("softmax_control", (7,), (128,), 0, "xy")]', "[0].args: expected a tuple of"),
    ("launches", '[("softmax_control", (7,), (128,), 0, ())]', "[0]: expected a Launch"),
    ("inputs", "[1]", "what inputs returned: expected a dict, but got [1] (list)"),
    ("inputs", '{"x": [1.0]}', "['x']: expected a numpy array"),
    ("inputs", '{"x": np.ones((case.rows, case.n)), "y": np.ones((7, 33))}', "['y']: expected arrays of ['x']"),
    ("inputs", '{"x": np.ones((case.rows, case.n)), "z": np.ones(4)}', "['z']: expected arrays of ['x'] and scalar"),
    ("inputs", '{"x": np.array("text")}', "['x']: expected a numpy array"),
    ("steps", '["live"]', "what steps returned: expected a dict, but got ['live'] (list)"),
    ("steps", "{}", "expected at least one step"),
    ("steps", '{"live": None}', "['live']: expected a dict, but got None"),
    ("steps", '{"../live": {}}', "(key): expected a plain name"),
    ("written", "[True]", "what written returned: expected a dict"),
    ("written", '{"y": np.ones((2, 2), bool)}', "['y']: expected bool masks that broadcast"),
    ("written", '{"z": np.ones((2, 2), bool)}', "['z']: expected bool masks"),
    ("written", '{"y": np.ones((case.rows, 1))}', "['y']: expected bool masks"),
    ("softmax64", "np.ones(3)", "what reference fp64 returned: expected a dict"),
    ("softmax64", '{"y": np.ones((case.rows, 1))}', "the shape of y, (3, 33), but got an array of shape (3, 1)"),
    ("softmax64", '{"y": [[1.0]]}', "['y']: expected a numpy array of numbers"),
    ("derived", "None", "what derived total returned: expected a numpy array of numbers, but got None"),
    ("measure", "(1.0, 2.0)", "what bound largest returned: expected a Measured or None, but got (1.0, 2.0) (tuple)"),
    ("measure", 'Measured(1.0, 2.0, ())', "value: expected a numpy array"),
    ("measure", 'Measured(np.zeros((3, 33)), np.ones(33), ())', "limit: expected the shape of the errors, (3, 33)"),
    ("measure", 'Measured(np.zeros((3, 33)), np.ones((3, 33)), ("row",))', "dims: expected 2 names, one a dimension"),
    ("expect", "True", "what probe equal returned: expected a Measured"),
    ("mutate", "1", "what mutation scaled returned: expected a dict or None, but got 1 (int)"),
    ("mutate", '{"z": right["y"]}', "['z']: expected results of"),
    ("mutate", '{"y": right["y"][:1]}', "['y']: expected an array of shape (3, 33)"),
    ("describe", "4", "what describe returned: expected a str, but got 4 (int)"),
    ("share", '"all"', "what omission_share returned: expected a number, but got 'all' (str)"),
)  # fmt: skip


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose declaration is to be damaged."""
    (tmp_path / "kernels").mkdir()
    (tmp_path / "pyproject.toml").write_text(
        '[tool.kernel-audit]\n\n[[tool.kernel-audit.gate.everyday.audits]]\nshapes = ["wide"]\n'
    )
    control = ROOT / "tests/projects/softmax/kernels/control.cu"
    (tmp_path / "kernels/control.cu").write_text(control.read_text())
    (tmp_path / "kernels/softmax.py").write_text(DECLARATION)
    return tmp_path


def damage(project: Path, right: str, wrong: str) -> None:
    """Put a mistake into the declaration."""
    assert right in DECLARATION
    text = DECLARATION.replace(right, wrong)
    if right == "variants=[Variant(":
        text = text.replace(", launches)],", ", launches)),")
    (project / "kernels/softmax.py").write_text(text)


def replaced(hook: str, body: str) -> str:
    """The declaration with a hook of another body."""
    pattern = rf"(def {hook}\(.*\):\n)(?:    .*\n)+"
    text, count = re.subn(pattern, lambda found: f"{found[1]}    {body}\n", DECLARATION)
    assert count == 1
    return text


def require_one_line(ran: Ran, *parts: str) -> None:
    """Exit code 2, nothing on stdout, and one line that says it; lines of progress may stand before it."""
    lines = [line for line in ran.err.splitlines() if not re.match(r"wide \[|audit of |sanitizers of ", line)]
    assert (ran.code, ran.out, len(lines)) == (2, "", 1), ran.err
    for part in (*parts, "softmax"):
        assert part in lines[0]


def test_the_undamaged_declaration_passes(project: Path, audit: Callable[..., Ran]) -> None:
    ran = audit(project, "run")
    assert ran.code == 0, ran.out + ran.err


@pytest.mark.parametrize(("right", "wrong", "part"), MISTAKES, ids=[mistake[2] for mistake in MISTAKES])
def test_a_mistake_is_refused_when_the_project_is_loaded(project: Path, right: str, wrong: str, part: str) -> None:
    damage(project, right, wrong)
    with pytest.raises(ProjectError) as refusal:
        _ = find_project(project).operators
    line = str(refusal.value)
    assert re.match(rf"{project}/kernels/softmax\.py: operator \S+: ", line)
    assert part in line
    assert line.isprintable()


@pytest.mark.parametrize("command", ["run", "list", "sanitize", "gate", "bench"])
def test_every_command_refuses_a_mistake(project: Path, audit: Callable[..., Ran], command: str) -> None:
    damage(project, 'Source("kernels/control.cu")', '"kernels/control.cu"')
    require_one_line(audit(project, command), "kernels/softmax.py", "variants[0].code: expected", "but got")


@pytest.mark.parametrize(("hook", "value", "part"), HOOKS, ids=[f"{hook[0]} {hook[2]}" for hook in HOOKS])
def test_a_hook_that_returns_something_else(
    project: Path, audit_here: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, hook: str, value: str, part: str
) -> None:
    from audit.vacuity import expose

    monkeypatch.setattr("audit.case.expose", expose)
    (project / "kernels/softmax.py").write_text(replaced(hook, f"return {value}"))
    ran = audit_here(project, "run", "--shape", "wide")
    require_one_line(ran, f"{project}/kernels/softmax.py:", "operator softmax, case wide/", part, "expected", "but got")


@pytest.mark.parametrize("hook", sorted({hook[0] for hook in HOOKS} | {"admit_inputs"}))
def test_a_hook_that_raises(
    project: Path, audit_here: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, hook: str
) -> None:
    from audit.vacuity import expose

    monkeypatch.setattr("audit.case.expose", expose)
    (project / "kernels/softmax.py").write_text(replaced(hook, 'raise KeyError("one\\ntwo")'))
    ran = audit_here(project, "run", "--shape", "wide")
    require_one_line(ran, "operator softmax, case wide/", "raised KeyError", f"{project}/kernels/softmax.py:")


@pytest.mark.parametrize(
    ("command", "hook", "body"),
    [
        ("gate", "launches", "return None"),
        ("gate", "softmax64", 'return {"y": np.ones(3)}'),
        ("sanitize --tool synccheck", "buffers", "return None"),
        ("sanitize --tool synccheck", "inputs", "raise ValueError(1)"),
        ("list", "describe", "return 4"),
        ("list", "describe", "return 1 / 0"),
    ],
)
def test_every_command_refuses_what_hooks_return(
    project: Path, audit: Callable[..., Ran], command: str, hook: str, body: str
) -> None:
    (project / "kernels/softmax.py").write_text(replaced(hook, body))
    require_one_line(
        audit(project, *command.split()), "kernels/softmax.py:", hook if hook != "softmax64" else "reference fp64"
    )


@pytest.mark.parametrize(
    ("hook", "body"), [("", ""), ("softmax64", "return None"), ("launches", 'raise ValueError("::error::x")')]
)
def test_pytest_refuses_both(project: Path, hook: str, body: str) -> None:
    import subprocess
    import sys

    if hook:
        (project / "kernels/softmax.py").write_text(replaced(hook, body))
    else:
        damage(project, "buffers=buffers", "buffers=[]")
    words = [sys.executable, "-m", "pytest", "-q", "--audit", "-p", "no:cacheprovider", "--rootdir", str(project)]
    done = subprocess.run(words, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stdout
    assert "Traceback" not in done.stdout
    assert f"{project}/kernels/softmax.py" in done.stdout


def test_what_existing_declarations_use_is_admitted() -> None:
    for folder in (ROOT, ROOT / "tests/projects/softmax", ROOT / "tests/projects/pages"):
        assert find_project(folder).operators


def test_numbers_of_numpy_and_lists_serve() -> None:
    import numpy as np

    assert mismatch(Launch("k", [np.int64(4)], (np.int32(1),), 0, ["x", np.float32(1)]), Launch) is None  # type: ignore[arg-type]
    assert mismatch(Buffer("x", "f32", "n", "in"), Buffer) is None
    assert str(mismatch(Launch("k", (True,), (1,), 0, ()), Launch)) == "grid[0]: expected an int, but got True (bool)"


def test_a_name_that_is_no_text_is_told() -> None:
    operator = Operator(4, [Axis("n", 1)], lambda _: [], lambda *_: {}, [], shapes=[Shape("n")])  # type: ignore[arg-type]
    with pytest.raises(ProjectError, match=r"k\.py: operator without a name: name: expected a str, but got 4 \(int\)"):
        admit(operator, Path("k.py"))
