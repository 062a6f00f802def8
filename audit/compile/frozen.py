"""A prebuilt program as a variant: its hash proves that the frozen program is the one that runs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from audit import foreign
from audit.compile.host import HostBuild
from audit.compile.identity import BuildIdentity, fnv1a64, sha256
from audit.errors import ProjectError
from audit.foreign import ForeignError

PROGRAM, IDENTITY = "program", "identity.json"
_MOST_PROGRAM = 2**30  # bytes


def freeze_build(build: HostBuild, folder: Path) -> None:
    """Copy a build into a new folder that a project can name as `Binary`. Raises ProjectError if it exists."""
    try:
        folder.mkdir(parents=True)
        shutil.copy2(build.executable, folder / PROGRAM)
        (folder / IDENTITY).write_bytes(msgspec.json.format(msgspec.json.encode(build.identity), indent=1))
    except OSError as error:
        raise ProjectError(
            f"{folder}: cannot write the frozen build there ({error.strerror}); name a new, writable folder"
        ) from None


def load_frozen(root: Path, path: str, entries: Sequence[str]) -> HostBuild:
    """The frozen build in the folder `path`, relative to the project's root. It must contain all `entries`.

    Raises ProjectError if the folder is outside the project, or the program is not the recorded one or lacks a kernel.
    """
    folder = (root / path).resolve()
    if not folder.is_relative_to(root.resolve()):
        raise ProjectError(f"Binary({path!r}): expected a folder inside the project, but got {folder}")
    try:
        content = foreign.read(folder / PROGRAM, _MOST_PROGRAM)
        identity = foreign.decode(foreign.read(folder / IDENTITY, foreign.MOST_BYTES), BuildIdentity)
    except ForeignError as error:
        raise ProjectError(
            f"Binary({path!r}): expected {PROGRAM} and {IDENTITY}, written by `audit freeze`, but: {error}"
        ) from None
    if (sha256(content), fnv1a64(content)) != (identity.binary_sha256, identity.binary_fnv):
        raise ProjectError(f"Binary({path!r}): {PROGRAM} is not the program that {IDENTITY} records; freeze it again")
    if missing := [entry for entry in entries if entry not in identity.entries]:
        raise ProjectError(
            f"Binary({path!r}): expected the kernels {list(entries)}, but the program lacks {missing}; "
            "freeze a variant that launches them all"
        )
    if not os.access(folder / PROGRAM, os.X_OK):
        raise ProjectError(f"Binary({path!r}): {PROGRAM} is not executable; chmod +x it")
    return HostBuild(folder / PROGRAM, identity)
