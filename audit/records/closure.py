"""What decided a verdict beside the CUDA sources: the project's Python, the files and environment variables that it
read, what its declaration resolves to, and this tool.

Python code is found by its imports, from the module that declares the operator on; files through the audit event `open`
(PEP 578) while the project's code runs. What native code opens is not seen, nor what a module imports by a computed
name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path

import msgspec

from audit import __version__
from audit.compile.identity import sha256_of_file
from audit.compile.sources import SIMT
from audit.environment_reads import ABSENT, digest_of
from audit.project import Project
from audit.project_reads import ProjectReads
from audit.records.resolution import Resolution, ResolvedCase, resolution_changes, resolution_of

_CODE = ("", ".cc", ".h")


class Closure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Digests (sha256) of what a verdict depends on.

    python   the project's modules that the operator imports, by path relative to the project
    opened   the files that the project's code read, by path: relative to the project, or absolute outside of it
    tool     the version of this tool
    runtime  this tool's C++ runtime and headers, which kernels are compiled with, as one digest
    resolved the declaration as it resolves for the cases; records of older versions have none
    environment  the variables that the project's code read, by name; empty for one that was not set
    """

    python: dict[str, str]
    opened: dict[str, str]
    tool: str
    runtime: str
    resolved: Resolution | None = None
    environment: dict[str, str] = {}


def closure_of(
    project: Project, operator: str, reads: Iterable[ProjectReads], cases: Iterable[ResolvedCase]
) -> Closure:
    """The closure of an operator's verdicts now; `reads` is what its code read in `cases`."""
    reads = [project.reads, *reads]
    read = [path for name in set().union(*(one.files for one in reads)) if (path := Path(name)).is_file()]
    variables: dict[str, str] = {}
    for one in reads:
        variables = {**one.variables, **variables}
    return Closure(
        python=python_sources(project.root, project.declared_in(operator)),
        opened=dict(
            sorted((relative_name(project.root, path), sha256_of_file(path)) for path in read if not _code(path))
        ),
        tool=__version__,
        runtime=runtime_digest(),
        resolved=resolution_of(project, operator, cases),
        environment=dict(sorted(variables.items())),
    )


def changes(
    closure: Closure, project: Project, operator: str, cases: Iterable[ResolvedCase]
) -> Iterator[tuple[str, str]]:
    """What of a recorded closure is another thing now: (name, how); `cases` are those of the record."""
    try:
        now = python_sources(project.root, project.declared_in(operator))
    except KeyError:
        yield f"operator {operator}", "is gone"
        return
    for name, digest in closure.python.items():
        if now.get(name) != digest:
            yield name, "has changed" if name in now else "is no longer imported"
    yield from ((name, "is imported now") for name in now if name not in closure.python)
    yield from changed_files(project.root, closure.opened)
    for name, digest in closure.environment.items():
        value = project.reads.variables.get(name, digest_of(name))
        if value != digest:
            how = "is not set now" if value == ABSENT else "is set now" if digest == ABSENT else "has changed"
            yield f"the environment variable {name}", how
    if closure.tool != __version__:
        yield "kernel-audit", f"was {closure.tool}, and is {__version__}"
    elif closure.runtime != runtime_digest():
        yield "audit/simt", "has changed"
    if closure.resolved is None:
        yield "the record", "is of a version that did not record what its declaration resolves to"
    else:
        yield from resolution_changes(closure.resolved, resolution_of(project, operator, cases))


def changed_files(root: Path, digests: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each file below a root that is gone, or has another digest than the recorded one: (name, how)."""
    for name, digest in digests.items():
        file = root / name
        if not file.is_file():
            yield name, "is gone"
        elif sha256_of_file(file) != digest:
            yield name, "has changed"


def python_sources(root: Path, module: Path) -> dict[str, str]:
    """path -> sha256 of a module and of all modules of the project that it imports, directly or not."""
    found: dict[str, str] = {}
    waiting = [module]
    while waiting:
        path = waiting.pop().resolve()
        if not path.is_file() or not path.is_relative_to(root):
            continue
        name = path.relative_to(root).as_posix()
        if name in found:
            continue
        content = path.read_bytes()
        found[name] = sha256(content).hexdigest()
        waiting += _packages(root, path)
        waiting += _imported(root, path, content)
    return dict(sorted(found.items()))


def relative_name(root: Path, path: Path) -> str:
    """A path relative to the project, where it lies inside."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


@cache
def runtime_digest() -> str:
    """One digest over the C++ files of this tool."""
    digest = sha256()
    for path in sorted(SIMT.rglob("*")):
        if path.is_file() and path.suffix in _CODE:
            digest.update(f"{path.relative_to(SIMT).as_posix()}\0{sha256_of_file(path)}\n".encode())
    return digest.hexdigest()


def _code(path: Path) -> bool:
    """A module or its bytecode: imports find these."""
    return path.suffix in (".py", ".pyc")


def _packages(root: Path, path: Path) -> Iterator[Path]:
    """The `__init__` of every package that a module lies in: importing the module runs them."""
    for folder in path.parents:
        if folder == root or not folder.is_relative_to(root):
            return
        yield folder / "__init__.py"


def _imported(root: Path, path: Path, content: bytes) -> Iterator[Path]:
    """The files that the imports of a module may name, beside it or relative; those that do not exist are left out
    later."""
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.Import):
            yield from (path.parent / f"{name.name}.py" for name in node.names)
        if not isinstance(node, ast.ImportFrom):
            continue
        if node.level == 0:
            yield path.parent / f"{node.module}.py"
            continue
        base = path.parent
        for _ in range(node.level - 1):
            base = base.parent
        base = base.joinpath(*(node.module or "").split(".")) if node.module else base
        if not base.is_relative_to(root):
            continue
        yield from (base.with_suffix(".py"), base / "__init__.py")
        for name in node.names:
            yield from (base / f"{name.name}.py", base / name.name / "__init__.py")
