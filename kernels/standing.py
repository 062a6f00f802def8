"""Where each variant stands, and what shows it: the one place where variants are admitted and closed.

Figures are those of the evidence that is named: an NVIDIA H200, 16 layers, G=6, D=256, pages of 1,648 tokens, at
32,768 and 261,888 tokens.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from audit.spec import Status, Variant

_SCALAR = "reports/h200/20261130T020016Z-q1-07e4ab"
_SCALAR_LONG = "reports/h200/20261130T020228Z-q1-202e68"
_SCALAR_TIMES = "reports/h200/20261130T020917Z-bench-q1-fe59b7"
_SCALAR_CLEAN = "reports/h200/20261130T021253Z-sanitize-q1-6a1ab3"
_SCALAR_CLOSED = "reports/h200/20261130T020326Z-q1-299b2a"
_SCALAR_CLOSED_TIMES = "reports/h200/20261130T021018Z-bench-q1-c38c97"
_GROUPED = "reports/h200/20261130T020016Z-q6-938901"
_GROUPED_LONG = "reports/h200/20261130T020228Z-q6-724d96"
_GROUPED_TIMES = "reports/h200/20261130T020746Z-bench-q6-6140b2"
_GROUPED_CLEAN = "reports/h200/20261130T021053Z-sanitize-q6-919852"
_GROUPED_CLOSED = "reports/h200/20261130T020326Z-q6-655c55"
_GROUPED_CLOSED_TIMES = "reports/h200/20261130T020916Z-bench-q8-a38f98"
_GROUPED_CLOSED_TIMES_Q6 = "reports/h200/20261130T020951Z-bench-q6-e772ed"
_FP64_SUM = "reports/h200/20261130T020326Z-q6-b0e028"


class Standing(NamedTuple):
    """A status, why it is closed, and the evidence that admits or closes it, as paths of this repository."""

    status: Status
    why: str = ""
    evidence: tuple[str, ...] = ()


_SCALAR_EVIDENCE = (_SCALAR, _SCALAR_TIMES, _SCALAR_CLEAN)
_GROUPED_EVIDENCE = (_GROUPED, _GROUPED_TIMES, _GROUPED_CLEAN)
_ADMITTED_SCALAR = Standing("admitted", evidence=_SCALAR_EVIDENCE)
_ADMITTED_GROUPED = Standing("admitted", evidence=_GROUPED_EVIDENCE)
_PASSED_BY = Standing("experimental", evidence=(_GROUPED_CLOSED, _GROUPED_TIMES, _GROUPED_CLEAN))
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
            "closed", "slower than token_ahead: 1.070 of its time at 32,768 tokens, 1.014 at 261,888", _SCALAR_SHOWN
        ),
        "pv_unroll4": Standing(
            "closed",
            "no gain in the source work (V100); here 0.646 to 0.675 of control's time, but 20 times token_ahead's",
            _SCALAR_SHOWN,
        ),
        "pv_prefetch": Standing(
            "closed",
            "slower in the source work (V100); here 0.683 to 0.729 of control's time, but 21 times token_ahead's",
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
        # On the way to piped_roles, with its bytes and as clean as it: what a default plan would run for nothing.
        "direct_fragments": _PASSED_BY,
        "warp_roles": _PASSED_BY,
        "rolled_steps": _PASSED_BY,
        "piped_roles": Standing("admitted", evidence=(*_GROUPED_EVIDENCE, _GROUPED_LONG)),
        "lean_roles": Standing(
            "closed",
            "0.954 to 0.963 of warp_roles's time for q8, but 1.002 to 1.028 for q6, where piped_roles has 0.76 to 0.79",
            (_GROUPED_CLOSED, _GROUPED_CLOSED_TIMES, _GROUPED_CLOSED_TIMES_Q6),
        ),
        "even_roles": Standing(
            "closed",
            "1.074 to 1.232 of lean_roles's time for q8; for q6 0.936 to 1.047, and slower than rolled_steps",
            (_GROUPED_CLOSED, _GROUPED_CLOSED_TIMES, _GROUPED_CLOSED_TIMES_Q6),
        ),
        "woven_steps": Standing(
            "closed",
            "slower than rolled_steps: 1.039 to 1.045 of its time at 32,768 tokens, 1.136 to 1.156 at 261,888",
            (_GROUPED_CLOSED, _GROUPED_TIMES),
        ),
        "n64": Standing(
            "closed",
            "slower in the source work (V100); here 0.967 to 0.979 of ordered_qk_pv's time, but 4 times warp_roles'",
            _GROUPED_SHOWN,
        ),
        "register_softmax": Standing(
            "closed",
            "slower in the source work (V100); here 0.974 to 0.987 of visible_tile's time, not of ordered_qk_pv's",
            _GROUPED_SHOWN,
        ),
        "m8n32_qk": Standing("closed", "slower than visible_tile: 1.006 to 1.008 of its time", _GROUPED_SHOWN),
        "operand_rotation": Standing(
            "closed",
            "no gain over visible_tile: no difference at 32,768 nor at 261,888 tokens",
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
