"""The fastest variant of a bench at each value of the axis, among those whose bytes are their parents'."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec

from audit.bench.pairs import Figures, TimedArm


class Winner(msgspec.Struct, frozen=True):
    """The fastest variant at one value of the axis, by its median time in ms a replay, and what it stands beside."""

    value: int
    name: str
    ms: float
    floor_ms: float
    first: TimedArm  # the first variant of the bench: what all others were made from
    pair: Figures | None  # the winner with the variant that it was timed in turn with
    peer: TimedArm | None  # the fastest peer

    @property
    def multiple(self) -> float:
        """Its time in multiples of its floor."""
        return self.ms / self.floor_ms


def winners(timed: Sequence[TimedArm], pairs: Iterable[Figures], wrong: Collection[str]) -> list[Winner]:
    """The winner at each value of the axis, the greatest first; none where every variant has `wrong` bytes."""
    paired = {(row.value, row.b): row for row in reversed(list(pairs))}
    found = []
    for value in sorted({value for arm in timed for value in arm.ms}, reverse=True):
        here = [arm for arm in timed if value in arm.ms]
        variants = [arm for arm in here if not arm.is_peer]
        right = [arm for arm in variants if arm.name not in wrong]
        if not right:
            continue
        best = min(right, key=lambda arm: arm.ms[value])
        peer = min((arm for arm in here if arm.is_peer), key=lambda arm: arm.ms[value], default=None)
        pair = paired.get((value, best.name))
        found.append(Winner(value, best.name, best.ms[value], best.floor_ms[value], variants[0], pair, peer))
    return found
