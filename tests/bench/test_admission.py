"""What a relation admits to a bench: results of both launches, on the host, without any GPU here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from audit.bench.admission import admitted
from audit.errors import AuditError
from audit.records.bench import ComparedBytes
from audit.relations import Bitwise, NoWorse, Relation, Ulps, Unrelated
from audit.spec import Array, Buffer, Case, Operator, Reference, Source, Variant

RIGHT = np.linspace(1, 2, 64, dtype=np.float32).reshape(2, 32)


class HeldArray:
    """An array in place of one on a device."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def get(self) -> Array:
        return self.array.reshape(-1).view(np.uint8)


def judged(relation: Any, plain: Array, graph: Array, workspace: Array | None = None) -> ComparedBytes:
    """A comparison of one layer whose parent left RIGHT in `y`, and zeros in the workspace `w`."""
    buffers = [Buffer("y", "f32", "rows=2 n=32", "out"), Buffer("w", "f32", "n=4", "workspace")]
    variants = [Variant("new", Source("x.cu"), lambda _: [], parent="old", relation=relation)]
    references = [Reference("fp64", lambda _c, _i: {"y": RIGHT.astype(np.float64)})]
    operator = Operator("o", [], lambda _: buffers, lambda _c, _r: {}, variants, references)
    case = Case("o", "o", {})
    work: Any = SimpleNamespace(operator=operator, cases=[case], case=case, buffers={one.name: one for one in buffers})

    def contender(variant: Variant, y: Array, out: Array, w: Array) -> Any:
        return SimpleNamespace(
            variant=variant,
            plain_outs=[{"y": HeldArray(y)}],
            outs=[{"y": HeldArray(out)}],
            workspace={"w": HeldArray(w)},
            run_layer=lambda _layer: None,
        )

    zeros = np.zeros(4, np.float32)
    contenders = {
        "new": contender(variants[0], plain, graph, zeros if workspace is None else workspace),
        "old": contender(Variant("old", Source("x.cu"), lambda _: []), RIGHT, RIGHT, zeros),
    }
    return admitted(work, [{}], contenders, ComparedBytes("new", "old", 64, 256, 9))


def moved(ulps: int) -> Array:
    bits = RIGHT.copy().view(np.uint32)
    bits[1, 3] += ulps
    return bits.view(np.float32)


@pytest.mark.parametrize("relation", [Ulps(2), NoWorse(1.5)])
def test_what_is_permitted_is_timed_and_what_is_not_is_refused(relation: Relation) -> None:
    assert judged(relation, moved(2), moved(2)).refused == 0
    far = moved(1 << 22)
    assert judged(relation, far, RIGHT).refused > 0
    assert judged(relation, RIGHT, far).refused > 0  # by the graph alone


def test_bitwise_is_left_to_the_device_and_unrelated_admits_everything() -> None:
    assert judged(Bitwise(), RIGHT, RIGHT) == ComparedBytes("new", "old", 64, 256, 9)
    assert judged(Bitwise(), RIGHT, RIGHT).refused == 9
    assert judged(Unrelated(), -RIGHT, -RIGHT).refused == 0


def test_a_workspace_stays_bitwise_where_relations_go_by_buffer() -> None:
    assert judged({"y": Ulps(2)}, moved(2), moved(2)).refused == 0
    other = np.array([0, 0, -0.0, 1], np.float32)
    assert judged({"y": Ulps(2)}, RIGHT, RIGHT, other).refused == 2
    assert judged(Ulps(2), RIGHT, RIGHT, other).refused == 0


def test_a_reference_that_lacks_the_output_is_an_error() -> None:
    with pytest.raises(AuditError, match="expected an array in f64 for y from reference exact"):
        judged(NoWorse(2, "exact"), RIGHT, RIGHT)
