"""Write `reference.md` from the docstrings and signatures of the public vocabulary: `python docs/make_reference.py`.

A docstring explains fields and arguments in lines of a name, two spaces or more, and words; these become a table.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import audit  # noqa: E402 - this repository's, whatever is installed
from audit import bounds, comparisons, errors, formats, relations, sparse, spec  # noqa: E402

HEADER = """<!-- Made by `python docs/make_reference.py` from the docstrings; edit those. -->
# The declaration

Everything on this page is what a project may import; all else below `audit` is private and may change without notice.
`from audit import Operator` works for the names of the first five sections. [Your own kernel](your-kernel.md) explains
the declaration by examples.
"""
_FIELD = re.compile(r"(?P<name>\w+) {2,}(?P<words>\S.*)")
_NO_DEFAULT = inspect.Parameter.empty


@dataclass(frozen=True)
class Docstring:
    """A docstring in two parts: paragraphs, and what it says of fields or arguments by name."""

    prose: str
    fields: dict[str, str]


def parsed(text: str) -> Docstring:
    """A docstring's parts."""
    prose: list[str] = []
    fields: dict[str, str] = {}
    last = ""
    for line in inspect.cleandoc(text).splitlines():
        if found := _FIELD.fullmatch(line):
            last = found["name"]
            fields[last] = found["words"]
        elif last and line.startswith("    "):
            fields[last] += f" {line.strip()}"
        else:
            last = ""
            prose.append(line)
    return Docstring("\n".join(prose).strip(), fields)


def page() -> str:
    """The whole page."""
    parts = [HEADER]
    parts += ["## Declaration\n", *(_named(name, spec) for name in _declaration())]
    parts += ["## Relations\n", _intro(relations), *(_named(name, relations) for name in _own(relations))]
    parts += ["## Bounds\n", _intro(bounds), *(_named(name, bounds) for name in _own(bounds))]
    parts += ["## Comparisons\n", _intro(comparisons), *(_named(name, comparisons) for name in _own(comparisons))]
    parts += ["## Errors\n", _intro(errors), *(_named(name, errors) for name in audit.__all__ if _is_error(name))]
    for title, module in (("Number formats", formats), ("Sparse arrays", sparse)):
        lead = f"`from audit import {module.__name__.partition('.')[2]}`. {_intro(module)}"
        parts += [f"## {title}\n", lead, *(_named(name, module) for name in _own(module))]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts))


def unexplained() -> list[str]:
    """Every field or argument of the declaration that no docstring explains, and every one explained that is not."""
    found = []
    for name in _declaration():
        value = getattr(audit, name)
        if inspect.isclass(value) and not getattr(value, "_is_protocol", False):
            fields = set(inspect.signature(value).parameters)
            found += [f"{name}.{field}" for field in fields ^ parsed(value.__doc__ or "").fields.keys()]
    return found


def _declaration() -> list[str]:
    """The public names of `audit.spec`."""
    other = {*_own(relations), *vars(errors)}
    return [name for name in audit.__all__ if hasattr(spec, name) and name not in other]


def _own(module: ModuleType) -> list[str]:
    """The public functions, classes and explained constants of a module, in its order."""
    constants = re.findall(r'^([A-Z]\w*)(?:: [^=\n]+)? = .+\n"""', inspect.getsource(module), re.MULTILINE)
    return [
        name
        for name, value in vars(module).items()
        if name in constants
        or (not name.startswith("_") and callable(value) and getattr(value, "__module__", "") == module.__name__)
    ]


def _is_error(name: str) -> bool:
    return inspect.isclass(value := getattr(audit, name)) and issubclass(value, Exception)


def _intro(module: ModuleType) -> str:
    return f"{inspect.cleandoc(module.__doc__ or '')}\n"


def _named(name: str, module: ModuleType) -> str:
    value = vars(module)[name]
    if not (inspect.isclass(value) or inspect.isfunction(value)):
        return f"### {name}\n\n{_about(module, name)}\n"
    docstring = parsed(value.__doc__ or "")
    lines = [f"### {name}\n"]
    if inspect.isfunction(value):
        lines.append(f"```text\n{name}{_signature(value)}\n```\n")
    lines.append(f"{docstring.prose}\n")
    if docstring.fields:
        lines += [_table(value, docstring.fields), ""]
    if inspect.isclass(value):
        lines += [line for method in _methods(value) for line in method]
    return "\n".join(lines)


def _signature(function: Any) -> str:
    """The parameters and the result of a function, as its source writes them; a method without `self`."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(node, ast.FunctionDef)
    parameters = re.sub(r"^self(, )?", "", ast.unparse(node.args))
    return f"({parameters})" + (f" -> {ast.unparse(node.returns)}" if node.returns else "")


def _table(value: Any, fields: dict[str, str]) -> str:
    lines = ["| name | type | default | meaning |", "| --- | --- | --- | --- |"]
    for name, parameter in inspect.signature(value).parameters.items():
        shown = _default(parameter.default)
        cells = (f"`{name}`", f"`{inspect.get_annotations(value)[name]}`", shown, fields.get(name, ""))
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines)


def _default(value: Any) -> str:
    if value is _NO_DEFAULT:
        return ""
    if inspect.isfunction(value):
        return "" if value.__name__ == "<lambda>" else f"`{value.__name__}`"
    if value is None or isinstance(value, bool | int | float | str | bytes | tuple | dict):
        return f"`{value!r}`"
    return "`{}`"  # a default factory: each object gets an empty one of its own


def _methods(value: type) -> Iterator[list[str]]:
    """Public methods and properties that a class itself defines, with their docstrings."""
    for name, member in vars(value).items():
        function = member.fget if isinstance(member, property) else member
        if name.startswith("_") or name in inspect.get_annotations(value) or not inspect.isfunction(function):
            continue
        words = " ".join(inspect.cleandoc(function.__doc__ or "").split())
        called = name if isinstance(member, property) else f"{name}{_signature(function)}"
        yield [f"- `{called}`: {words}"]
    yield [""]


def _about(module: ModuleType, name: str) -> str:
    """The docstring below an assignment, and of a type alias what it stands for."""
    source = inspect.getsource(module)
    pattern = rf'^{name}(?:: (?P<kind>[^=\n]+))? = (?P<value>.+?)\n"""(?P<words>.*?)"""'
    found = re.search(pattern, source, re.MULTILINE | re.DOTALL)
    if found is None:
        raise ValueError(f"{module.__name__}.{name}: expected a docstring below the assignment")
    if found["kind"] not in ("TypeAlias", None) or name.isupper():
        return found["words"]
    return f"```text\n{name} = {found['value']}\n```\n\n{found['words']}"


if __name__ == "__main__":
    (ROOT / "docs/reference.md").write_text(page())
