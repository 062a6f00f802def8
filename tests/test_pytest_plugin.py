"""`pytest --audit`: a test for each variant and case, chosen and repeated as any test; nothing is loaded without it."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import ROOT

_INSTALLED = any(entry.name == "kernel-audit" for entry in importlib.metadata.entry_points(group="pytest11"))
_PLUGIN = () if _INSTALLED else ("-p", "audit.pytest_plugin")
Pytest = Callable[..., str]


@pytest.fixture
def run_pytest(softmax_project: Path) -> Pytest:
    """Run pytest in the softmax project; its exit code and what it printed."""

    def call(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *_PLUGIN, *words],
            cwd=softmax_project,
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "COLUMNS": "200"},
            check=False,
        )
        return f"exit {done.returncode}\n{done.stdout}{done.stderr}"

    return call


def counts(said: str) -> dict[str, int]:
    return {what: int(number) for number, what in re.findall(r"(\d+) (passed|failed|deselected|error)", said)}


def test_the_entry_point_names_the_plugin() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    assert declared == {"kernel-audit": "audit.pytest_plugin"}


def test_a_test_for_each_variant_and_case_and_its_failure_tells_the_check(run_pytest: Pytest) -> None:
    said = run_pytest("--audit")
    assert said.startswith("exit 1")
    assert counts(said) == {"failed": 2, "passed": 7}
    assert "fail bytes (step live): 72 of 231 elements differ, by at most 7.45e-09 (1 ulp, y[rows=1, n=20]); " in said
    assert "the first y[rows=0, n=6] is 0x" in said
    assert "at y[rows=0, n=6]" in said
    assert "measured 72, limit 0" in said
    assert "Traceback" not in said
    # --lf knows the failures again
    again = run_pytest("--audit", "--lf")
    assert counts(again) == {"failed": 2, "deselected": 7}
    # and the command that a failure tells runs it alone
    (words, _) = re.findall(r'again: pytest (.+?) "(.+)"', said)[0]
    alone = run_pytest(*words.split(), re.findall(r'again: pytest .+? "(.+)"', said)[0])
    assert counts(alone) == {"failed": 1}


def test_k_chooses_and_a_child_still_has_its_parent(run_pytest: Pytest) -> None:
    assert counts(run_pytest("--audit", "-k", "wrong and 33")) == {"failed": 1, "deselected": 8}
    assert counts(run_pytest("--audit", "--audit-shape", "softmax", "-k", "fast")) == {"passed": 3, "deselected": 6}


def test_xdist_keeps_a_case_on_one_worker(run_pytest: Pytest) -> None:
    assert counts(run_pytest("--audit", "-n", "2", "--dist", "loadgroup")) == {"failed": 2, "passed": 7}


def test_tests_that_are_named_run_beside_the_plan(run_pytest: Pytest, softmax_project: Path) -> None:
    (softmax_project / "test_own.py").write_text("def test_own() -> None: pass\n")
    assert counts(run_pytest("--audit", "test_own.py")) == {"failed": 2, "passed": 8}
    assert counts(run_pytest("test_own.py")) == {"passed": 1}
    assert counts(run_pytest()) == {"passed": 1}


def test_an_unknown_shape_is_one_message(run_pytest: Pytest) -> None:
    said = run_pytest("--audit", "--audit-shape", "q99")
    assert "--shape: expected one of softmax, but got 'q99'" in said
    assert "Traceback" not in said


def test_ordinary_runs_load_nothing_of_the_tool(run_pytest: Pytest, softmax_project: Path) -> None:
    (softmax_project / "test_own.py").write_text(
        "import sys\n"
        "def test_own() -> None:\n"
        "    assert 'audit.pytest_plugin' in sys.modules\n"
        "    tool = {name for name in sys.modules if name.startswith('audit.')} - {'audit.pytest_plugin'}\n"
        "    assert not tool, tool\n"
        "    assert not {'numpy', 'torch', 'msgspec', 'click'} & set(sys.modules)\n"
    )
    said = run_pytest("test_own.py", "-p", "no:hypothesispytest")
    assert counts(said) == {"passed": 1}, said
