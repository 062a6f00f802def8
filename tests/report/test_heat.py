"""The map of differences: every count is in the picture and in its table, and wrong counts are refused."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import msgspec
import numpy as np
import pytest

from audit.checks.tally import tally
from audit.errors import EvidenceError
from audit.report import heat

EXTENTS = [("split", 5), ("row", 3), ("head", 2), ("dim", 20)]


def test_every_difference_is_in_picture_and_tables() -> None:
    differ = np.zeros((5, 3, 2, 20), bool)
    differ[1:3, 2, 1] = True
    differ[4, 1, 0, :1] = True
    found = tally("partial", EXTENTS, differ)
    assert found
    shown = heat.heat_map(found)
    assert (shown.differing, shown.cells, shown.total) == (41, 3, 30)
    assert {side.dim: side.counts for side in shown.marginals} == {
        "split": (0, 20, 20, 0, 1), "row": (0, 1, 40), "head": (1, 40)
    }  # fmt: skip
    assert [(span.first, span.last, span.count) for span in shown.spans] == [
        ("split=1, row=2, head=1", "", 20),
        ("split=2, row=2, head=1", "", 20),
        ("split=4, row=1, head=0", "", 1),
    ]
    tree = ElementTree.fromstring(shown.picture)
    drawn = {path.attrib["class"]: path.attrib["d"] for path in tree.findall("path")}
    x = {column: 130 + 13 * column for column in range(5)}
    assert drawn["h5"] == f"M{x[1]} 85h26v12h-26z"  # row 2, head 1 is the sixth line
    assert drawn["h1"] == f"M{x[4]} 46h13v12h-13z"
    assert len(re.findall("M", drawn["h0"])) == 6 + 1  # five whole lines but one cell, and both sides of the sixth


def test_one_dimension_and_names_of_any_kind_can_be_drawn() -> None:
    found = tally("<b>\u202e", [("<n>" * 9, 7)], np.arange(7) % 2 == 0)
    assert found
    picture = heat.heat_map(found).picture
    ElementTree.fromstring(picture)
    assert "<b>" not in picture
    assert "\u202e" not in picture


@pytest.mark.parametrize(
    "change", [{"counts": b"123"}, {"extents": (2**20, 2**20, 2**20)}, {"extents": ()}, {"extents": (0, 1, 1)}]
)
def test_counts_that_do_not_fit_are_refused(change: dict[str, object]) -> None:
    found = tally("partial", EXTENTS, np.ones((5, 3, 2, 20), bool))
    assert found
    with pytest.raises(EvidenceError, match="differences of partial: expected 1 to 4096 counts"):
        heat.heat_map(msgspec.structs.replace(found, **change))
