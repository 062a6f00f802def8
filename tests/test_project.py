"""Finding and loading a project: under a private name, with errors that name the file and the fix."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from audit.errors import PlanError, ProjectError
from audit.project import find_project

ROOT = Path(__file__).resolve().parents[1]


def test_found_from_any_folder_below(softmax_project: Path) -> None:
    assert find_project(softmax_project / "kernels").root == softmax_project


def test_loading_shadows_no_installed_package(softmax_project: Path) -> None:
    before = sys.modules.get("kernels")
    project = find_project(softmax_project)
    assert list(project.operators) == ["softmax"]
    assert sys.modules.get("kernels") is before


def test_no_bytecode_is_kept_of_a_project(softmax_project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else an edit within the second that keeps the length would be the old source."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert find_project(softmax_project).operators
    assert not list(softmax_project.rglob("*.pyc"))
    assert not sys.dont_write_bytecode


def test_two_projects_at_once_keep_their_own_code(softmax_project: Path, tmp_path: Path) -> None:
    import shutil

    other = Path(shutil.copytree(softmax_project, tmp_path / "other"))
    source = other / "kernels/softmax.py"
    source.write_text(source.read_text().replace('"rows", 7', '"rows", 9'))
    assert find_project(softmax_project).operators["softmax"].axes[0].default == 7
    assert find_project(other).operators["softmax"].axes[0].default == 9


def test_this_repository_is_a_project() -> None:
    assert set(find_project(ROOT).shapes()) >= {f"q{rows}" for rows in range(2, 9)}


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("", "expected a pyproject.toml with a table"),
        ("[tool.kernel-audit]\nkernel = 'x'", "unknown field `kernel`; known keys: kernels"),
        ("[tool.kernel-audit]\nkernels = 3", "Expected `str`"),
        ("[tool.kernel-audit]\nkernels = '../..'", "expected a folder inside the project"),
        ("[tool.kernel-audit]\nkernels = 'absent'", "which does not exist"),
        ("[tool.kernel-audit\n", "cannot be read as TOML"),
        ("tool.kernel-audit = 4", "Expected `object`"),
    ],
)
def test_malformed_settings_are_refused(softmax_project: Path, table: str, words: str) -> None:
    (softmax_project / "pyproject.toml").write_text(table)
    with pytest.raises(ProjectError, match=words):
        _ = find_project(softmax_project).operators


def test_an_error_in_the_project_names_its_line(softmax_project: Path) -> None:
    (softmax_project / "kernels/broken.py").write_text("x = 1\ny = 1 / 0\n")
    with pytest.raises(ProjectError, match=r"broken\.py:2: ZeroDivisionError"):
        _ = find_project(softmax_project).operators


def test_a_folder_without_operators_is_refused(softmax_project: Path) -> None:
    (softmax_project / "kernels/softmax.py").write_text("x = 1\n")
    with pytest.raises(ProjectError, match="at least one module-level"):
        _ = find_project(softmax_project).operators


def test_an_unknown_shape_lists_the_known(softmax_project: Path) -> None:
    with pytest.raises(PlanError, match="expected one of softmax, but got 'q99'"):
        find_project(softmax_project).shape("q99")
