"""Who may be on a device at once."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator


class Room:
    """So many processes, as long as the bytes that they need fit together; the others wait."""

    def __init__(self, places: int) -> None:
        self._change = threading.Condition()
        self._places = places
        self._taken = 0  # bytes

    @contextlib.contextmanager
    def of(self, need: int, memory: int) -> Iterator[None]:
        """A place for one process that needs `need` of the device's `memory` bytes, and no more than there are."""
        with self._change:
            self._change.wait_for(lambda: self._places > 0 and self._taken + need <= memory)
            self._places, self._taken = self._places - 1, self._taken + need
        try:
            yield
        finally:
            with self._change:
                self._places, self._taken = self._places + 1, self._taken - need
                self._change.notify_all()
