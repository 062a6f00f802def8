"""A variant that is its parent in every case of a plan is a finding; one that is its parent in some is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Ran

DISPATCHING = """
import numpy as np
from audit import Axis, Buffer, Launch, Line, Operator, Reference, Source, Variant
from audit.bounds import RelL2

SOURCE = Source("kernels/ordinary.cu")


def twice(c):
    entry = "quantise_twice" if c.n >= {least} else "quantise"
    return [Launch(entry, (-(-c.n // 64),), (64,), 0, ("x", "y", c.n))]


dispatched = Operator(
    "dispatched", axes=[Axis("n", 100)],
    buffers=lambda c: [Buffer("x", "f32", "n", "in"), Buffer("y", "u8", "n", "out")],
    inputs=lambda c, rng: {{"x": rng.uniform(-20, 300, c.n)}},
    references=[Reference("fp64", lambda c, i: {{"y": np.trunc(np.clip(i["x"].astype("f4").astype(float), 0, 255))}})],
    bounds=[RelL2("y", 1e-6)],
    plan={{"": [Line({{"n": 100}}), Line({{"n": 1000}})]}},
    variants=[
        Variant("control", SOURCE, lambda c: [Launch("quantise", (-(-c.n // 64),), (64,), 0, ("x", "y", c.n))]),
        Variant("by_size", SOURCE, twice, parent="control"),
    ],
)
"""


@pytest.mark.parametrize(("least", "failing"), [(500, set()), (5000, {"identity"})])
def test_a_variant_that_chooses_by_size(
    least: int, failing: set[str], tmp_path: Path, audit: Callable[..., Ran]
) -> None:
    source = Path(__file__).parent / "projects/ordinary/kernels/ordinary.cu"
    (tmp_path / "kernels").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.kernel-audit]\nkernels = "kernels"\n')
    (tmp_path / "kernels/ordinary.cu").write_text(source.read_text())
    (tmp_path / "kernels/dispatched.py").write_text(DISPATCHING.format(least=least))
    ran = audit(tmp_path, "run", "--shape", "dispatched", "--json")
    assert ran.failed() == failing
    assert audit(tmp_path, "verify", ran.json["evidence"]).code == 0
