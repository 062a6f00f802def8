"""Processes that serve many bundles: starting one on a device costs more than the kernels of a case.

A worker reads folders from its standard input, one on each line, and answers each with an exit code on a line. The
folder's report describes how the bundle ended. A worker ends with its first failed bundle, so that a broken context
affects no other bundle.
"""

from __future__ import annotations

import contextlib
import select
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from audit import processes
from audit.backends import child
from audit.backends.child import Files
from audit.backends.outcome import Outcome
from audit.processes import Excerpt


class Worker:
    """One process in its own session."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        self.env = dict(env)
        self._process = processes.start(command, env=self.env, stdin=subprocess.PIPE)
        assert self._process.stderr
        self._errors = Excerpt(self._process.stderr)

    def execute(self, folder: Path, report: Path, files: Files, limit: float) -> Outcome:
        """Execute the bundle in `folder`, like `child.execute`. The worker ends unless the outcome is Completed."""
        report.unlink(missing_ok=True)
        began = time.monotonic()
        if (code := self._answer(f"{folder}\n".encode(), limit)) is None:
            lines = child.reported(report)
            return child.timed_out(limit, lines, self.end())
        seconds = time.monotonic() - began
        printed_text = self.end() if code != 0 else ""
        return child.understood(code, child.reported(report), printed_text, files, seconds)

    def end(self) -> str:
        """Kill it, unless it has ended; what it printed. Raises AuditError where it does not let go of its device."""
        assert self._process.stdin
        assert self._process.stdout
        with contextlib.suppress(OSError):  # what it never read
            self._process.stdin.close()
        processes.end(self._process)
        self._process.stdout.close()
        return child.printed(b"", self._errors.content())

    @property
    def ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def _answer(self, line: bytes, limit: float) -> int | None:
        """The exit code for a line; the process's own if it has ended, None if no answer comes in time."""
        assert self._process.stdin
        assert self._process.stdout
        with contextlib.suppress(OSError):  # the process has ended: its exit code shows why
            self._process.stdin.write(line)
            self._process.stdin.flush()
        if not select.select([self._process.stdout], [], [], limit)[0]:
            return None
        answer = self._process.stdout.readline()
        return int(answer) if answer.endswith(b"\n") else self._process.wait()


class Workers:
    """A pool of workers, bounded by their number and by the device memory that their bundles need together."""

    def __init__(self, number: int, own: int) -> None:
        """`own` is the device memory, in bytes, that a worker takes even without a bundle."""
        self._change = threading.Condition()
        self._free, self._own = number, own
        self._taken = 0  # bytes of the running bundles and their workers
        self._idle: list[Worker] = []

    @contextlib.contextmanager
    def one(self, command: Sequence[str], env: Mapping[str, str], need: int, memory: int) -> Iterator[Worker]:
        """A worker for a bundle. Waits until a worker is free and `need` of the device's `memory` bytes are left.
        `need` includes the worker's own memory and must not exceed `memory`."""
        with self._change:
            self._change.wait_for(lambda: self._free > 0 and self._taken + need <= memory)
            self._free, self._taken = self._free - 1, self._taken + need
            worker, surplus = self._choose(env, memory)
        try:
            for other in surplus:
                other.end()
            worker = worker or Worker(command, env)
            yield worker
        except BaseException:
            if worker:  # it may still be working: its answer must not reach the next bundle
                worker.end()
            raise
        finally:
            with self._change:
                self._free, self._taken = self._free + 1, self._taken - need
                if worker and not worker.ended:
                    self._idle.append(worker)
                self._change.notify_all()

    def end(self) -> None:
        """End the idle workers, which frees their device memory."""
        with self._change:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.end()

    def _choose(self, env: Mapping[str, str], memory: int) -> tuple[Worker | None, list[Worker]]:
        """An idle worker with that environment, if any, and the idle workers to end first."""
        usable = [worker for worker in self._idle if worker.env == env and not worker.ended]
        surplus = [worker for worker in self._idle if worker not in usable]
        chosen = usable.pop() if usable else None
        while usable and self._taken + len(usable) * self._own > memory:
            surplus.append(usable.pop())
        self._idle = usable
        return chosen, surplus
