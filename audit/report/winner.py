"""The fastest variant of a bench at each context, among those whose bytes are their parents'."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec

from audit.bench.pairs import Figures, TimedArm


class Winner(msgspec.Struct, frozen=True):
    """The fastest variant at one context, by its median time in ms of one replay, and what it stands beside."""

    context: int
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
    """The winner at each context, the greatest context first; none where every variant has `wrong` bytes."""
    paired = {(row.context, row.b): row for row in reversed(list(pairs))}
    found = []
    for context in sorted({context for arm in timed for context in arm.ms}, reverse=True):
        here = [arm for arm in timed if context in arm.ms]
        variants = [arm for arm in here if not arm.is_peer]
        right = [arm for arm in variants if arm.name not in wrong]
        if not right:
            continue
        best = min(right, key=lambda arm: arm.ms[context])
        peer = min((arm for arm in here if arm.is_peer), key=lambda arm: arm.ms[context], default=None)
        pair = paired.get((context, best.name))
        found.append(Winner(context, best.name, best.ms[context], best.floor_ms[context], variants[0], pair, peer))
    return found
