"""Shared by all tests: the repository's root, throw-away projects, and running the command as a user does."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as `audit` sets it, before numpy is loaded
os.environ.setdefault("KERNEL_AUDIT_CPU_FRONT_END", "gcc")  # tests of clang choose it themselves


_asked = {"full": False}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="everything, not the choice that fits twenty minutes")


def pytest_configure(config: pytest.Config) -> None:
    _asked["full"] = bool(config.getoption("--full"))  # workers of xdist are told too


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)  # none of the long ones is alone at the end
    for item in items:
        if item.get_closest_marker("full") and not full_run():
            item.add_marker(pytest.mark.skip(reason="runs with --full only"))


def full_run() -> bool:
    """Whether `pytest --full` was asked for; known before tests are collected."""
    return _asked["full"]


@pytest.fixture
def softmax_project(tmp_path: Path) -> Path:
    """A copy of the softmax project, free to be damaged."""
    return Path(shutil.copytree(ROOT / "tests/projects/softmax", tmp_path / "softmax"))


@pytest.fixture
def own_project(tmp_path: Path) -> Path:
    """A copy of this repository's audited project: kernels, references, captures, settings."""
    copy = tmp_path / "project"
    copy.mkdir()
    shutil.copy(ROOT / "pyproject.toml", copy)
    for folder in ("kernels", "references", "fixtures/captures"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


class Ran:
    """A finished command: exit code, stdout, stderr."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    @property
    def json(self) -> dict[str, Any]:
        """stdout as the one JSON object that it must be."""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found

    def results(self) -> list[dict[str, Any]]:
        """Every check's result in the evidence, with its case and variant."""
        evidence = json.loads((Path(self.json["evidence"]) / "evidence.json").read_text())
        return [
            {**result, "case": audit["case"], "variant": audit["variant"]}
            for audit in evidence["audits"]
            for result in audit["results"]
        ]

    def failed(self) -> set[str]:
        """The checks that failed, bounds left off: `error`, not `error:lse`."""
        return {result["check"].partition(":")[0] for result in self.results() if result["verdict"] == "fail"}


@pytest.fixture
def audit() -> Callable[..., Ran]:
    """Run `audit` in a folder: `audit(project, "run", "--shape", "q6")`."""

    def call(folder: Path, *words: str, **environment: str) -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "audit", *words],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=600,
            env={**os.environ, "COLUMNS": "200", **environment},
            check=False,
        )
        return Ran(done)

    return call


@pytest.fixture
def kernels_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Audits that are of kernels: whether the checks could have failed is not asked again of each case, and no page
    tells of retained evidence."""
    from audit.report.project_context import ProjectContext

    monkeypatch.setattr("audit.case.expose", lambda _: ())
    monkeypatch.setattr("audit.report.run_page.project_context", lambda *_: ProjectContext())


@pytest.fixture
def audit_here(kernels_alone: None, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:  # noqa: ARG001
    """The same for what kernels do: in this process, which has it all loaded; they have processes of their own."""
    from audit.cli.main import main

    def call(folder: Path, *words: str) -> Ran:
        before = set(sys.modules)
        out, err = io.StringIO(), io.StringIO()
        with monkeypatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            patch.chdir(folder)
            patch.setattr(sys, "argv", ["audit", *words])
            with pytest.raises(SystemExit) as ended:
                main()
        if folder != ROOT:  # its Python sources may be others at the next call
            for name in set(sys.modules) - before:
                if name.startswith("_audited_"):
                    del sys.modules[name]
        code = ended.value.code
        assert isinstance(code, int)
        return Ran(subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue()))

    return call


@pytest.fixture(scope="session")
def fake_driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a libcuda.so.1 made from fake_driver.c and the real cuda.h."""
    spec = importlib.util.find_spec("nvidia")
    packages = [Path(each) for each in (spec.submodule_search_locations or [])] if spec else []
    headers = [*(found for package in packages for found in package.glob("*/include")), Path("/usr/local/cuda/include")]
    include = next((folder for folder in headers if (folder / "cuda.h").is_file()), None)
    compiler = shutil.which("gcc") or shutil.which("cc")
    if include is None or compiler is None:
        pytest.skip("a C compiler and cuda.h (`pip install nvidia-cuda-runtime`) make the driver that stands in")
    folder = tmp_path_factory.mktemp("driver")
    flags = ["-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", f"-I{include}"]
    subprocess.run(
        [compiler, *flags, "-o", folder / "libcuda.so.1", ROOT / "tests/backends/fake_driver.c"],
        check=True,
        capture_output=True,
    )
    return folder
