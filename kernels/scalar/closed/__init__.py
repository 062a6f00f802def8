"""Closed variants of the scalar operator: tried, measured, and not kept.

Only this folder holds what they alone need. Delete it, and every other variant stays as it is.
"""

from audit import Variant

from ...admission import SCALAR_UNADMITTED, Admission, with_admissions
from ...paged.source import cuda_source
from ..launches import streamed, two_launches

_ADMISSIONS = {
    name: Admission("closed", why, SCALAR_UNADMITTED)
    for name, why in {
        "head_halves": "slower than token_ahead: 1.070 of its time at 32,768 tokens, 1.014 at 261,888",
        "pv_unroll4": "no gain in the source work (V100); here 0.646 to 0.675 of control's time, but 20 times "
        "token_ahead's",
        "pv_prefetch": "slower in the source work (V100); here 0.683 to 0.729 of control's time, but 21 times "
        "token_ahead's",
    }.items()
}


def _by_head(name: str, note: str) -> Variant:
    """A variant with one block for each head of a partition, as control has it."""
    launches = two_launches(name, block_a_head=True)
    return Variant(name, cuda_source(f"kernels/scalar/closed/{name}.cu"), launches, "control", note=note)


VARIANTS = with_admissions(
    (
        streamed(
            "head_halves",
            "token_ahead",
            "in PV each half of a warp's lanes has half of the heads, and reads half of the weights",
            folder="closed",
            wide_stages=65_536,
            blocks=264,
            padding=16,
        ),
        _by_head("pv_unroll4", "four V loads issued before their four fmas"),
        _by_head("pv_prefetch", "V loaded one token ahead of its fma"),
    ),
    _ADMISSIONS,
)
