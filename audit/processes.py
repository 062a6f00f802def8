"""Programs that the tool starts: limited in time and in what they may print, ended as a group, gone when it is.

Each runs in a session of its own. Of what it prints the first and the last part are kept, in memory.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from audit.errors import AuditError, MachineError

PARENT = "KERNEL_AUDIT_PARENT"
"""In a program's environment: the process that it ends with."""

_PART = 64 * 1024  # bytes that are kept of the start, and of the end, of a stream
_DEATH_LIMIT = 60.0  # seconds; a driver first takes the device back from a kernel that does not end
_LAST_WORDS = 2.0  # seconds; what a program that is gone has left in a pipe is read at once
_running: set[subprocess.Popen[bytes]] = set()


class Finished(NamedTuple):
    """How a program ended: its exit code, negative for a signal, None where its time was over; what it printed."""

    code: int | None
    output: bytes
    errors: bytes


class Excerpt:
    """The first and the last part of a stream, which is read to its end."""

    def __init__(self, stream: IO[bytes], first: int = _PART) -> None:
        self._stream, self._limit = stream, first
        self._first, self._last, self._size = bytearray(), bytearray(), 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def content(self) -> bytes:
        """What is kept, once the program has ended; between the parts a line that says how much was left out."""
        self._reader.join(_LAST_WORDS)  # a process that left the group may hold the stream open
        left_out = self._size - len(self._first) - len(self._last)
        between = f"\n[... {left_out:,} bytes left out ...]\n".encode() if left_out else b""
        return bytes(self._first) + between + bytes(self._last)

    def _read(self) -> None:
        with self._stream:  # also where nobody asks for the content: the run was interrupted
            while part := os.read(self._stream.fileno(), _PART):
                self._size += len(part)
                room = self._limit - len(self._first)
                self._first += part[:room]
                self._last = (self._last + part[room:])[-_PART:]


def run_process(
    command: Sequence[str | Path], limit: float, *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> Finished:
    """Run a program for at most `limit` seconds.

    MachineError where it cannot be started, AuditError where it does not even end when it is killed.
    """
    process = start(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL)
    assert process.stdout
    assert process.stderr
    output, errors = Excerpt(process.stdout), Excerpt(process.stderr)
    try:
        code = _waited(process, limit)
    finally:
        end(process)
    return Finished(code, output.content(), errors.content())


def start(
    command: Sequence[str | Path], *, cwd: Path | None = None, env: Mapping[str, str] | None = None, stdin: int
) -> subprocess.Popen[bytes]:
    """Start a program that `abort` ends; its output and errors are pipes. MachineError where it cannot be started."""
    try:
        process = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            cwd=cwd,
            env={**(os.environ if env is None else env), PARENT: str(os.getpid())},
        )
    except OSError as error:
        raise MachineError(f"{command[0]} cannot be started: {error.strerror}; nothing was judged") from None
    _running.add(process)
    return process


def end(process: subprocess.Popen[bytes]) -> None:
    """End the whole group: what a kernel's bug left running must not outlive its case.

    Raises AuditError where the process does not even end when it is killed.
    """
    _running.discard(process)
    _kill(process)
    try:
        process.wait(_DEATH_LIMIT)
    except subprocess.TimeoutExpired:
        raise AuditError(
            f"process {process.pid} still runs {_DEATH_LIMIT:g} s after it was killed: its device does not let go of "
            "it; restart the machine or its GPU before running on"
        ) from None


def package_environment() -> dict[str, str]:
    """This process's environment, in which a Python program finds this very package."""
    here = str(Path(__file__).resolve().parents[1])
    found = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{here}{os.pathsep}{found}" if found else here}


def end_with_parent() -> None:
    """Have this Python process killed when the one that started it ends, of which it may have been any thread."""
    parent = int(os.environ.get(PARENT, os.getppid()))
    threading.Thread(target=_follow, args=(parent,), daemon=True).start()


def _follow(parent: int) -> None:
    try:
        poll = select.poll()
        poll.register(os.pidfd_open(parent), select.POLLIN)
        poll.poll()
    except ProcessLookupError:
        pass
    except OSError:  # an old kernel
        while os.getppid() == parent:
            time.sleep(1)
    os.kill(os.getpid(), signal.SIGKILL)


def orphans() -> list[int]:
    """Programs of this user that a tool started which has ended."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            words = (folder / "environ").read_bytes().split(b"\0")
            parent = next((word for word in words if word.startswith(f"{PARENT}=".encode())), None)
            if parent and not Path("/proc", str(int(parent.partition(b"=")[2]))).exists():
                found.append(int(folder.name))
    return found


def abort() -> None:
    """Kill every program that is running now."""
    for process in tuple(_running):
        _kill(process)


def _waited(process: subprocess.Popen[bytes], limit: float) -> int | None:
    """The exit code; None where the limit came first. `Popen.wait` would look for it every 50 ms."""
    with contextlib.suppress(OSError):  # an old kernel
        handle = os.pidfd_open(process.pid)
        try:
            poll = select.poll()
            poll.register(handle, select.POLLIN)
            return process.wait() if poll.poll(limit * 1000) else None
        finally:
            os.close(handle)
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        return None


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
