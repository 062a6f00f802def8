"""The threads or blocks of a finding as boxes of coordinates: `(0..31,0,0) (40,0,0)`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import groupby
from typing import TypeAlias

Point: TypeAlias = tuple[int, int, int]
_SHOWN = 6  # boxes


def point(numbers: Sequence[str]) -> Point:
    """A point from three numbers in text."""
    x, y, z = map(int, numbers)
    return x, y, z


def ranges(points: Collection[Point]) -> str:
    """The points as text: runs along x, equal runs joined along y, then along z. Empty for no points."""
    runs: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for x, y, z in sorted(set(points), key=lambda point: point[::-1]):
        row = runs.setdefault((z, y), [])
        if row and row[-1][1] == x - 1:
            row[-1] = (row[-1][0], x)
        else:
            row.append((x, x))
    planes: dict[int, list[tuple[int, int, tuple[tuple[int, int], ...]]]] = {}
    for (z, y), row in runs.items():
        plane = planes.setdefault(z, [])
        if plane and plane[-1][1] == y - 1 and plane[-1][2] == tuple(row):
            plane[-1] = (plane[-1][0], y, plane[-1][2])
        else:
            plane.append((y, y, tuple(row)))
    boxes = []
    for boxed, group in groupby(sorted(planes), key=lambda z: tuple(planes[z])):
        levels = list(group)
        for first, last in _consecutive(levels):
            boxes += [
                f"({_span(*run)},{_span(low, high)},{_span(first, last)})" for low, high, row in boxed for run in row
            ]
    more = f" and {len(boxes) - _SHOWN} more" if len(boxes) > _SHOWN else ""
    return " ".join(boxes[:_SHOWN]) + more


def _consecutive(numbers: list[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}..{last}"
