"""kernel-audit: a numerical correctness audit for GPU kernels.

What a project may import is this vocabulary (`from audit import Operator, Variant, ...`) and the modules in
`PUBLIC_MODULES`. Everything else below `audit` is private and may change without notice.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from audit.bounds import AllClose, Cosine, Forward, MaxUlps, RelL2
    from audit.comparisons import ArgMax, Permutation, Residual, Sampling, TopK
    from audit.errors import InputError, PlanError, ProjectError, ToolMissing
    from audit.relations import Bitwise, NoWorse, Relation, Ulps, Unrelated, Within
    from audit.spec import (
        Arg,
        Array,
        At,
        Axis,
        AxisValue,
        Bench,
        Binary,
        Bound,
        Buffer,
        CapturedInputs,
        Case,
        Expected,
        Families,
        Got,
        Inputs,
        Launch,
        Line,
        Machine,
        Measured,
        Mutation,
        Operator,
        Peer,
        PeerRun,
        Pointers,
        Probe,
        Reference,
        Shape,
        Source,
        Status,
        Struct,
        Variant,
    )

__version__ = "0.1.0"

PUBLIC_MODULES = (
    *("audit", "audit.bounds", "audit.comparisons", "audit.errors", "audit.formats", "audit.relations"),
    *("audit.sparse", "audit.spec"),
)
"""The modules that a project may import. `audit.spec`, `audit.relations`, `audit.bounds`, `audit.comparisons` and
`audit.errors` hold the vocabulary."""

__all__ = [
    "AllClose",
    "Arg",
    "ArgMax",
    "Array",
    "At",
    "Axis",
    "AxisValue",
    "Bench",
    "Binary",
    "Bitwise",
    "Bound",
    "Buffer",
    "CapturedInputs",
    "Case",
    "Cosine",
    "Expected",
    "Families",
    "Forward",
    "Got",
    "InputError",
    "Inputs",
    "Launch",
    "Line",
    "Machine",
    "MaxUlps",
    "Measured",
    "Mutation",
    "NoWorse",
    "Operator",
    "Peer",
    "PeerRun",
    "Permutation",
    "PlanError",
    "Pointers",
    "Probe",
    "ProjectError",
    "Reference",
    "RelL2",
    "Relation",
    "Residual",
    "Sampling",
    "Shape",
    "Source",
    "Status",
    "Struct",
    "ToolMissing",
    "TopK",
    "Ulps",
    "Unrelated",
    "Variant",
    "Within",
]

_HOMES = ("audit.errors", "audit.relations", "audit.spec", "audit.bounds", "audit.comparisons")


def __getattr__(name: str) -> Any:
    """Load a word of the vocabulary when it is first used, so that `audit --help` imports no numpy."""
    if name in __all__:
        for home in map(import_module, _HOMES):
            if name in vars(home):
                return vars(home)[name]
    raise AttributeError(f"module 'audit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
