"""Products of builds on disk, found by the hash of what went in.

An entry is a folder that appears complete, by a rename. One process builds it, under a lock, while others wait.
Content is checked against the recorded hash at every use: a damaged entry is built again.
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

_HASH = "sha256"


def default_cache() -> Path:
    """$KERNEL_AUDIT_CACHE, or ~/.cache/kernel-audit."""
    chosen = os.environ.get("KERNEL_AUDIT_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "kernel-audit"


def cached_folder(cache: Path, kind: str, key: str, names: Sequence[str], build: Callable[[Path], None]) -> Path:
    """The folder of entry `kind`/`key` with the files `names`; `build(folder)` writes them where needed."""
    folder = cache / kind / key
    if _is_whole(folder, names):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(folder.parent / f".{key}.lock"):
        if _is_whole(folder, names):
            return folder
        for left in folder.parent.glob(f".{key}.*.aside"):  # by a process that was killed: the lock is ours
            shutil.rmtree(left, ignore_errors=True)
        aside = Path(tempfile.mkdtemp(prefix=f".{key}.", suffix=".aside", dir=folder.parent))
        try:
            build(aside)
            (aside / _HASH).write_text(_hash(aside, names))
            aside.chmod(0o755)
            if folder.exists():
                shutil.rmtree(folder)
            aside.rename(folder)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    return folder


def _hash(folder: Path, names: Sequence[str]) -> str:
    return "".join(f"{sha256_of_file(folder / name)}  {name}\n" for name in names)


def _is_whole(folder: Path, names: Sequence[str]) -> bool:
    try:
        return (folder / _HASH).read_text() == _hash(folder, names)
    except (OSError, UnicodeDecodeError):
        return False


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
