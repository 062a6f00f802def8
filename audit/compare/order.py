"""What `audit compare` is asked for, from its options: the two sides, the user's file, and the folder of them all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from audit.compare.hooks import load_hooks, split_words
from audit.compare.operator import ComparedKernel, Comparison
from audit.compare.preprocess import preprocess
from audit.compare.sizes import rooms
from audit.errors import PlanError
from audit.relations import Bitwise, relation_from, relation_text
from audit.report.pair_figures import NEW, OLD


def comparison(options: Mapping[str, Any]) -> Comparison:
    """The comparison that the options of the command name. Loads the user's file.

    Raises PlanError for an option that says nothing sensible, ProjectError for what the user's file raises.
    """
    old, new = Path(options["old"]), Path(options["new"])
    defines = _pairs("--define", "NAME=VALUE", options["defines"], empty="1")
    new_defines = {**defines, **_pairs("--new-define", "NAME=VALUE", options["new_defines"], empty="1")}
    make, _ = split_words(options["hooks"])
    files = [*preprocess(old, defines).files, *preprocess(new, new_defines).files]
    root = _root([*files, make])
    shared = options["new_shared"] if options["new_shared"] is not None else options["shared"]
    return Comparison(
        root,
        ComparedKernel(
            OLD,
            _below(root, old),
            options["entry"],
            _extents(options["grid"]),
            _extents(options["block"]),
            options["shared"],
            defines,
        ),
        ComparedKernel(
            NEW,
            _below(root, new),
            options["new_entry"] or options["entry"],
            _extents(options["new_grid"] or options["grid"]),
            _extents(options["new_block"] or options["block"]),
            shared,
            new_defines,
            _pairs("--rename", "NEW=OLD", options["renames"]),
        ),
        load_hooks(root, options["hooks"]),
        rooms("--output", options["outputs"]),
        rooms("--workspace", options["workspaces"]),
        relation_from(options["relation"] or relation_text(Bitwise())),
    )


def _root(files: Iterable[Path]) -> Path:
    """The innermost folder that holds all of the files."""
    return Path(os.path.commonpath([file.resolve().parent for file in files]))


def _below(root: Path, path: Path) -> str:
    return path.resolve().relative_to(root).as_posix()


def _extents(words: str | None) -> tuple[str, ...]:
    return tuple(words.split(",")) if words else ()


def _pairs(option: str, form: str, words: Sequence[str], empty: str = "") -> dict[str, str]:
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not name.isidentifier() or (not value and not empty):
            raise PlanError(f"{option}: expected {form}, but got {word!r}")
        found[name] = value if equals else empty
    return found
