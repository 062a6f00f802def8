"""A project with two shapes, of which one fails."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def two_shapes(softmax_project: Path) -> Path:
    """The softmax project with a shape that passes and one whose variant `wrong` fails."""
    source = softmax_project / "kernels/softmax.py"
    text = source.read_text()
    plan = 'plan={"softmax": [Line({"n": n}) for n in (1, 33, 4096)]},'
    assert text.count(plan) == 1
    text = text.replace(plan, 'shapes=[Shape("short", {"n": 1}), Shape("long", {"n": 33})],')
    source.write_text(text.replace("Reference, Source", "Reference, Shape, Source"))
    return softmax_project
