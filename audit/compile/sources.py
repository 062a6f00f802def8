"""The project files that one build reads: a source and, recursively, what it includes with quotes."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath

from audit.compile.lexer import line_of, tokens
from audit.errors import ProjectError

SIMT = Path(__file__).resolve().parent.parent / "simt"
PORTABLE = SIMT / "portable"
_PROVIDED = (PORTABLE, SIMT / "include")
_SIZE_LIMIT = 16 * 2**20
_ANGLE = re.compile(r"#\s*include\s*<\s*([^>]+?)\s*>")


def project_sources(
    root: Path, source: Path, folders: Sequence[str] = (), also: Sequence[str] = ()
) -> dict[str, bytes]:
    """Path relative to `root` (with `/`) -> content, the source first.

    A quoted name is searched beside the file that includes it, in `root` and in `folders`, a name in angle brackets in
    `folders` only; the preprocessor decides whether it is read. `also` are further sources.
    Any other name is left to the compiler, which finds the tool's own headers and its own. Raises ProjectError
    for a file outside `root` or a missing source.
    """
    root = root.resolve()
    first = _existing(root, source)
    contents: dict[str, bytes] = {}
    pending = [*(_existing(root, each) for each in reversed(also)), first]
    while pending:
        path = pending.pop()
        name = path.relative_to(root).as_posix()
        if name in contents:
            continue
        contents[name] = read_source(path, name)
        pending += reversed(_includes(root, path, decoded(contents[name]), folders))
    return contents


def _existing(root: Path, source: Path | str) -> Path:
    found = _inside(root, root / source, f"source {source}")
    if not found.is_file():
        raise ProjectError(f"source {source}: no such file in {root}; correct the variant's Source")
    return found


def read_source(path: Path, name: str) -> bytes:
    """A source file's bytes. Raises ProjectError for a file larger than any source."""
    if path.stat().st_size > _SIZE_LIMIT:
        raise ProjectError(
            f"{name}: expected a source of at most {_SIZE_LIMIT:,} bytes, but got {path.stat().st_size:,}"
        )
    return path.read_bytes()


def decoded(content: bytes) -> str:
    """A source file's text, without a byte-order mark. What is not UTF-8 is taken for Latin-1, as in old comments."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def foreign_includes(files: Mapping[str, str], folders: Sequence[str] = ()) -> dict[str, frozenset[str]]:
    """For each text of a build by its name, the quoted names in it that are no file of the build."""
    foreign = {}
    for name, text in files.items():
        folder = PurePosixPath(name).parent
        candidates = {
            wanted: [os.path.normpath(PurePosixPath(place) / wanted) for place in (str(folder), ".", *folders)]
            for _, wanted in quoted_includes(text)
        }
        foreign[name] = frozenset(wanted for wanted, paths in candidates.items() if files.keys().isdisjoint(paths))
    return foreign


def is_provided(header: str) -> bool:
    """Whether the tool has a header of this name for the CPU."""
    return any((folder / header).is_file() for folder in _PROVIDED)


def _includes(root: Path, path: Path, text: str, folders: Sequence[str]) -> list[Path]:
    name = path.relative_to(root).as_posix()
    paths = []
    for line, wanted in quoted_includes(text):
        where = f'{name}:{line}: include "{wanted}"'
        if PurePosixPath(wanted).is_absolute():
            if Path(wanted).exists():
                raise ProjectError(
                    f"{where}: an absolute path; write it relative to this file or to the project's root"
                )
            continue
        beside = Path(os.path.normpath(path.parent / wanted))
        from_root = Path(os.path.normpath(root / wanted))
        if beside.is_file():
            paths.append(_inside(root, beside, where))
        elif from_root.is_file() and from_root.is_relative_to(root):
            paths.append(_inside(root, from_root, where))
        elif found := _in_folders(root, wanted, folders):
            paths.append(_inside(root, found, where))
    for wanted in angle_includes(text) if folders else ():
        if found := _in_folders(root, wanted, folders):
            paths.append(_inside(root, found, f"{name}: include <{wanted}>"))
    return paths


def _in_folders(root: Path, wanted: str, folders: Sequence[str]) -> Path | None:
    """The first file of that name in a folder of the project; a folder elsewhere is the compiler's business."""
    places = (Path(os.path.normpath(root / folder / wanted)) for folder in folders)
    return next((place for place in places if place.is_file() and place.is_relative_to(root)), None)


@lru_cache(maxsize=256)
def angle_includes(text: str) -> tuple[str, ...]:
    """The name of every include in angle brackets."""
    directives = (_ANGLE.match(token.text) for token in tokens(text) if token.kind == "directive")
    return tuple(match[1] for match in directives if match)


@lru_cache(maxsize=256)
def quoted_includes(text: str) -> tuple[tuple[int, str], ...]:
    """The line and name of every quoted include."""
    includes = []
    for token in tokens(text):
        words = list(tokens(text, token.start + 1, token.end)) if token.kind == "directive" else []
        if len(words) >= 2 and words[0].text == "include" and words[1].kind == "string":
            includes.append((line_of(text, token.start), words[1].text.strip('"')))
    return tuple(includes)


def _inside(root: Path, path: Path, what: str) -> Path:
    """`path` without `..`. A symbolic link keeps its name and must point inside `root`."""
    plain = Path(os.path.normpath(path))
    if not (plain.is_relative_to(root) and plain.resolve().is_relative_to(root)):
        raise ProjectError(f"{what}: {plain} is outside the project's root {root}; move the file into the project")
    return plain
