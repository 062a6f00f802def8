"""Replays wait for a place and for their bytes, and all get in."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from audit.backends.room import Room


def test_neither_places_nor_bytes_are_given_twice() -> None:
    room, lock = Room(3), threading.Lock()
    inside: list[int] = []
    seen: list[tuple[int, int]] = []

    def use(need: int) -> None:
        with room.of(need, 100):
            with lock:
                inside.append(need)
                seen.append((len(inside), sum(inside)))
            time.sleep(0.02)
            with lock:
                inside.remove(need)

    needs = [60, 40, 60, 10, 100, 10, 10, 10, 10, 10, 60, 50]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, needs))
    assert len(seen) == len(needs)
    assert max(places for places, _ in seen) in (2, 3)
    assert max(taken for _, taken in seen) == 100
    assert room._places == 3
    assert room._taken == 0
