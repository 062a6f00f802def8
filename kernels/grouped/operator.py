"""What the grouped operator promises: buffers, written regions, references, bounds, default plans."""

from collections.abc import Mapping

import numpy as np

from audit.spec import Array, Buffer, Case, Inputs, Line, Operator, Shape

from ..paged import axes, inputs
from .judgement import BOUNDS, REFERENCES, admit, precast
from .variants import VARIANTS

SPLITS, ROW_SLOTS = 80, 8
CAPACITY = 262_152
LAYERS, RANKS = (0, 18, 28), (0, 1, 2)


def buffers(case: Case) -> tuple[Buffer, ...]:
    """The inputs, the workspace (partial, lse) and the output."""
    slots = f"split={SPLITS} row={ROW_SLOTS} head={case.heads}"
    return (
        *axes.input_buffers(case),
        Buffer("partial", "f32", f"{slots} dim", "workspace"),
        Buffer("lse", "f32", f"{slots} state=2", "workspace"),
        Buffer("out", "f16", f"row={case.rows} head={case.heads} dim", "out"),
    )


def written(case: Case, given: Inputs) -> Mapping[str, Array]:
    """Active splits and the row slots of the case; nothing of the workspace where no row sees a token."""
    total = max(0, int(np.max(given["lengths"])))
    active = 0 if total == 0 else 1 if total <= 128 else min(SPLITS, -(-total // 64))
    mask = np.zeros((SPLITS, ROW_SLOTS, 1, 1), bool)
    mask[:active, : case.rows] = True
    return {"partial": mask, "lse": mask}


_Q6 = (
    Line({"context": 1}),
    Line({"context": 33}),
    Line({"context": 64}),
    Line({"context": 129}),
    Line({"context": 1649, "page": 1648}),
    Line({"context": 3297, "page": 3296}),
)
_OTHERS = (Line({"context": 33}), Line({"context": 129}), Line({"context": 1649, "page": 1648}))

grouped = Operator(
    "grouped",
    axes=axes.axes(rows=(2, 3, 4, 5, 6, 7, 8), capacity=CAPACITY),
    buffers=buffers,
    inputs=inputs.generated,
    variants=VARIANTS,
    references=REFERENCES,
    bounds=BOUNDS,
    shapes=[Shape(f"q{rows}", {"rows": rows}) for rows in range(2, 9)],
    plan={"q6": _Q6, "": _OTHERS},
    captures={"": [f"smollm2-135m/layer{layer}/rank{rank}" for layer in LAYERS for rank in RANKS]},
    capture_axes=inputs.capture_axes,
    from_capture=inputs.captured,
    admit_inputs=admit,
    steps=inputs.steps,
    written=written,
    derived={"precast": precast},
    measured={"out": "out", "precast": "out"},
)
