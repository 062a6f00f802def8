"""Closed variants of the grouped operator: tried, measured, and not kept.

Only this folder holds what they alone need. Delete it, and every other variant stays as it is.
"""

from audit import Case

from ...admission import GROUPED_UNADMITTED, Admission, with_admissions
from ..launches import eight_warps, one_block


def _lean_bytes(case: Case) -> int:
    """sizeof LeanMemory in lean_roles.cuh, which asserts it."""
    return int((128 + 6 * 32) * case.dim + 2 * 8704 + 256 + 32 * case.dim + 16)


def _woven_bytes(case: Case) -> int:
    """sizeof WovenMemory in woven_steps.cuh, which asserts it."""
    return int((128 + 6 * 32) * case.dim + 4 * (2048 + 64 + 1024) + 512 + 32 * case.dim)


def _closed(why: str) -> Admission:
    return Admission("closed", why, GROUPED_UNADMITTED)


_ADMISSIONS = {
    "n64": _closed(
        "slower in the source work (V100); here 0.967 to 0.979 of ordered_qk_pv's time, but 4 times warp_roles'"
    ),
    "register_softmax": _closed(
        "slower in the source work (V100); here 0.974 to 0.987 of visible_tile's time, not of ordered_qk_pv's"
    ),
    "m8n32_qk": _closed("slower than visible_tile: 1.006 to 1.008 of its time"),
    "operand_rotation": _closed("no gain over visible_tile: no difference at 32,768 or 261,888 tokens"),
    "fp64_sum": _closed(
        "not the bytes of the other variants; in the source work the pre-cast error grew from 2.779e-6 to 3.217e-6 "
        "though every f16 metric passed, here it grew in 57 of 209 steps and shrank in 93",
    ),
    "lean_roles": _closed(
        "0.954 to 0.963 of warp_roles' time for q8, but 1.002 to 1.028 for q6, where piped_roles takes 0.76 to 0.79",
    ),
    "even_roles": _closed(
        "1.074 to 1.232 of lean_roles' time for q8; for q6 0.936 to 1.047, and slower than rolled_steps",
    ),
    "woven_steps": _closed(
        "slower than rolled_steps: 1.039 to 1.045 of its time at 32,768 tokens, 1.136 to 1.156 at 261,888",
    ),
}

VARIANTS = with_admissions(
    (
        one_block("n64", "ordered_qk_pv", "two 32-token tiles loaded as one panel", panel_tiles=2, folder="closed"),
        one_block("register_softmax", "visible_tile", "row state in registers", in_registers=True, folder="closed"),
        one_block("m8n32_qk", "visible_tile", "QK by m8n32k16", folder="closed"),
        one_block("operand_rotation", "visible_tile", "K is the left operand of QK", folder="closed"),
        one_block("fp64_sum", "visible_tile", "K16 products summed in FP64", folder="closed"),
        eight_warps(
            "lean_roles", "warp_roles", "producer warps copy V too, in whole rows", _lean_bytes, folder="closed"
        ),
        eight_warps(
            "even_roles",
            "lean_roles",
            "softmax ahead of the next QK: barriers halve the work",
            _lean_bytes,
            folder="closed",
        ),
        eight_warps(
            "woven_steps",
            "rolled_steps",
            "PV of a chunk between the QK steps of the next one",
            _woven_bytes,
            folder="closed",
        ),
    ),
    _ADMISSIONS,
)
