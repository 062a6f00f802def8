"""The audited project: finding `[tool.kernel-audit]`, loading its folders by path, collecting what it declares.

The project's packages are loaded under a private name, so that a folder called `kernels` shadows nothing that
is installed; relative imports inside and between its folders work as usual.
"""

from __future__ import annotations

import hashlib
import importlib
import pkgutil
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from audit import declaration, foreign
from audit.errors import PlanError, ProjectError
from audit.foreign import ForeignError
from audit.spec import Operator, Shape

TABLE = "kernel-audit"


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The table `[tool.kernel-audit]`; all paths are relative to the project's folder and stay inside it."""

    kernels: str = "kernels"
    references: str | None = None
    captures: str | None = None
    faults: str | None = None
    runs: str = "runs"
    reports: str = "reports"  # retained records and frozen curves
    suppressions: tuple[dict[str, Any], ...] = ()  # rules about findings: `audit.sanitize.suppressions` reads them
    gate: dict[str, Any] = {}  # policies by name: `audit.gate.policy` reads them


class Project:
    """One audited project: its folder, its settings, and its operators, loaded when first asked for."""

    def __init__(self, root: Path, settings: Settings) -> None:
        self.root = root
        self.settings = settings
        self._operators: dict[str, Operator] | None = None
        self._declared: dict[str, Path] = {}

    @property
    def operators(self) -> dict[str, Operator]:
        """Every operator declared in the project's kernels folder, by name."""
        if self._operators is None:
            self._operators, self._declared = _collect(self.root, self.settings.kernels)
        return self._operators

    def declared_in(self, operator: str) -> Path:
        """The file that declares an operator."""
        _ = self.operators
        return self._declared[operator]

    @property
    def captures(self) -> Path | None:
        """The folder of capture sets, where the project has one."""
        return self.root / self.settings.captures if self.settings.captures else None

    @property
    def reports(self) -> Path:
        """The folder of retained records and frozen curves."""
        return self.root / self.settings.reports

    @property
    def runs(self) -> Path:
        """The folder of new records."""
        return self.root / self.settings.runs

    def shapes(self) -> dict[str, tuple[Operator, Shape]]:
        """Every shape by name; an operator that declares none has one of its own name."""
        found: dict[str, tuple[Operator, Shape]] = {}
        for operator in self.operators.values():
            for shape in operator.shapes or (Shape(operator.name),):
                if shape.name in found:
                    raise ProjectError(
                        f"shape {shape.name}: declared by both {found[shape.name][0].name} and {operator.name}"
                    )
                found[shape.name] = (operator, shape)
        return found

    def shape(self, name: str) -> tuple[Operator, Shape]:
        """The shape of that name with its operator, or PlanError."""
        shapes = self.shapes()
        if name not in shapes:
            raise PlanError(f"--shape: expected one of {', '.join(shapes)}, but got {name!r}")
        return shapes[name]


def find_project(start: Path) -> Project:
    """The project of a folder or of the nearest one above it whose pyproject.toml has the table."""
    start = start.resolve()
    for folder in (start, *start.parents):
        file = folder / "pyproject.toml"
        if file.is_file():
            table = _table(file)
            if table is not None:
                return Project(folder, _settings(file, folder, table))
    raise ProjectError(
        f"no project here: expected a pyproject.toml with a table [tool.{TABLE}] in {start} or above it; "
        f"add one, or name the project's folder with --project"
    )


def _table(file: Path) -> Any:
    try:
        document = foreign.read_toml(file)
    except ForeignError as error:
        raise ProjectError(f"{file}: cannot be read as TOML: {error}") from None
    tool = document.get("tool", {})
    return tool.get(TABLE) if isinstance(tool, dict) else None


def _settings(file: Path, root: Path, table: Any) -> Settings:
    try:
        settings = msgspec.convert(table, Settings)
    except msgspec.ValidationError as error:
        known = ", ".join(field.encode_name for field in msgspec.structs.fields(Settings))
        raise ProjectError(f"{file}: [tool.{TABLE}]: {error}; known keys: {known}") from None
    for name in ("kernels", "references", "captures", "faults", "runs", "reports"):
        value = getattr(settings, name)
        if value is not None and not (root / value).resolve().is_relative_to(root):
            raise ProjectError(
                f"{file}: [tool.{TABLE}] {name}: expected a folder inside the project, but got {value!r}"
            )
    return settings


def _collect(root: Path, folder: str) -> tuple[dict[str, Operator], dict[str, Path]]:
    """Operators by name, and the file that declares each: of the modules that hold it the innermost."""
    if not (root / folder).is_dir():
        raise ProjectError(f"{root}: expected the kernels in the folder {folder!r}, which does not exist")
    found: dict[str, Operator] = {}
    declared: dict[str, Path] = {}
    for module in sorted(_load(root, folder), key=lambda module: module.__name__.count(".")):
        for value in vars(module).values():
            if not isinstance(value, Operator):
                continue
            declaration.admit(value, Path(module.__file__ or folder))
            if found.setdefault(value.name, value) is not value:
                raise ProjectError(f"operator {value.name}: declared twice, the second time in {module.__file__}")
            declared[value.name] = Path(module.__file__ or folder)
    if not found:
        raise ProjectError(
            f"{root / folder}: expected at least one module-level audit.spec.Operator, but found none; "
            f"declare one in a Python file of that folder"
        )
    return found, declared


def _load(root: Path, folder: str) -> list[ModuleType]:
    anchor = f"_audited_{hashlib.sha256(str(root).encode()).hexdigest()[:12]}"
    if anchor not in sys.modules:
        package = ModuleType(anchor)
        package.__path__ = [str(root)]
        sys.modules[anchor] = package
    name = ".".join((anchor, *Path(folder).parts))
    modules = []
    # Kept bytecode is found valid by a source's second and length: an edit can miss both.
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        top = importlib.import_module(name)
        modules.append(top)
        for info in pkgutil.walk_packages(top.__path__, prefix=f"{name}."):
            modules.append(importlib.import_module(info.name))
    except ProjectError:
        raise
    except Exception as error:  # a project is code: whatever it raises while loading is its author's to mend
        raise ProjectError(f"{root / folder}: {_culprit(root, error)}") from error
    finally:
        sys.dont_write_bytecode = writes
    return modules


def _culprit(root: Path, error: Exception) -> str:
    """The innermost line of the project that was executing when the error came."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}: {error.msg}"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if Path(frame.filename).is_relative_to(root):
            return f"{frame.filename}:{frame.lineno}: {type(error).__name__}: {error}"
    return f"{type(error).__name__}: {error}"
