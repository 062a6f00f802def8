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

_HASH = "sha256"


def default_cache() -> Path:
    """$KERNEL_AUDIT_CACHE, or ~/.cache/kernel-audit."""
    configured = os.environ.get("KERNEL_AUDIT_CACHE")
    return Path(configured) if configured else Path.home() / ".cache" / "kernel-audit"


def cached_folder(cache: Path, kind: str, key: str, names: Sequence[str], build: Callable[[Path], None]) -> Path:
    """The folder of entry `kind`/`key` with the files `names`. If it is missing, `build(folder)` writes the files."""
    folder = cache / kind / key
    if _is_intact(folder, names):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(folder.parent / f".{key}.lock"):
        if _is_intact(folder, names):
            return folder
        for left in folder.parent.glob(f".{key}.*.aside"):  # from a killed process: this one holds the lock
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
