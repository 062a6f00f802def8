"""What the grouped operator promises: buffers, written regions, references, bounds, default plans."""

from collections.abc import Mapping

import numpy as np

from audit import Array, Buffer, Case, Inputs, Operator, Shape

from ..paged import axes, inputs, plans, workset
from .acceptance import BOUNDS, MUTATIONS, REFERENCES, admit, omissions, precast
from .probes import GROUPED_PROBES
from .variants import VARIANTS

SPLITS, ROW_SLOTS = 80, 8
CAPACITY = 262_152
PROBES = (
    ("uniform", 129),
    ("position", 1649),
    ("heads", 33),
    ("dimensions", 129),
    ("one_hot", 1649),
    ("one_hot_high", 1649),
    ("two_keys", 2),
    ("biased", 65),
    ("tiles", 129),
    ("sparse", 1649),
)
"""Each probe with the shortest context in which it can find its faults."""


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
    """The active splits and the row slots of the case; no part of the workspace where no row sees a token."""
    total = max(0, int(np.max(given["lengths"])))
    active = 0 if total == 0 else 1 if total <= 128 else min(SPLITS, -(-total // 64))
    mask = np.zeros((SPLITS, ROW_SLOTS, 1, 1), bool)
    mask[:active, : case.rows] = True
    return {"partial": mask, "lse": mask}


grouped = Operator(
    "grouped",
    same_on_host=True,
    axes=axes.axes(rows=(2, 3, 4, 5, 6, 7, 8), capacity=CAPACITY),
    buffers=buffers,
    inputs=inputs.generated,
    variants=VARIANTS,
    references=REFERENCES,
    bounds=BOUNDS,
    shapes=[Shape(f"q{rows}", {"rows": rows}) for rows in range(2, 9)],
    plan={
        "": [
            *plans.contexts(first_steps_from=5_000, capacity=CAPACITY),
            *plans.LAYOUTS,
            plans.MANY_TILES,
            plans.REPLAYED,
            *plans.probes(PROBES),
        ]
    },
    captures={"": plans.CAPTURES},
    capture_axes=inputs.capture_axes,
    from_capture=inputs.captured,
    admit_inputs=admit,
    steps=inputs.steps,
    written=written,
    derived={"precast": precast},
    describe=inputs.describe,
    probes=GROUPED_PROBES,
    mutations=MUTATIONS,
    omission_share=omissions,
    measured={"out": "out", "precast": "out"},
    sanitize={"": plans.SANITIZED},
    default="piped_roles",
    bench=workset.BENCH,
)
