"""The project files that one build reads: a source and, recursively, what it includes with quotes."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path, PurePosixPath

from audit.compile.lexer import line_of, tokens
from audit.errors import CompileError, ProjectError

SIMT = Path(__file__).resolve().parent.parent / "simt"
PORTABLE = SIMT / "portable"
_PROVIDED = (PORTABLE, SIMT / "include")
_SIZE_LIMIT = 16 * 2**20


def project_sources(root: Path, source: Path) -> dict[str, bytes]:
    """Path relative to `root` (with `/`) -> content, the source first.

    A quoted name is looked for beside the file that includes it, then in `root`; headers that the toolkit
    provides are left to the compiler. Raises ProjectError for a file outside of `root` or a source that is not
    there, CompileError for an include that is not there.
    """
    root = root.resolve()
    first = _inside(root, root / source, f"source {source}")
    if not first.is_file():
        raise ProjectError(f"source {source}: no such file in {root}")
    found: dict[str, bytes] = {}
    waiting = [first]
    while waiting:
        path = waiting.pop()
        name = path.relative_to(root).as_posix()
        if name in found:
            continue
        if path.stat().st_size > _SIZE_LIMIT:
            raise ProjectError(f"{name}: a source of more than {_SIZE_LIMIT} bytes is refused")
        found[name] = path.read_bytes()
        waiting += reversed(_includes(root, path, decoded(name, found[name])))
    return found


def decoded(name: str, content: bytes) -> str:
    """A source file's text. Raises CompileError unless it is UTF-8."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise CompileError(f"{name}: not UTF-8 at byte {error.start}; save it as UTF-8") from error


def _includes(root: Path, path: Path, text: str) -> list[Path]:
    name = path.relative_to(root).as_posix()
    paths = []
    for line, wanted in quoted_includes(text):
        where = f'{name}:{line}: include "{wanted}"'
        if PurePosixPath(wanted).is_absolute():
            raise ProjectError(f"{where}: an absolute path; write it relative to this file or to the project's root")
        here = _inside(root, path.parent / wanted, where)
        from_root = Path(os.path.normpath(root / wanted))
        if here.is_file():
            paths.append(here)
        elif from_root.is_file() and from_root.is_relative_to(root):
            paths.append(_inside(root, from_root, where))
        elif not any((folder / wanted).is_file() for folder in _PROVIDED):
            raise CompileError(
                f"{where}: no such file beside {name} or in the project's root {root}; system headers take <...>"
            )
    return paths


@lru_cache(maxsize=256)
def quoted_includes(text: str) -> tuple[tuple[int, str], ...]:
    """(line, name) of every include with quotes."""
    found = []
    for token in tokens(text):
        words = list(tokens(text, token.start + 1, token.end)) if token.kind == "directive" else []
        if len(words) >= 2 and words[0].text == "include" and words[1].kind == "string":
            found.append((line_of(text, token.start), words[1].text.strip('"')))
    return tuple(found)


def _inside(root: Path, path: Path, what: str) -> Path:
    """`path` without `..`; symbolic links keep their name, and must lead to somewhere inside of `root`."""
    plain = Path(os.path.normpath(path))
    if not (plain.is_relative_to(root) and plain.resolve().is_relative_to(root)):
        raise ProjectError(f"{what}: {plain} lies outside of the project's root {root}; move the file into the project")
    return plain
