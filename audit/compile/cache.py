"""Build products on disk, keyed by the hash of the build's inputs.

A rename makes an entry's folder appear complete. One process builds it under a lock while others wait. Every use checks
the content against the recorded hash; a damaged entry is built again.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from audit.compile.identity import sha256_of_file
from audit.errors import MachineError
from audit.scratch import is_dead, owner

_HASH = "sha256"


def default_cache() -> Path:
    """$KERNEL_AUDIT_CACHE, or ~/.cache/kernel-audit. MachineError where this user has no home."""
    chosen = os.environ.get("KERNEL_AUDIT_CACHE")
    try:
        return Path(chosen) if chosen else Path.home() / ".cache" / "kernel-audit"
    except RuntimeError:
        raise MachineError("the cache has no folder: this user has no home; set KERNEL_AUDIT_CACHE") from None


def cached_folder(cache: Path, kind: str, key: str, names: Sequence[str], build: Callable[[Path], None]) -> Path:
    """The folder of entry `kind`/`key` with the files `names`; `build(folder)` writes them where needed.

    MachineError where the cache cannot be written.
    """
    folder = cache / kind / key
    if _is_intact(folder, names):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _locked(folder.parent / f".{key}.lock"):
            if not _is_intact(folder, names):
                _build(folder, names, build)
    except OSError as error:
        raise MachineError(
            f"{error.filename or cache}: the cache cannot be written ({error.strerror}); free space there, or set "
            "KERNEL_AUDIT_CACHE to another folder"
        ) from error
    return folder


def _build(folder: Path, names: Sequence[str], build: Callable[[Path], None]) -> None:
    for left in folder.parent.glob(".*.aside"):
        if is_dead(left.name):
            shutil.rmtree(left, ignore_errors=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.{owner()}.", suffix=".aside", dir=folder.parent))
    try:
        build(aside)
        (aside / _HASH).write_text(_hash(aside, names))
        aside.chmod(0o755)
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder)
        else:
            folder.unlink(missing_ok=True)
        aside.rename(folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _hash(folder: Path, names: Sequence[str]) -> str:
    return "".join(f"{sha256_of_file(folder / name)}  {name}\n" for name in names)


def _is_intact(folder: Path, names: Sequence[str]) -> bool:
    try:
        return (folder / _HASH).read_text() == _hash(folder, names)
    except (OSError, UnicodeDecodeError):
        return False


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
