"""Which layers and ranks of which models were captured, and which of them ran: a grid for each capture set."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

import msgspec

from audit.checks.result import Verdict, worst
from audit.records.run import RunRecord

Cell: TypeAlias = tuple[Verdict | Literal["absent", "unplanned"], str]
_NAMED = re.compile(r"(?P<set>.*)/layer(?P<layer>\d{1,9})/rank(?P<rank>\d{1,9})")


class Grid(msgspec.Struct, frozen=True):
    """One capture set: a row a layer, a cell a rank, with its verdict over all variants and its case."""

    name: str
    ranks: tuple[int, ...]
    rows: tuple[tuple[int, tuple[Cell, ...]], ...]


class Coverage(msgspec.Struct, frozen=True):
    """All capture sets, and what has neither layer nor rank in its name."""

    grids: tuple[Grid, ...]
    others: tuple[tuple[str, Cell], ...]
    planned: int
    ran: int

    @property
    def extent(self) -> str:
        """`3 layers × 3 ranks`, of every set."""
        return ", ".join(f"{_many(len(grid.rows), 'layer')} × {_many(len(grid.ranks), 'rank')}" for grid in self.grids)


def coverage(evidence: RunRecord) -> Coverage:
    """What was captured, by layer and rank: a cell whose case did not run is absent, one without a case unplanned."""
    verdicts: dict[str, list[Verdict]] = {}
    for audit in evidence.audits:
        verdicts.setdefault(audit.case, []).append(audit.verdict)
    sets: dict[str, dict[tuple[int, int], Cell]] = {}
    others: list[tuple[str, Cell]] = []
    for case in evidence.plan.cases:
        if not case.capture:
            continue
        mine = verdicts.get(case.id, [])
        whole = len(mine) == len(evidence.plan.variants)
        cell: Cell = ("absent" if not mine else worst(mine if whole else [*mine, "inconclusive"]), case.id)
        if named := _NAMED.fullmatch(case.capture):
            sets.setdefault(named["set"], {})[int(named["layer"]), int(named["rank"])] = cell
        else:
            others.append((case.capture, cell))
    planned = sum(bool(case.capture) for case in evidence.plan.cases)
    ran = sum(bool(case.capture) and case.id in verdicts for case in evidence.plan.cases)
    return Coverage(tuple(_grid(name, cells) for name, cells in sets.items()), tuple(others), planned, ran)


def _grid(name: str, cells: dict[tuple[int, int], Cell]) -> Grid:
    layers, ranks = sorted({layer for layer, _ in cells}), tuple(sorted({rank for _, rank in cells}))
    rows = [(layer, tuple(cells.get((layer, rank), ("unplanned", "")) for rank in ranks)) for layer in layers]
    return Grid(name, ranks, tuple(rows))


def _many(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
