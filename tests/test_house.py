"""The house keeps its shape: no folder imports in a circle, a type has one meaning, every test file is collected."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from .conftest import ROOT
from .names import BY_CONTRACT, definitions, functions_with_several_meanings, types_with_several_meanings


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """The contracts of pyproject.toml over the package in a folder."""
    code = "from importlinter.cli import lint_imports; import sys; sys.exit(lint_imports(cache_dir=None))"
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)


def test_no_folder_imports_in_a_circle() -> None:
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout


def test_a_circle_is_found(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "audit", tmp_path / "audit", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with (tmp_path / "audit/records/folder.py").open("a") as file:
        file.write("\n\ndef _page() -> object:\n    from audit.report import pages\n\n    return pages\n")
    done = lint_imports(tmp_path)
    assert done.returncode == 1
    assert "No cycles are allowed in audit" in done.stdout
    assert "audit.records is not allowed to import audit.report" in done.stdout


def test_a_name_has_one_meaning(tmp_path: Path) -> None:
    assert types_with_several_meanings(ROOT / "audit") == {}
    assert functions_with_several_meanings(ROOT / "audit") == {}
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("class Finding:\n    pass\n")
    assert types_with_several_meanings(tmp_path) == {"Finding": ["a.py", "b.py"]}


def test_names_that_share_a_contract_exist() -> None:
    assert set(definitions(ROOT / "audit")) >= BY_CONTRACT


def test_every_test_file_is_collected() -> None:
    """By the README's `pytest`, whose defaults leave out folders such as `build`."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    collected = {line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line}
    written = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")}
    assert written - collected == set()
