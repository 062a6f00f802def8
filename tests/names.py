"""Names with several meanings in `audit/`: `python tests/names.py` lists them, `tests/test_house.py` refuses them."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

BY_CONTRACT = frozenset({"command", "decode", "main", "draft", "pages", "points", "run"})
"""Functions that several modules offer under one name because one caller picks the module."""


def definitions(folder: Path) -> dict[str, list[str]]:
    """Public types and functions at the top of every module below a folder: name -> the files that define it."""
    found = defaultdict(list)
    for path in sorted(folder.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                found[node.name].append(path.relative_to(folder).as_posix())
    return dict(found)


def types_with_several_meanings(folder: Path) -> dict[str, list[str]]:
    """Type names that more than one module defines."""
    return {name: files for name, files in definitions(folder).items() if name[0].isupper() and len(files) > 1}


def functions_with_several_meanings(folder: Path) -> dict[str, list[str]]:
    """Function names that more than one module defines, and no contract asks for."""
    found = definitions(folder)
    return {
        name: files for name, files in found.items() if name[0].islower() and len(files) > 1 and name not in BY_CONTRACT
    }


if __name__ == "__main__":
    for listed in (types_with_several_meanings, functions_with_several_meanings):
        meanings = listed(ROOT / "audit")
        print(f"{listed.__name__.replace('_', ' ')}: {len(meanings)}")
        for each, files in sorted(meanings.items()):
            print(f"  {each}: {', '.join(files)}")
