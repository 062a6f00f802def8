"""Where each variant stands, and what shows it: the one place where variants are admitted and closed.

Figures are those of the evidence that is named: an NVIDIA H200, 16 layers, G=6, D=256, pages of 1,648 tokens, at
32,768 and 261,888 tokens.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from audit.spec import Status, Variant

_SCALAR = "reports/h200/20261129T220157Z-q1-72e07f"
_SCALAR_LONG = "reports/h200/20261129T224123Z-q1-060ab1"
_SCALAR_TIMES = "reports/h200/20261129T223924Z-bench-q1-4230f9"
_SCALAR_CLEAN = "reports/h200/20261129T224729Z-sanitize-q1-da4686"
_SCALAR_CLOSED = "reports/h200/20261129T220411Z-q1-aab80f"
_SCALAR_CLOSED_TIMES = "reports/h200/20261129T224041Z-bench-q1-d6a15e"
_GROUPED = "reports/h200/20261129T215503Z-q6-35622f"
_GROUPED_LONG = "reports/h200/20261129T224123Z-q6-6dfd4d"
_GROUPED_TIMES = "reports/h200/20261129T223755Z-bench-q6-7643d9"
_GROUPED_CLEAN = "reports/h200/20261129T224729Z-sanitize-q6-e6c87c"
_GROUPED_CLOSED = "reports/h200/20261129T215618Z-q6-92fd7c"
_GROUPED_CLOSED_TIMES = "reports/h200/20261129T223923Z-bench-q8-807288"
_FP64_SUM = "reports/h200/20261129T215736Z-q6-c4e7e1"


class Standing(NamedTuple):
    """A status, why it is closed, and the evidence that admits or closes it, as paths of this repository."""

    status: Status
    why: str = ""
    evidence: tuple[str, ...] = ()


_SCALAR_EVIDENCE = (_SCALAR, _SCALAR_TIMES, _SCALAR_CLEAN)
_GROUPED_EVIDENCE = (_GROUPED, _GROUPED_TIMES, _GROUPED_CLEAN)
_ADMITTED_SCALAR = Standing("admitted", evidence=_SCALAR_EVIDENCE)
_ADMITTED_GROUPED = Standing("admitted", evidence=_GROUPED_EVIDENCE)
# Of each closed one: its bytes on the GPU, and its times.
_SCALAR_SHOWN = (_SCALAR_CLOSED, _SCALAR_CLOSED_TIMES)
_GROUPED_SHOWN = (_GROUPED_CLOSED, _GROUPED_CLOSED_TIMES)

STANDING = {
    "scalar": {
        "control": Standing("control", evidence=(*_SCALAR_EVIDENCE, _SCALAR_LONG)),
        "shared_kv": _ADMITTED_SCALAR,
        "lookup": _ADMITTED_SCALAR,
        "compact_page_map": _ADMITTED_SCALAR,
        "token_groups": _ADMITTED_SCALAR,
        "token_ahead": Standing("admitted", evidence=(*_SCALAR_EVIDENCE, _SCALAR_LONG)),
        "head_halves": Standing(
            "closed", "slower than token_ahead: 1.081 of its time at 32,768 tokens, 1.015 at 261,888", _SCALAR_SHOWN
        ),
        "pv_unroll4": Standing(
            "closed",
            "no gain in the source work (V100); here 0.646 to 0.680 of control's time, but 20 times token_ahead's",
            _SCALAR_SHOWN,
        ),
        "pv_prefetch": Standing(
            "closed",
            "slower in the source work (V100); here 0.688 to 0.738 of control's time, but 21 times token_ahead's",
            _SCALAR_SHOWN,
        ),
    },
    "grouped": {
        "control": Standing("control", evidence=(*_GROUPED_EVIDENCE, _GROUPED_LONG)),
        "vector_loads": _ADMITTED_GROUPED,
        "shared_kv": _ADMITTED_GROUPED,
        "page_specialized": _ADMITTED_GROUPED,
        "ordered_qk_pv": _ADMITTED_GROUPED,
        "visible_tile": _ADMITTED_GROUPED,
        # Their bytes and times are in the evidence, the warps of a block meet at a barrier from two places: synccheck
        # on a GPU finds that, so that none of them is admitted.
        "direct_fragments": Standing("experimental", evidence=(_GROUPED_CLOSED, _GROUPED_TIMES)),
        "warp_roles": Standing("experimental", evidence=(_GROUPED_CLOSED, _GROUPED_TIMES, _GROUPED_LONG)),
        "rolled_steps": Standing("experimental", evidence=(*_GROUPED_EVIDENCE, _GROUPED_LONG)),
        "lean_roles": Standing(
            "closed", "no faster than warp_roles: 0.992 to 1.014 of its time (q6, q8)", (_GROUPED_CLOSED_TIMES,)
        ),
        "even_roles": Standing(
            "closed", "slower than lean_roles: 1.110 to 1.218 of its time (q8)", (_GROUPED_CLOSED_TIMES,)
        ),
        "piped_roles": Standing("experimental"),
        "woven_steps": Standing("experimental"),
        "n64": Standing(
            "closed",
            "slower in the source work (V100); here 0.974 to 0.980 of ordered_qk_pv's time, but 4 times warp_roles'",
            _GROUPED_SHOWN,
        ),
        "register_softmax": Standing(
            "closed",
            "slower in the source work (V100); here 0.976 to 0.985 of visible_tile's time, not of ordered_qk_pv's",
            _GROUPED_SHOWN,
        ),
        "m8n32_qk": Standing("closed", "slower than visible_tile: 1.005 to 1.009 of its time", _GROUPED_SHOWN),
        "operand_rotation": Standing(
            "closed",
            "no gain over visible_tile: no difference at 32,768 tokens, 1.0015 of its time at 261,888",
            _GROUPED_SHOWN,
        ),
        "fp64_sum": Standing(
            "closed",
            "other bytes than every other variant; in the source work the pre-cast error grew from 2.779e-6 to "
            "3.217e-6 though every f16 metric passed, here it grew in 57 of 209 steps and shrank in 93",
            (_FP64_SUM,),
        ),
    },
}


def placed(operator: str, variants: Sequence[Variant]) -> tuple[Variant, ...]:
    """The variants of an operator, each with its standing; one that has none here is an error."""
    return tuple(replace(variant, **STANDING[operator][variant.name]._asdict()) for variant in variants)
