"""Device time between two events on a stream."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from ctypes import byref, c_float, c_void_p
from typing import NamedTuple

from audit.backends.driver import Driver
from audit.records.bench import Method, Pair


class Replay(NamedTuple):
    """One replay of an arm: enqueued on the stream, without waiting. `restore` undoes what it did to its inputs, and is
    not timed."""

    enqueue: Callable[[], None]
    restore: Callable[[], None] = lambda: None


class Clock:
    """Measures the time of work on one stream."""

    def __init__(self, driver: Driver, stream: c_void_p) -> None:
        self._driver, self.stream = driver, stream
        self._start, self._end = c_void_p(), c_void_p()
        for event in (self._start, self._end):
            driver.call("cuEventCreate", byref(event), 0)

    def milliseconds(self, replay: Replay, count: int) -> float:
        """The mean time of `count` consecutive replays; only one follows each restoration."""
        replay.restore()
        self._driver.call("cuEventRecord", self._start, self.stream)
        for _ in range(count):
            replay.enqueue()
        self._driver.call("cuEventRecord", self._end, self.stream)
        self._driver.call("cuEventSynchronize", self._end)
        elapsed = c_float()
        self._driver.call("cuEventElapsedTime", byref(elapsed), self._start, self._end)
        return elapsed.value / count

    def median(self, enqueue: Callable[[], None], trials: int = 9) -> float:
        """The median time of a single piece of work, after two uncounted ones."""
        replay = Replay(enqueue)
        self.milliseconds(replay, 2)
        return statistics.median(self.milliseconds(replay, 1) for _ in range(trials))

    def pair(self, a: tuple[str, Replay, Replay], b: tuple[str, Replay], method: Method, *, b_is_peer: bool) -> Pair:
        """Time the arms A, B and A again, in reverse order in every other trial. `a` is A's name and its two arms."""
        arms = (a[1], b[1], a[2])
        for arm in arms:
            self.milliseconds(arm, method.warm_ups)
        times: tuple[list[float], ...] = ([], [], [])
        for trial in range(method.trials):
            order = (0, 1, 2) if trial % 2 == 0 else (2, 1, 0)
            for index in order:
                times[index].append(self.milliseconds(arms[index], method.replays))
        return Pair(a[0], b[0], b_is_peer, tuple(times[0]), tuple(times[1]), tuple(times[2]))
