"""Folders that end with the work that needs them; those of a process that was killed are swept by the next run.

A folder's name says which process made it, and when that process started: another one of the same number is not taken
for it. Process numbers mean something in their own namespace alone, so that the name gives this too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from audit.errors import SHORTAGES, MachineError

PREFIX = "kernel-audit-"
SHARED_MEMORY = "/dev/shm"
_OWNER = r"(?P<namespace>\d+)-(?P<process>\d+)-(?P<start>\d+)"
_NAME = re.compile(rf"{PREFIX}{_OWNER}-\w+")
_OWNED = re.compile(_OWNER)
_STATE, _START = 0, 19  # fields of /proc/PID/stat, counted from the one behind the name


@contextmanager
def scratch_folder(inside: str | None = None) -> Iterator[Path]:
    """A folder for the duration, in the folder `inside` or where temporary files go.

    MachineError where it cannot be made, or where what is done in it needs more room than there is.
    """
    import tempfile

    try:
        folder = tempfile.TemporaryDirectory(prefix=f"{PREFIX}{owner()}-", dir=inside, ignore_cleanup_errors=True)
    except OSError as error:
        raise MachineError(f"no temporary folder can be made: {error}; free space, or set TMPDIR") from None
    with folder as name:
        try:
            yield Path(name)
        except OSError as error:
            if error.errno not in SHORTAGES:
                raise
            raise MachineError(
                f"{error.filename or name}: {error.strerror}; free space there, or set TMPDIR to a folder with more"
            ) from error


def owner() -> str:
    """This process, as names of files give it."""
    return f"{_namespace()}-{os.getpid()}-{_started('self')}"


def is_dead(name: str) -> bool:
    """Whether the process whose `owner` a name holds has ended; False where that cannot be known."""
    found = _OWNED.search(name)
    return found is not None and found["namespace"] == _namespace() and _started(found["process"]) != found["start"]


def left_over() -> list[Path]:
    """Folders of this user whose processes have ended, or ran in another process namespace and cannot be asked."""
    found = []
    for parent in _parents():
        try:
            with os.scandir(parent) as entries:
                found += [Path(entry) for entry in entries if entry.name.startswith(PREFIX) and _is_left(entry)]
        except OSError:
            continue
    return found


def sweep() -> None:
    """Remove the folders of processes that have ended."""
    for folder in left_over():
        if is_dead(folder.name):
            import shutil

            shutil.rmtree(folder, ignore_errors=True)


def _is_left(entry: os.DirEntry[str]) -> bool:
    found = _NAME.fullmatch(entry.name)
    return (
        found is not None
        and entry.is_dir(follow_symlinks=False)
        and entry.stat(follow_symlinks=False).st_uid == os.getuid()
        and (is_dead(entry.name) or found["namespace"] != _namespace())
    )


def _parents() -> list[str]:
    """Where Python puts temporary files (tempfile.gettempdir, which takes long to import), and shared memory."""
    named = [os.environ[name] for name in ("TMPDIR", "TEMP", "TMP") if os.environ.get(name)]
    candidates = (*named, "/tmp", "/var/tmp", "/usr/tmp", SHARED_MEMORY)
    return list(dict.fromkeys(os.path.realpath(parent) for parent in candidates))


def _namespace() -> str:
    try:
        return "".join(filter(str.isdigit, os.readlink("/proc/self/ns/pid"))) or "0"
    except OSError:
        return "0"


def _started(process: str) -> str:
    """When a process started, in the kernel's ticks; empty where it has ended."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return ""
    return "" if fields[_STATE] in (b"Z", b"X") else fields[_START].decode()
