"""Progress on stderr: a bar on a terminal, plain lines elsewhere; colour off where NO_COLOR is set."""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import TYPE_CHECKING

import click

from audit.records.run import Audit

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID


class Progress:
    """Counts audits as they finish; safe to advance from several threads."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
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
                TextColumn("{task.description}"),
            )
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task("building", total=self._total)
            self._bar.start()
        return self

    def advance(self, audit: Audit) -> None:
        """One audit is done."""
        with self._lock:
            self._done += 1
            if self._bar is not None and self._task is not None:
                self._bar.update(self._task, advance=1, description=f"{audit.variant} {audit.case}")
            else:
                line = (
                    f"[{self._done}/{self._total}] {audit.verdict} {audit.variant} {audit.case} {audit.seconds:.1f} s"
                )
                click.echo(line, err=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
