"""What a project may import: one list, loaded lazily, and enough for every project in this repository."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import audit

from .conftest import ROOT

PROJECTS = [path for folder in ("kernels", "references", "tests/projects") for path in (ROOT / folder).rglob("*.py")]


def imported(text: str) -> Iterator[tuple[str, str]]:
    """(module, name) of everything of the tool that a Python text imports; the name is empty for `import audit.x`."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "audit":
            yield from ((node.module or "", each.name) for each in node.names)
        elif isinstance(node, ast.Import):
            yield from ((each.name, "") for each in node.names if each.name.partition(".")[0] == "audit")


def private(text: str) -> list[str]:
    """What a text imports of the tool and may not."""
    return [
        f"{module}.{name}"
        for module, name in imported(text)
        if module not in audit.PUBLIC_MODULES
        or (module == "audit" and name not in audit.__all__ and f"audit.{name}" not in audit.PUBLIC_MODULES)
    ]


@pytest.mark.parametrize("path", PROJECTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_projects_import_public_names_alone(path: Path) -> None:
    assert private(path.read_text()) == []


def test_documented_projects_import_public_names_alone() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for block in re.findall(r"```(?:python|py)\n(.*?)```", page.read_text(), re.DOTALL):
            assert private(block) == [], page


def test_a_private_import_is_seen() -> None:
    assert private("from audit.arena import Arena\nfrom audit import plan\nimport audit.run") == [
        "audit.arena.Arena",
        "audit.plan",
        "audit.run.",
    ]


def test_every_public_name_exists() -> None:
    assert all(getattr(audit, name) is not None for name in audit.__all__)
    assert set(audit.__all__) <= set(dir(audit))
    with pytest.raises(AttributeError, match="no attribute 'operator'"):
        _ = audit.operator  # type: ignore[attr-defined]


def test_importing_the_package_loads_neither_numpy_nor_torch() -> None:
    code = "import audit, sys; assert not {'numpy', 'torch', 'msgspec'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
