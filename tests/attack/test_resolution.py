"""A declaration that resolves to something else, though none of its files has changed: an environment variable or
another version of a package decides. Its record is stale, and the part is named."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from audit.hook_values import operator_values
from audit.project import find_project
from audit.records.run import KIND
from audit.records.verify import verify
from audit.spec import Case, Operator, Reference

from ..conftest import ROOT, Ran
from ..gate import made

Audit = Callable[..., Ran]
CASE = "softmax/seed1/rows=7,n=33"
OTHER = f"differ from the recorded ones: {CASE}"
VALUES = "has other values now, though its files may be the same"
BOTH = {"launches of control": OTHER, "launches of fast": OTHER}
PACKAGE = "block-sizes"

HEAD = """
import os
from importlib.metadata import version
import block_sizes
from audit.spec import At, Bound, Measured
def number(name):
    return int(os.environ.get(name, "0"))
LIMITS = {"y": 1e-3 * (1 + number("GLOBAL"))}
SPREAD = 3.0 + number("SPREAD")
SCALE = float(version("block-sizes"))
class Steps:
    names = ("live", "restore", *map(str, range(number("STEPS"))))
    def __call__(self, case, inputs):
        return {name: {} for name in self.names}
def limit():
    return LIMITS["y"]
def measure(case, inputs, got, expected):
    error = np.abs(got["y"] - expected["y"])
    return Measured(error, np.full(error.shape, limit() * block_sizes.FACTOR), ("rows", "n"))
def other64(case, inputs, scale=1.0):
    return softmax64(case, inputs)
"""
EDITS = {
    '(c.rows,), (128,), 0, ("x", "y", c.n))': '(c.rows + number("GRID"),), (128 + 32 * number("BLOCK"),), '
    '64 * number("SHARED") + 16 * int(SCALE), ("x", At("y", number("AT")), c.n + number("ARGUMENT")))',
    'Buffer("x", "f32", "rows n", "in")': 'Buffer("x", "f32", "rows n", "in", 4 * number("OFFSET"))',
    "rng.normal(0, 3,": "rng.normal(0, SPREAD,",
    'Reference("fp64", softmax64)': 'Reference("fp64", other64 if number("CHOICE") else softmax64)',
    'RelL2("y", 1e-6)': 'RelL2("y", 1e-6 + number("LIMIT")), Bound("own", measure)',
    'variant("fast", "control")': 'variant("fast", "wrong" if number("PARENT") else "control")',
    'Axis("n", 33, at_least=1)': 'Axis("n", 33, at_least=1 + 50 * number("LEAST")), '
    'Axis("seven", 7 + number("DEFAULT"), quiet=True)',
    "    plan=": "    steps=Steps(),\n    plan=",
    'f"kernels/{name}.cu")': "f\"kernels/{name}.cu\", {'M': str(number('DEFINE'))})",
}
# What is changed in the environment -> the parts that are named.
KINDS: dict[str, dict[str, str]] = {
    "GRID": BOTH,
    "BLOCK": BOTH,
    "SHARED": BOTH,
    "AT": BOTH,
    "ARGUMENT": BOTH,
    "OFFSET": {"buffers": OTHER},
    "SPREAD": {"inputs": VALUES},
    "CHOICE": {"reference fp64": VALUES},
    "LIMIT": {"bound rel_l2(y)": VALUES},
    "GLOBAL": {"bound own": VALUES},
    "PARENT": {"parent of fast": VALUES},
    "STEPS": {"steps": VALUES},
    "DEFINE": {"code of control": VALUES, "code of fast": VALUES},
    "LEAST": {"axes": "cannot be resolved any more (axis n: expected an integer of at least 51, but got 33): " + CASE},
    "DEFAULT": {"axes": OTHER},
}


def install(folder: Path, version: str, factor: int) -> str:
    """Another package, in a folder of `PYTHONPATH`."""
    about = folder / f"block_sizes-{version}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {version}\n")
    (folder / "block_sizes.py").write_text(f"FACTOR = {factor}\n")
    return os.pathsep.join((str(folder), os.environ.get("PYTHONPATH", str(ROOT))))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    """A project whose declaration depends on its surroundings, a record of it, and the `PYTHONPATH` of both."""
    folder = tmp_path_factory.mktemp("resolution")
    project = Path(shutil.copytree(ROOT / "tests/projects/softmax", folder / "softmax"))
    source = project / "kernels/softmax.py"
    text = source.read_text()
    for old, new in EDITS.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    source.write_text(text.replace("\n\n\ndef softmax64", f"\n{HEAD}\n\ndef softmax64", 1))
    path = install(folder / "site", "1.0", 1)
    ran = _command(project, "run", "--axis", "n=33", "--variant", "fast", "--json", PYTHONPATH=path)
    assert ran.code == 0, ran.out + ran.err
    return project, Path(ran.json["evidence"]), path


def _command(folder: Path, *words: str, **environment: str) -> Ran:
    done = subprocess.run(
        [sys.executable, "-m", "audit", *words], cwd=folder, capture_output=True, text=True, timeout=120,
        env={**os.environ, **environment}, check=False,
    )  # fmt: skip
    return Ran(done)


def verified(project: Path, record: Path, **environment: str) -> tuple[int, dict[str, str]]:
    ran = _command(project, "verify", str(record), "--json", **environment)
    return ran.code, ran.json["evidence"][0]["stale"]["closure"]


def test_nothing_changed_is_nothing_stale(recorded: tuple[Path, Path, str]) -> None:
    project, record, path = recorded
    assert verified(project, record, PYTHONPATH=path, UNRELATED="1") == (0, {})


@pytest.mark.parametrize("variable", KINDS)
def test_an_environment_variable(recorded: tuple[Path, Path, str], variable: str) -> None:
    project, record, path = recorded
    code, changed = verified(project, record, **{"PYTHONPATH": path, variable: "1"})
    assert changed.pop(f"the environment variable {variable}") == "is set now"
    assert (code, changed) == (3, KINDS[variable])


def test_another_version_of_a_package(recorded: tuple[Path, Path, str], tmp_path: Path) -> None:
    project, record, _ = recorded
    assert verified(project, record, PYTHONPATH=install(tmp_path / "version", "2.0", 1)) == (3, BOTH)
    assert verified(project, record, PYTHONPATH=install(tmp_path / "value", "1.0", 2)) == (3, {"bound own": VALUES})


def test_another_place_is_no_change(recorded: tuple[Path, Path, str], tmp_path: Path) -> None:
    project, record, path = recorded
    moved = Path(shutil.copytree(project, tmp_path / "moved"))
    assert verified(moved, moved / record.relative_to(project), PYTHONPATH=path) == (0, {})


def test_the_gate_counts_it_as_stale(recorded: tuple[Path, Path, str]) -> None:
    project, record, path = recorded
    table = project / "pyproject.toml"
    if "gate" not in table.read_text():
        with table.open("a") as file:
            file.write('[[tool.kernel-audit.gate.everyday.audits]]\nshapes = ["softmax"]\nvariants = ["fast"]\n')
            file.write("axes = { n = [33] }\n")
    words = ("gate", "--no-run", "--evidence", str(record), "--verbose")
    good, stale = (_command(project, *words, PYTHONPATH=path, GRID=grid) for grid in ("0", "1"))
    assert "launches of" not in good.out, good.out
    assert "launches of control differ from the recorded ones" in stale.out, stale.out
    assert stale.code == 3


def test_a_record_without_it_is_stale(softmax_project: Path, audit: Audit) -> None:
    ran = audit(softmax_project, "run", "--axis", "n=33", "--variant", "fast", "--json")
    folder = Path(ran.json["evidence"])
    closure = KIND.load(folder).closure
    assert closure is not None
    assert closure.resolved is not None
    for resolved, how in [
        (None, "is of a version that did not record what its declaration resolves to"),
        (msgspec.structs.replace(closure.resolved, cases={}), f"are not in the record: {CASE}"),
    ]:
        lacking = msgspec.structs.replace(closure, resolved=resolved)
        made.rewrite(folder, lambda found, lacking=lacking: msgspec.structs.replace(found, closure=lacking))
        found = verify(folder, find_project(softmax_project))
        assert found.verdict == "inconclusive", found.describe()
        assert how in found.describe()


# What a hook may keep, compute or refer to without being another declaration at the next start.
_kept: dict[str, int] = {}


@functools.lru_cache
def _cached(value: int) -> int:
    _kept[str(value)] = value
    return value


def test_values_are_the_same_at_every_look() -> None:
    def compute(case: Case, inputs: object) -> dict[str, np.ndarray]:  # noqa: ARG001
        return {"y": np.full(3, _cached(len(_kept)))}

    def declared() -> Operator:
        return Operator("op", [], lambda _: (), lambda *_: {}, [], references=[Reference("r", compute)])  # type: ignore[arg-type]

    first = operator_values(declared(), ROOT)
    compute(Case("s", "op", {}), {})
    assert operator_values(declared(), ROOT) == first


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2), (1, True), (1, 1.0), (1.0, -1.0), (0.0, -0.0), ("1", 1), (b"1", "1"), ((1, 2), (2, 1)), ((1,), [1]),
        ({"a": 1}, {"a": 2}), ({1, 2}, {1, 3}), (np.float32(1), np.float64(1)), (np.arange(3), np.arange(3.0)),
        (np.zeros(4), np.zeros((2, 2))), (Path("a"), Path("b")), (functools.partial(max, 1), functools.partial(max, 2)),
        (max, min), (float, int), (None, ""),
    ],
)  # fmt: skip
def test_values_that_differ(one: object, other: object) -> None:
    def digest(value: object) -> dict[str, dict[str, str]]:
        def compute(case: Case, inputs: object) -> object:  # noqa: ARG001
            return value

        return operator_values(
            Operator("op", [], lambda _: (), lambda *_: {}, [], references=[Reference("r", compute)]),  # type: ignore[arg-type]
            ROOT,
        )

    assert digest(one) == digest(one)
    assert digest(one) != digest(other)
