"""A histogram as inline SVG: one bar a bin, its height by the logarithm of the count: single ones still show."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

_HEIGHT, _WIDTH, _GAP, _TOP, _BOTTOM = 150, 1230, 6, 18, 22
_NARROWEST, _WIDEST = 34, 46  # a bar, which is labelled


def histogram(counts: Sequence[int], labels: Sequence[str], what: str) -> Markup:
    """The bars of some counts with a label below each and the count above; empty where nothing was counted."""
    if not any(counts):
        return Markup("")
    top = math.log1p(max(counts))
    bar = max(_NARROWEST, min(_WIDEST, _WIDTH // len(counts) - _GAP))
    width = len(counts) * (bar + _GAP) + _GAP
    parts = [
        Markup('<svg class="bars" viewBox="0 0 {0} {1}" width="{0}" role="img" aria-label="{2}">').format(
            width, _HEIGHT, what
        )
    ]
    for at, (count, label) in enumerate(zip(counts, labels, strict=True)):
        x = _GAP + at * (bar + _GAP)
        height = (_HEIGHT - _TOP - _BOTTOM) * math.log1p(count) / top
        y = _HEIGHT - _BOTTOM - height
        middle = x + bar / 2
        parts += [
            Markup('<rect x="{}" y="{:.1f}" width="{}" height="{:.1f}"/>').format(x, y, bar, height),
            Markup('<text x="{}" y="{:.1f}" text-anchor="middle">{}</text>').format(middle, y - 4, short(count)),
            Markup('<text x="{}" y="{}" text-anchor="middle">{}</text>').format(middle, _HEIGHT - 6, label),
        ]
    return Markup("").join([*parts, Markup("</svg>")])


def short(count: int) -> str:
    """Three digits and a unit: `12.3k`."""
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= size:
            return f"{count / size:.3g}{unit}"
    return str(count)
