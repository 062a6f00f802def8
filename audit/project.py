"""The audited project: finds `[tool.kernel-audit]`, loads the project's folders by path, collects its operators.

The project's packages are loaded under a private name, so that a folder called `kernels` shadows no installed package.
Relative imports inside and between its folders work as usual.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from audit import declaration, foreign
from audit.environment_reads import PROJECT
from audit.errors import PlanError, ProjectError
from audit.foreign import ForeignError
from audit.hook_values import operator_values
from audit.hooks import forbid_exit, is_interruption, leave_if_forked, project_line
from audit.project_reads import ProjectReads, read_by_the_project
from audit.spec import Operator, Shape

TABLE = "kernel-audit"


_reads: dict[Path, ProjectReads] = {}  # by root: modules are loaded once
_values: dict[tuple[Path, str], tuple[Operator, Mapping[str, Mapping[str, str]]]] = {}  # as they were when loaded


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The table `[tool.kernel-audit]`. All paths are relative to the project's folder and stay inside it."""

    kernels: str = "kernels"
    references: str | None = None
    captures: str | None = None
    faults: str | None = None
    runs: str = "runs"
    reports: str = "reports"  # retained records and frozen curves
    suppressions: tuple[dict[str, Any], ...] = ()  # `audit.sanitize.suppressions` reads them
    gate: dict[str, Any] = {}  # policies by name: `audit.gate.policy` reads them


class Project:
    """One audited project: its folder, its settings, and its operators, which load on first use."""

    def __init__(self, root: Path, settings: Settings) -> None:
        self.root = root
        self.settings = settings
        self._operators: dict[str, Operator] | None = None
        self._declared: dict[str, Path] = {}

    @classmethod
    def of(cls, root: Path, settings: Settings, operator: Operator, declared_in: Path) -> Project:
        """A project that no pyproject.toml declares, with one operator."""
        project = cls(root, settings)
        project._operators, project._declared = {operator.name: operator}, {operator.name: declared_in}
        _values[root, operator.name] = (operator, {})  # its hooks are the tool's own
        return project

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

    def values(self, operator: str) -> Mapping[str, Mapping[str, str]]:
        """The digests of the values that an operator's hooks were made with (`audit.hook_values`)."""
        _ = self.operators
        return _values[self.root, operator][1]

    @property
    def captures(self) -> Path | None:
        """The folder of capture sets, if the project has one."""
        return self.root / self.settings.captures if self.settings.captures else None

    @property
    def reads(self) -> ProjectReads:
        """What the project's modules read while they were loaded."""
        _ = self.operators
        return _reads.get(self.root, ProjectReads())

    @property
    def reports(self) -> Path:
        """The folder of retained records and frozen curves."""
        return self.root / self.settings.reports

    @property
    def runs(self) -> Path:
        """The folder of new records."""
        return self.root / self.settings.runs

    def own_runs(self) -> Path:
        """The folder of new records, which ignores itself in git from the moment that it is made here."""
        try:
            self.runs.mkdir(parents=True)
            (self.runs / ".gitignore").write_text("*\n", encoding="utf-8")
        except OSError:  # it exists, or cannot be written: the record that goes there says so
            pass
        return self.runs

    def shapes(self) -> dict[str, tuple[Operator, Shape]]:
        """Every shape by name. An operator that declares no shape has one of its own name."""
        shapes: dict[str, tuple[Operator, Shape]] = {}
        for operator in self.operators.values():
            for shape in operator.shapes or (Shape(operator.name),):
                if shape.name in shapes:
                    raise ProjectError(
                        f"shape {shape.name}: expected one operator to declare it, but both "
                        f"{shapes[shape.name][0].name} and {operator.name} do; rename one"
                    )
                shapes[shape.name] = (operator, shape)
        return shapes

    def shape(self, name: str) -> tuple[Operator, Shape]:
        """The shape of that name and its operator. Raises PlanError if there is none."""
        shapes = self.shapes()
        if name not in shapes:
            raise PlanError(f"--shape: expected one of {', '.join(shapes)}, but got {name!r}")
        return shapes[name]


def find_project(start: Path) -> Project:
    """The project of a folder, or of its nearest parent whose pyproject.toml has the table."""
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


def project_in(folder: Path) -> Project:
    """The project of exactly this folder. ProjectError where its pyproject.toml declares none."""
    file = folder / "pyproject.toml"
    table = _table(file)
    if table is None:
        raise ProjectError(f"{file}: expected a table [tool.{TABLE}]; add one")
    return Project(folder, _settings(file, folder, table))


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
    """Operators by name, and the file that declares each: the innermost module that holds it."""
    if not (root / folder).is_dir():
        raise ProjectError(
            f"{root}: expected the kernels in the folder {folder!r}, which does not exist; "
            f"create it, or set `kernels` in [tool.{TABLE}]"
        )
    operators: dict[str, Operator] = {}
    declared: dict[str, Path] = {}
    for module in sorted(_load(root, folder), key=lambda module: module.__name__.count(".")):
        for value in vars(module).values():
            if not isinstance(value, Operator):
                continue
            declaration.admit(value, Path(module.__file__ or folder))
            if operators.setdefault(value.name, value) is not value:
                raise ProjectError(
                    f"operator {value.name}: declared twice, the second time in {module.__file__}; rename one"
                )
            declared[value.name] = Path(module.__file__ or folder)
    if not operators:
        raise ProjectError(
            f"{root / folder}: expected at least one module-level audit.spec.Operator, but found none; "
            f"declare one in a Python file of that folder"
        )
    return operators, declared


def load_file(root: Path, file: Path) -> ModuleType:
    """A Python file, and what it imports beside it, as code of the project whose root is given.

    Raises ProjectError where there is no such file, or for whatever it raises.
    """
    if not file.is_file() or not file.stem.isidentifier():
        raise ProjectError(f"{file}: expected a Python file whose name is an identifier")
    beside = str(file.resolve().parent)
    with _loading(root, file):
        sys.path.append(beside)  # the last: `import shapes` finds shapes.py beside the file, unless one is installed
        try:
            return importlib.import_module(f"{_package_of(file.resolve().parent)}.{file.stem}")
        finally:
            sys.path.remove(beside)


def _load(root: Path, folder: str) -> list[ModuleType]:
    name = ".".join((_package_of(root), *Path(folder).parts))
    with _loading(root, root / folder):
        modules = [top := importlib.import_module(name)]
        for info in pkgutil.walk_packages(top.__path__, prefix=f"{name}."):
            modules.append(importlib.import_module(info.name))
        _keep_values(root, modules)
        return modules


def _package_of(folder: Path) -> str:
    """The private package whose modules are the files of a folder."""
    name = f"{PROJECT}{hashlib.sha256(str(folder).encode()).hexdigest()[:12]}"
    if name not in sys.modules:
        package = ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    return name


@contextmanager
def _loading(root: Path, what: Path) -> Iterator[None]:
    """While code of a project is imported: it cannot end the tool, and whatever it raises is its author's to mend."""
    forbid_exit()
    with _surroundings_kept(), read_by_the_project(_reads.setdefault(root, ProjectReads())):
        try:
            yield
        except ProjectError:
            raise
        except BaseException as error:
            if is_interruption(error):
                raise
            raise ProjectError(f"{what}: {_reason(error)}") from error


def _keep_values(root: Path, modules: list[ModuleType]) -> None:
    """Digest the values of each operator before any of its hooks runs."""
    for module in modules:
        for value in vars(module).values():
            if isinstance(value, Operator) and isinstance(value.name, str):
                kept = _values.get((root, value.name))
                if kept is None or kept[0] is not value:
                    declaration.admit(value, Path(module.__file__ or module.__name__))
                    _values[root, value.name] = (value, operator_values(value, root))


@contextmanager
def _surroundings_kept() -> Iterator[None]:
    """What loading may change for its own code alone: the current folder, the streams, whether bytecode is kept, how a
    process ends. Kept bytecode is found valid by a source's second and length, and an edit can miss both."""
    own, here, streams, leave = os.getpid(), Path.cwd(), (sys.stdout, sys.stderr), sys.exit
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        leave_if_forked(own)
        sys.dont_write_bytecode = writes
        (sys.stdout, sys.stderr), sys.exit = streams, leave
        os.chdir(here)


def _reason(error: BaseException) -> str:
    """The error, behind the innermost line of the project that was executing when it came."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}: {error.msg}"
    line = project_line(error)
    return f"{line + ': ' if line else ''}{type(error).__name__}: {error}"
