"""`audit compare` in an empty folder: planted faults, wrong inputs, what it prints, and its records later."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ..conftest import Ran

OLD = """__global__ void scale(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * 3.0f;
}
"""
MAKE = """import numpy as np
def inputs(rng): return {"x": rng.normal(size=100).astype(np.float32), "n": 100}
def outputs(given): return {"y": given["x"]}
def launch(given): return {"grid": (4,), "block": 32}
def reference(given): return {"y": given["x"] * 3}
"""
RIGHT = OLD.replace("if (i < n) y[i] = x[i] * 3.0f", "if (n > i) { float v = x[i]; y[i] = v + v + v; }")
EQUAL = OLD.replace("blockIdx.x * blockDim.x + threadIdx.x", "4 * threadIdx.x + blockIdx.x")  # others do other elements
FAULTS = {
    "one element less": ("i < n)", "i < n - 1)", {"bytes", "workspace"}),
    "one past the end": ("i < n)", "i < n + 1)", {"guards"}),
    "reads what nobody wrote": ("x[i] * 3.0f", "(y[i] != 0.0f ? x[i] * 3.0f : y[i])", set()),
    "adds to what nobody wrote": ("y[i] = x[i] * 3.0f", "y[i] += x[i] * 3.0f", {"bytes", "repeat"}),
    "changes its input": ("y[i] = x[i] * 3.0f", "{ y[i] = x[i] * 3.0f; ((float*)x)[i] = 1.0f; }", {"inputs"}),
    "1 ulp": ("y[i] = x[i] * 3.0f", "y[i] = __int_as_float(__float_as_int(x[i] * 3.0f) + (i == 57))", {"bytes"}),
    "order of threads": (
        "if (i < n) y[i] = x[i] * 3.0f",
        "if (i < n) { y[i] = x[i] * 3.0f; __threadfence(); y[0] = i + 0.5f; }",
        {"bytes", "repeat"},
    ),
}


def lay(home: Path, new: str = EQUAL, old: str = OLD, make: str = MAKE) -> Path:
    """The three files of a comparison in a folder without a project."""
    (home / "old.cu").write_text(old)
    (home / "new.cu").write_text(new)
    (home / "make.py").write_text(make)
    return home


def compare(audit: Callable[..., Ran], home: Path, *words: str) -> Ran:
    """Compare on this CPU."""
    return audit(home, "compare", "old.cu", "new.cu", "--inputs", "make.py", "--device", "host", *words)


def test_equal_kernels_pass(tmp_path: Path, audit: Callable[..., Ran]) -> None:
    ran = compare(audit, lay(tmp_path))
    assert ran.code == 0, ran.out + ran.err
    assert ran.out.startswith("pass: scale: every byte is that of old, in 3 cases\n")
    assert "y of old" in ran.out
    assert "y of new" in ran.out


@pytest.mark.parametrize("fault", [name for name, (_, _, checks) in FAULTS.items() if checks])
def test_a_fault_is_found(fault: str, tmp_path: Path, audit_here: Callable[..., Ran]) -> None:
    before, after, checks = FAULTS[fault]
    assert before in EQUAL
    ran = compare(audit_here, lay(tmp_path, EQUAL.replace(before, after)), "--json")
    assert ran.code == 1, ran.out + ran.err
    assert checks <= {one["check"] for one in ran.json["findings"] if one["kernel"] == "new"}
    assert not [one for one in ran.json["findings"] if one["kernel"] == "old"]


@pytest.mark.slow
def test_the_sanitizers_find_a_read_of_what_nobody_wrote(tmp_path: Path, audit_here: Callable[..., Ran]) -> None:
    before, after, _ = FAULTS["reads what nobody wrote"]
    make = MAKE.replace("inputs(rng)", "inputs()").replace("rng.normal(size=100)", "np.ones(100)")
    lay(tmp_path, EQUAL.replace(before, after), make=make)
    found = compare(audit_here, tmp_path, "--sanitize", "--json")
    assert found.code == 1, found.out + found.err
    assert found.json["sanitizers"]["verdict"] == "fail"


def test_the_answer_in_json(tmp_path: Path, audit_here: Callable[..., Ran]) -> None:
    before, after, _ = FAULTS["1 ulp"]
    make = MAKE.replace("import numpy", "print('loaded')\nimport numpy")
    found = compare(audit_here, lay(tmp_path, EQUAL.replace(before, after), make=make), "--json").json
    assert set(found) == {
        "verdict", "cases", "differences", "errors", "findings", "notes", "sanitizers", "evidence", "page"
    }  # fmt: skip
    (one,) = found["differences"]
    assert (one["buffer"], one["differing"], one["ulp"], one["ulp_at"]) == ("y", 1, 1, "y[n=57]")
    assert [(each["buffer"], each["kernel"]) for each in found["errors"]] == [("y", "old"), ("y", "new")]
    assert found["errors"][0]["absolute"] < found["errors"][1]["absolute"] or found["errors"][0]["ulp"] == 0


def test_what_differs_stands_first(tmp_path: Path, audit_here: Callable[..., Ran]) -> None:
    before, after, _ = FAULTS["1 ulp"]
    ran = compare(audit_here, lay(tmp_path, EQUAL.replace(before, after)), "--seed", "5")
    assert ran.out.startswith("fail: scale: y differs from old in 1 of 1 case, by at most ")
    assert "(1 ulp, y[n=57]), 1 of 100 elements differ\n" in ran.out
    page = next((tmp_path / "runs").glob("*/report.html")).read_text()
    first = page[: page.index("What does not hold")]
    assert "y[n=57]" in first
    assert "y of new" in first


def test_what_fails_beside_equal_bytes_stands_first_too(tmp_path: Path, audit_here: Callable[..., Ran]) -> None:
    before, after, _ = FAULTS["one past the end"]
    ran = compare(audit_here, lay(tmp_path, EQUAL.replace(before, after)), "--seed", "5")
    assert ran.out.startswith("fail: scale: every byte is that of old, in 1 case; new fails guards\n"), ran.out


def test_the_same_kernel_twice_is_no_pass(tmp_path: Path, audit_here: Callable[..., Ran]) -> None:
    ran = compare(audit_here, lay(tmp_path, OLD.replace("  int i", "    int  i") + "// another comment\n"))
    assert ran.code == 2
    assert "are one code, launched in the same way" in ran.err
    assert compare(audit_here, tmp_path, "--new-block", "64").code == 0


def test_a_kernel_that_does_not_end_is_named(tmp_path: Path, audit_here: Callable[..., Ran]) -> None:
    crash = EQUAL.replace("y[i] = x[i]", "y[i + (i == 3 ? 1 << 28 : 0)] = x[i]")
    ran = compare(audit_here, lay(tmp_path, crash))
    assert ran.code == 1
    assert ran.out.startswith("fail: scale: new was not compared with old, because new did not run to the end\n")


def test_a_nan_of_both_is_right(tmp_path: Path, audit_here: Callable[..., Ran]) -> None:
    make = MAKE.replace("rng.normal(size=100)", "np.full(100, np.nan)").replace("inputs(rng)", "inputs()")
    assert compare(audit_here, lay(tmp_path, make=make)).code == 0
    wrong = EQUAL.replace("x[i] * 3.0f", "(x[i] == x[i] ? x[i] * 3.0f : 0.0f)")
    assert compare(audit_here, lay(tmp_path, wrong, make=make)).code == 1


WRONG = {
    "raises": ("def inputs(rng): return 1 / 0", "inputs() raised ZeroDivisionError: division by zero ("),
    "raises when loaded": ("raise RuntimeError('boom')", "RuntimeError: boom"),
    "no syntax": ("def inputs(:", "make.py:1: invalid syntax"),
    "exits": ("import sys\nsys.exit(0)", "SystemExit: 0"),
    "exits at once": ("import os\ndef inputs(): os._exit(0)", "SystemExit"),
    "a list": ("def inputs(): return [1]", "expected a dict of arrays and numbers by parameter, but got [1] (list)"),
    "text": ("def inputs(): return {'x': 'a'}", "inputs()['x']: expected an array of numbers"),
    "no function": ("x = 1", "--inputs: expected a function of make.py (none), but got 'inputs'"),
    "two parameters": ("def inputs(a, b): return {}", "missing 1 required positional argument"),
    "another name": (MAKE.replace('"n"', '"m"'), "also returns m, which no parameter is named"),
    "no integer": (MAKE.replace('"n": 100', '"n": 1.5'), "n (int): expected an integer"),
    "no size": (MAKE.replace("def outputs", "def others"), "how large is y (float*)?"),
    "no launch": (MAKE.replace("def launch", "def others"), "how many blocks? Give --grid"),
    "a wrong launch": (MAKE.replace('"grid"', '"grids"'), "launch(): expected a dict with grid, block, shared_bytes"),
    "no threads": (MAKE.replace('"block": 32', '"block": 0'), "--block: expected one to three extents of at least 1"),
    "a negative shape": (
        MAKE.replace('given["x"]}\ndef l', "(-1,)}\ndef l"), "outputs()['y']: expected an array or a shape"
    ),
    "reference of another shape": (MAKE.replace('given["x"] * 3', "3"), "reference()['y']: expected the shape (100,)"),
    "reference of another name": (
        MAKE.replace('{"y": given["x"] * 3', '{"z": given["x"] * 3'), "expected results of y, but got 'z'"
    ),
    "reference raises": (MAKE.replace('given["x"] * 3', 'given["w"]'), "reference() raised KeyError: 'w'"),
    "reference of text": (MAKE.replace('given["x"] * 3', '"three"'), "reference()['y']: expected an array of numbers"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_one_clear_message(name: str, tmp_path: Path, audit_here: Callable[..., Ran]) -> None:
    make, words = WRONG[name]
    ran = compare(audit_here, lay(tmp_path, make=make))
    assert ran.code == 2, ran.out + ran.err
    assert words in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("new", "words", "expected"),
    [
        ("", (), "NEW (new.cu): expected a kernel"),
        ("__global__ void a(int n) {} __global__ void b(int n) {}", (), "one of a, b, but got none; name one"),
        (OLD.replace("float* y", "double* y"), (), "got float* in OLD and double* in NEW"),
        (OLD.replace("y", "out"), (), "--rename out=y"),
        (EQUAL, ("--rename", "z=y"), "--rename: expected a parameter of NEW (x, y, n), but got 'z'"),
        (EQUAL, ("--grid", "1,1,1,1"), "--grid: expected one to three extents"),
        (EQUAL, ("--output", "y"), "--output: expected NAME=EXTENT,EXTENT or NAME=OTHER, but got 'y'"),
        (EQUAL, ("--define", "1=2"), "--define: expected NAME=VALUE, but got '1=2'"),
        (EQUAL, ("--inputs", "absent.py"), "absent.py: expected a Python file"),
    ],
)
def test_wrong_sources_and_options(
    new: str, words: tuple[str, ...], expected: str, tmp_path: Path, audit_here: Callable[..., Ran]
) -> None:
    ran = compare(audit_here, lay(tmp_path, new), *words)
    assert ran.code == 2, ran.out + ran.err
    assert expected in ran.err


def test_other_names_another_type_of_pointer_and_scratch_memory(tmp_path: Path, audit_here: Callable[..., Ran]) -> None:
    new = """namespace fast {
    template <int V, typename T = float4>
    __global__ void scale(const T* in, T* scratch, T* out, int count) {
      int i = threadIdx.x;
      if (V * i < count) { T v = in[i]; v.x *= 3; v.y *= 3; v.z *= 3; v.w *= 3; scratch[i] = v; out[i] = scratch[i]; }
    } }"""
    make = MAKE + "def new_launch(given): return {'grid': 1, 'block': 25}\n"
    renames = ("--rename", "in=x", "--rename", "out=y", "--rename", "count=n")
    words = ("--entry", "scale", "--new-entry", "scale<4>", *renames, "--workspace", "scratch=n/4")
    ran = compare(audit_here, lay(tmp_path, new, make=make), *words)
    assert ran.code == 0, ran.out + ran.err


def test_files_in_several_folders(tmp_path: Path, audit_here: Callable[..., Ran]) -> None:
    lay(tmp_path)
    for name, text in (("a/old.cu", OLD), ("b/c/new.cu", '#include "../factor.h"\n' + EQUAL.replace("3.0f", "FACTOR"))):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "b/factor.h").write_text("#define FACTOR 3.0f\n")
    words = ("--inputs", "make.py:inputs", "--device", "host")
    ran = audit_here(tmp_path, "compare", "a/old.cu", "b/c/new.cu", *words)
    assert ran.code == 0, ran.out + ran.err
    (home,) = (tmp_path / "runs").iterdir()
    (tmp_path / "b/factor.h").write_text("#define FACTOR 3.0f  // as before\n")
    assert "b/factor.h has changed" in audit_here(tmp_path, "verify", str(home)).out


def test_its_records_without_a_project(tmp_path: Path, audit: Callable[..., Ran]) -> None:
    make = "import shapes\n" + MAKE.replace("size=100", "size=shapes.N").replace(
        '"n": 100', '"n": int(np.load("n.npy"))'
    )
    lay(tmp_path, make="import numpy as np\n" + make)
    (tmp_path / "shapes.py").write_text("N = 100\n")
    np.save(tmp_path / "n.npy", 100)
    evidence = compare(audit, tmp_path, "--json").json["evidence"]
    assert audit(tmp_path, "verify", evidence).code == 0
    assert audit(tmp_path, "report", evidence).code == 0
    assert audit(tmp_path, "diff", evidence, evidence).code == 0
    for name in ("old.cu", "new.cu", "make.py", "shapes.py"):
        text = (tmp_path / name).read_text()
        (tmp_path / name).write_text(text + "\n")
        ran = audit(tmp_path, "verify", evidence)
        assert (ran.code, f"{name} has changed" in ran.out) == (3, True), ran.out + ran.err
        (tmp_path / name).write_text(text)
    np.save(tmp_path / "n.npy", 99)
    assert "n.npy has changed" in audit(tmp_path, "verify", evidence).out
    record = Path(evidence) / "evidence.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {"started": "2020-01-01T00:00:00+00:00"}))
    ran = audit(tmp_path, "verify", evidence)
    assert ran.code == 1, ran.out + ran.err


def test_a_record_does_not_choose_what_is_loaded(tmp_path: Path, audit: Callable[..., Ran]) -> None:
    """A record from elsewhere is not trusted: verifying it loads no Python file outside of the folder."""
    elsewhere, here = tmp_path / "elsewhere", tmp_path / "here"
    elsewhere.mkdir()
    here.mkdir()
    evidence = compare(audit, lay(elsewhere), "--json").json["evidence"]
    (elsewhere / "make.py").write_text(f"open({str(tmp_path / 'loaded')!r}, 'w')\n" + MAKE)
    assert audit(here, "verify", evidence).code == 3
    assert audit(elsewhere / "runs", "verify", evidence).code == 3
    assert not (tmp_path / "loaded").exists()


ULP = OLD.replace("y[i] = x[i] * 3.0f", "y[i] = __int_as_float(__float_as_int(x[i] * 3.0f) + (i == 57))")


def test_a_relation_admits_other_bytes_and_the_text_does_not_call_them_equal(
    tmp_path: Path, audit: Callable[..., Ran]
) -> None:
    home = lay(tmp_path, ULP)
    assert compare(audit, home).code == 1
    ran = compare(audit, home, "--relation", "ulps=1")
    first = ran.out.splitlines()[0]
    assert ran.code == 0, ran.out + ran.err
    assert first.startswith("pass: scale: y differs from old in 3 of 3 cases, by at most ")
    assert first.endswith("as ulps=1 permits: as accurate as its parent, not the same")
    assert compare(audit, home, "--relation", "ulps=0").code == 1
    assert compare(audit, home, "--relation", "within=1e-40,1e-6").code == 0
    assert compare(audit, home, "--relation", "no-worse=1.5").code == 0
    unrelated = compare(audit, home, "--relation", "unrelated")
    assert unrelated.code == 3
    assert "neither a parent nor a bound says what is right" in unrelated.out


def test_a_relation_that_cannot_be_is_refused(tmp_path: Path, audit: Callable[..., Ran]) -> None:
    home = lay(tmp_path, ULP, make=MAKE.partition("def reference")[0])
    odd = compare(audit, home, "--relation", "ulps=x")
    assert (odd.code, "--relation: expected bitwise, ulps=N" in odd.err) == (2, True)
    blind = compare(audit, home, "--relation", "no-worse=2")
    assert (blind.code, "expected a function reference(inputs) in make.py" in blind.err) == (2, True)


def test_a_record_of_a_relation_verifies_later(tmp_path: Path, audit: Callable[..., Ran]) -> None:
    home = lay(tmp_path, ULP)
    ran = compare(audit, home, "--relation", "ulps=1", "--json")
    folder = json.loads(ran.out)["evidence"]
    later = audit(home, "verify", folder)
    assert later.code == 0, later.out + later.err
