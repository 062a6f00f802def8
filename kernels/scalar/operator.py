"""What the scalar operator promises: buffers, written regions, references, bounds, default plan."""

from collections.abc import Mapping

import numpy as np

from audit import Array, Buffer, Case, Inputs, Operator, Shape

from ..paged import axes, inputs, plans, workset
from .acceptance import BOUNDS, CAPACITY, MUTATIONS, REFERENCES, active_partitions, admit, omissions, precast
from .probes import SCALAR_PROBES
from .variants import VARIANTS

PARTITIONS = 256
PROBES = (
    ("uniform", 129),
    ("position", 1649),
    ("heads", 33),
    ("dimensions", 129),
    ("one_hot", 1649),
    ("two_keys", 2),
    ("biased", 65),
    ("sparse", 1649),
)
"""Each probe with the shortest context in which it can find its faults."""


def buffers(case: Case) -> tuple[Buffer, ...]:
    """The inputs, the workspace (partial, maximum, sums) and the output."""
    slots = f"row=1 head={case.heads} partition={PARTITIONS}"
    return (
        *axes.input_buffers(case),
        Buffer("partial", "f32", f"{slots} dim", "workspace"),
        Buffer("maximum", "f32", slots, "workspace"),
        Buffer("sums", "f32", slots, "workspace"),
        Buffer("out", "f16", f"row=1 head={case.heads} dim", "out"),
    )


def written(_case: Case, given: Inputs) -> Mapping[str, Array]:
    """The partitions that have a token; the output always."""
    mask = np.arange(PARTITIONS) < active_partitions(given)
    return {"partial": mask[:, None], "maximum": mask, "sums": mask}


def steps(case: Case, given: Inputs) -> Mapping[str, Inputs]:
    """All steps but tail_zero and first_zero, which equal all_zero where there is one row."""
    same = ("tail_zero", "first_zero")
    return {name: step for name, step in inputs.steps(case, given).items() if name not in same}


scalar = Operator(
    "scalar",
    same_on_host=True,
    axes=axes.axes(rows=(1,), capacity=CAPACITY),
    buffers=buffers,
    inputs=inputs.generated,
    variants=VARIANTS,
    references=REFERENCES,
    bounds=BOUNDS,
    shapes=[Shape("q1", {"rows": 1})],
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
    steps=steps,
    written=written,
    derived={"precast": precast},
    describe=inputs.describe,
    probes=SCALAR_PROBES,
    mutations=MUTATIONS,
    omission_share=omissions,
    measured={"out": "out", "precast": "out"},
    sanitize={"": plans.SANITIZED},
    default="token_ahead",
    bench=workset.BENCH,
)
