"""Where bytes differ, as a picture: one square for each cell of a tally, drawn as inline SVG."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import msgspec
from markupsafe import Markup

from audit.checks.tally import Tally
from audit.report.template import visible_value

_LEVELS = 5
_WIDEST, _CELL, _LEFT, _TOP = 1080, 13, 130, 20


class Marginal(msgspec.Struct, frozen=True):
    """Along one dimension: the elements that differ at each index, over all other dimensions."""

    dim: str
    counts: tuple[int, ...]


class Span(msgspec.Struct, frozen=True):
    """Neighbouring cells with the same count."""

    first: str
    last: str
    count: int


class Map(msgspec.Struct, frozen=True):
    """A tally as a page shows it."""

    tally: Tally
    differing: int
    cells: int  # with a difference
    total: int  # cells
    picture: Markup
    marginals: tuple[Marginal, ...]
    spans: tuple[Span, ...]
    left_out: int  # spans beyond those shown


def heat_map(tally: Tally, *, spans: int = 120) -> Map:
    """Everything about one tally. Raises EvidenceError where its counts do not fit its extents."""
    values = tally.values()
    found = list(_spans(tally, values))
    return Map(
        tally,
        sum(values),
        sum(value > 0 for value in values),
        len(values),
        _picture(tally, values),
        tuple(_marginals(tally, values)),
        tuple(found[:spans]),
        max(0, len(found) - spans),
    )


def _picture(tally: Tally, values: Sequence[int]) -> Markup:
    """The first dimension to the right, all others downwards."""
    columns = tally.extents[0]
    rows = len(values) // columns
    width = max(2.0, min(_CELL, _WIDEST / columns))
    height = max(6, min(_CELL, 420 // rows))
    paths: dict[int, list[str]] = {}
    for row in range(rows):
        levels = [_level(values[column * rows + row], tally.each) for column in range(columns)]
        at = 0
        for level, same in itertools.groupby(levels):
            length = len(list(same))
            x, y = _LEFT + at * width, _TOP + row * height
            paths.setdefault(level, []).append(f"M{x:.4g} {y}h{length * width:.4g}v{height - 1}h-{length * width:.4g}z")
            at += length
    parts = [
        Markup('<svg class="heat" viewBox="0 0 {} {}" width="{}" role="img" aria-label="{}">').format(
            *(_n(_LEFT + columns * width + 8), _TOP + rows * height + 4, _n(_LEFT + columns * width + 8)),
            visible_value(f"Where {tally.buffer} differs: {' × '.join(tally.dims)}"),
        )
    ]
    parts += [Markup('<path class="h{}" d="{}"/>').format(level, "".join(path)) for level, path in paths.items()]
    step = max(1, -(-columns // 16))
    for column in range(0, columns, step):
        x = _LEFT + (column + 0.5) * width
        parts.append(Markup('<text x="{}" y="14" text-anchor="middle">{}</text>').format(_n(x), column))
    parts.append(Markup('<text x="{}" y="14" text-anchor="end">{}</text>').format(_LEFT - 8, _cut(tally.dims[0])))
    if rows > 1:
        every = max(1, -(-14 // height))
        for row in range(0, rows, every):
            middle = _TOP + row * height + height * 0.5 + 4
            parts.append(
                Markup('<text x="{}" y="{}" text-anchor="end">{}</text>').format(
                    _LEFT - 8, _n(middle), _cut(_named(tally, row, start=1))
                )
            )
    return Markup("").join([*parts, Markup("</svg>")])


def _level(count: int, each: int) -> int:
    """0: none; else 1 to 5, by the share of the cell's elements."""
    return 0 if count == 0 else min(_LEVELS, 1 + count * _LEVELS // max(1, each + 1))


def _marginals(tally: Tally, values: Sequence[int]) -> Iterator[Marginal]:
    inner = len(values)
    for dim, extent in zip(tally.dims, tally.extents, strict=True):
        inner //= extent
        counts = [0] * extent
        for cell, value in enumerate(values):
            counts[cell // inner % extent] += value
        yield Marginal(dim, tuple(counts))


def _spans(tally: Tally, values: Sequence[int]) -> Iterator[Span]:
    at = 0
    for count, same in itertools.groupby(values):
        length = len(list(same))
        if count:
            yield Span(_named(tally, at), _named(tally, at + length - 1) if length > 1 else "", count)
        at += length


def _named(tally: Tally, cell: int, start: int = 0) -> str:
    """`split=3, row=1, head=0`, of a cell counted over the dimensions from `start` on."""
    words: list[str] = []
    for dim, extent in reversed(list(zip(tally.dims[start:], tally.extents[start:], strict=True))):
        cell, index = divmod(cell, extent)
        words.append(f"{dim}={index}")
    return ", ".join(reversed(words))


def _n(value: float) -> str:
    return f"{value:.5g}"


def _cut(name: str) -> str:
    return str(visible_value(name if len(name) <= 20 else f"{name[:19]}…"))
