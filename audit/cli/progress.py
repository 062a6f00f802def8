"""Progress on stderr: a bar on a terminal; elsewhere a line at every tenth of the way."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from audit.checks.result import Verdict
from audit.cli.terminal import echo
from audit.printable import visible

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

_PARTS = 10


class JudgedRun(Protocol):
    """What progress must know of an audit, or of a run of a sanitizer."""

    @property
    def verdict(self) -> Verdict: ...
    @property
    def variant(self) -> str: ...
    @property
    def case(self) -> str: ...


class Progress:
    """Counts results of the plan of one shape as they come; safe to advance from several threads."""

    def __init__(self, shape: str, total: int) -> None:
        self._shape = shape
        self._total = total
        self._counts: Counter[Verdict] = Counter()
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.description}", markup=False),
            )
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task("building", total=self._total)
            self._bar.start()
        return self

    def advance(self, result: JudgedRun) -> None:
        """Count one more result."""
        self.count(result.verdict, f"{result.variant} {result.case}")

    def count(self, verdict: Verdict, what: str) -> None:
        """Count one more verdict, and show of what it is."""
        with self._lock:
            before = self._counts.total()
            self._counts[verdict] += 1
            if self._bar is not None and self._task is not None:
                self._bar.update(self._task, advance=1, description=visible(what))
            elif (before + 1) * _PARTS // self._total > before * _PARTS // self._total:
                echo(self._line(), err=True)

    def _line(self) -> str:
        seconds = time.monotonic() - self._began
        counts: tuple[tuple[Verdict, str], ...] = (
            ("pass", "passed"),
            ("fail", "failed"),
            ("inconclusive", "inconclusive"),
        )
        words = ", ".join(f"{self._counts[verdict]} {what}" for verdict, what in counts)
        return f"{self._shape} [{self._counts.total()}/{self._total}] {words}; {seconds:.1f} s"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
