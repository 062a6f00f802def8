"""Where each variant stands, and what shows it: the one place where variants are admitted and closed.

Figures are those of the evidence that is named: an NVIDIA H200, 16 layers, G=6, D=256, pages of 1,648 tokens.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from audit.spec import Status, Variant

_SCALAR = "reports/h200/20261129T220157Z-q1-72e07f"
_SCALAR_TIMES = "reports/h200/20261129T202442Z-bench-q1-828763"
_GROUPED = "reports/h200/20261129T215503Z-q6-35622f"
_GROUPED_TIMES = "reports/h200/20261129T184849Z-bench-q6-feb17c"
_GROUPED_CLEAN = "reports/h200/20261129T195838Z-sanitize-q6-4d5eaf"
_NOT_TIMED_HERE = "it has not been timed on the H200"


class Standing(NamedTuple):
    """A status, why it is closed, and the evidence that admits or closes it, as paths of this repository."""

    status: Status
    why: str = ""
    evidence: tuple[str, ...] = ()


_ADMITTED_SCALAR = Standing("admitted", evidence=(_SCALAR, _SCALAR_TIMES))
_ADMITTED_GROUPED = Standing("admitted", evidence=(_GROUPED, _GROUPED_TIMES))

STANDING = {
    "scalar": {
        "control": Standing("control", evidence=(_SCALAR, _SCALAR_TIMES)),
        "shared_kv": _ADMITTED_SCALAR,
        "lookup": _ADMITTED_SCALAR,
        "compact_page_map": _ADMITTED_SCALAR,
        "token_groups": _ADMITTED_SCALAR,
        "token_ahead": _ADMITTED_SCALAR,
        "head_halves": Standing(
            "closed", "slower than token_ahead at every context: 1.016 to 1.082 of its time", (_SCALAR_TIMES,)
        ),
        "pv_unroll4": Standing("closed", f"no gain in the source work (V100); {_NOT_TIMED_HERE}"),
        "pv_prefetch": Standing("closed", f"slower in the source work (V100); {_NOT_TIMED_HERE}"),
    },
    "grouped": {
        "control": Standing("control", evidence=(_GROUPED, _GROUPED_TIMES, _GROUPED_CLEAN)),
        "vector_loads": _ADMITTED_GROUPED,
        "shared_kv": _ADMITTED_GROUPED,
        "page_specialized": _ADMITTED_GROUPED,
        "ordered_qk_pv": Standing("admitted", evidence=(_GROUPED, _GROUPED_TIMES, _GROUPED_CLEAN)),
        "visible_tile": Standing("admitted", evidence=(_GROUPED, _GROUPED_TIMES, _GROUPED_CLEAN)),
        "direct_fragments": Standing("experimental"),
        "warp_roles": Standing("experimental"),
        "rolled_steps": _ADMITTED_GROUPED,
        "lean_roles": Standing("closed", "no faster than warp_roles: 0.991 to 1.018 of its time (q6, q8)"),
        "even_roles": Standing("closed", "slower than lean_roles: 0.973 to 1.197 of its time (q6, q8)"),
        "n64": Standing("closed", f"slower in the source work (V100); {_NOT_TIMED_HERE}"),
        "register_softmax": Standing("closed", f"slower in the source work (V100); {_NOT_TIMED_HERE}"),
        "m8n32_qk": Standing("closed", f"slower in the source work (V100); {_NOT_TIMED_HERE}"),
        "operand_rotation": Standing("closed", f"slower in the source work (V100); {_NOT_TIMED_HERE}"),
        "fp64_sum": Standing(
            "closed",
            "other bytes than every other variant; in the source work the pre-cast error grew from 2.779e-6 to "
            "3.217e-6 though every f16 metric passed, here it grew in 57 of 209 steps and shrank in 93",
        ),
    },
}


def placed(operator: str, variants: Sequence[Variant]) -> tuple[Variant, ...]:
    """The variants of an operator, each with its standing; one that has none here is an error."""
    return tuple(replace(variant, **STANDING[operator][variant.name]._asdict()) for variant in variants)
