"""The project's files that a build for a GPU may read: a source and, recursively, what its includes can mean.

No preprocessor runs here. An include that a condition leaves out is among them where the project has the file, and a
name that the project does not have is left to the compiler.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from audit.compile.host_code import without_host_code
from audit.compile.lexer import tokens
from audit.compile.sources import read_source
from audit.errors import ProjectError

_INCLUDE = re.compile(r"#\s*include(?:_next)?\s*(?P<open>[<\"])(?P<name>[^>\"\n]+)[>\"]")


def device_sources(root: Path, source: Path, folders: Sequence[str], also: Sequence[str] = ()) -> dict[str, bytes]:
    """Path relative to `root` (with `/`) -> content, the source first.

    A quoted name is searched beside the file that includes it, in `root` and in `folders`; a name in angle brackets in
    `folders` only. `also` are further sources.
    Raises ProjectError for a source that is missing or outside of `root`, and for an include that
    leaves it.
    """
    root = root.resolve()
    given = [_existing(root, source), *(_existing(root, each) for each in also)]
    searched = [place for folder in folders if (place := _inside(root, root / folder)) is not None]
    contents: dict[str, bytes] = {}
    pending = given[::-1]
    while pending:
        path = pending.pop()
        name = path.relative_to(root).as_posix()
        if name in contents:
            continue
        contents[name] = read_source(path, name)
        found = [
            _found(root, path, wanted, [path.parent, root, *searched] if quoted else searched)
            for quoted, wanted in _includes(contents[name].decode("utf-8-sig", errors="replace"))
        ]
        pending += reversed([each for each in found if each is not None])
    return contents


def _existing(root: Path, source: Path | str) -> Path:
    found = _inside(root, root / source)
    if found is None:
        raise ProjectError(f"source {source}: outside the project's root {root}; move the file into the project")
    if not found.is_file():
        raise ProjectError(f"source {source}: no such file in {root}; correct the variant's Source")
    return found


def leave_out_host_code(tree: Path, names: Sequence[str], entries: Sequence[str]) -> None:
    """Overwrite the project's files in a tree with their device code, each line in its place."""
    texts = {name: (tree / name).read_bytes().decode("utf-8-sig", errors="replace") for name in names}
    for name, text in without_host_code(texts, entries).items():
        (tree / name).write_text(text)


def _found(root: Path, path: Path, wanted: str, places: Sequence[Path]) -> Path | None:
    for place in places:
        if (place / wanted).is_file():
            inside = _inside(root, place / wanted)
            if inside is None:
                raise ProjectError(
                    f'{path.relative_to(root)}: include "{wanted}" is outside the project\'s root {root}; '
                    "move the file into the project"
                )
            return inside
    return None


@lru_cache(maxsize=256)
def _includes(text: str) -> tuple[tuple[bool, str], ...]:
    """Whether it is quoted, and the name, of every include."""
    return tuple(_directives(text))


def _directives(text: str) -> Iterator[tuple[bool, str]]:
    for token in tokens(text):
        if token.kind == "directive" and (match := _INCLUDE.match(token.text)):
            yield match["open"] == '"', match["name"].strip()


def _inside(root: Path, path: Path) -> Path | None:
    """`path` without `..`; None outside of `root`. A symbolic link keeps its name and must point inside."""
    plain = Path(os.path.normpath(path))
    return plain if plain.is_relative_to(root) and plain.resolve().is_relative_to(root) else None
