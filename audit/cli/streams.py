"""The command's own standard streams: a verdict that cannot be written is an error; lost progress is not."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import TextIO

from audit.errors import AuditError


class OutputError(AuditError):
    """Standard output does not take what was written; without it a command has no verdict."""


def claim_streams() -> TextIO:
    """Give this process streams of its own, on descriptors that nobody else knows; the new standard output."""
    sys.stdout, sys.stderr = _like(sys.stdout, _Output(os.dup(1), "w")), _like(sys.stderr, _Errors(os.dup(2), "w"))
    return sys.stdout


def require_delivered(output: TextIO) -> None:
    """Raise OutputError unless all that the command printed went out through `output`."""
    if sys.stdout is not output:
        raise OutputError("code of the project replaced sys.stdout, so that no verdict was written there")
    output.flush()


class _Output(io.FileIO):
    def write(self, content: object) -> int:
        """Raises OutputError, which click does not take for the end of a pipe that somebody closed on purpose."""
        try:
            return super().write(content)  # type: ignore[arg-type]
        except OSError as error:
            raise OutputError(f"standard output: {error.strerror}; the verdict could not be written there") from None


class _Errors(io.FileIO):
    def write(self, content: object) -> int:
        """What cannot be shown is dropped: no verdict depends on it."""
        with contextlib.suppress(OSError):
            return super().write(content)  # type: ignore[arg-type]
        return memoryview(content).nbytes  # type: ignore[arg-type]


class _Open(io.TextIOWrapper):
    def close(self) -> None:
        """Flush: code of the project may close its standard streams, and the command needs them to the end."""
        self.flush()


def _like(stream: TextIO | None, raw: io.FileIO) -> io.TextIOWrapper:
    """A text stream over `raw` with the encoding of another one, which Python has made None where it was closed."""
    encoding, errors = (stream.encoding, stream.errors) if stream else ("utf-8", "backslashreplace")
    return _Open(io.BufferedWriter(raw), encoding=encoding, errors=errors, line_buffering=True)
