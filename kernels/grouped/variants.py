"""The variants of the grouped operator, each with its parent and its launches."""

from audit import Variant

from ..admission import ADMISSIONS, closed_variants, with_admissions
from ..paged.source import cuda_source
from .launches import (
    chunk_bytes,
    control_bytes,
    eight_warps,
    one_block,
    piped_bytes,
    role_bytes,
    row_tiles,
    split_bytes,
    two_launches,
)

_CONTROL = Variant(
    "control",
    cuda_source("kernels/grouped/control.cu"),
    two_launches("control", 128, row_tiles, control_bytes),
    note="one block for each 16-row tile of a split, each reading K and V again; scalar loads",
)

_STAGED = (
    Variant(
        "vector_loads",
        cuda_source("kernels/grouped/staged/vector_loads.cu"),
        two_launches("vector_loads", 128, row_tiles, lambda case: split_bytes(case, 1, 4)),
        parent="control",
        note="16-byte loads where strides and base allow, 8-byte or single bytes otherwise",
    ),
    one_block("shared_kv", "vector_loads", "one block serves all heads: K and V are read once", by_page=False),
    one_block("page_specialized", "shared_kv", "page size a compile-time constant (1648, 3296)"),
    one_block("ordered_qk_pv", "page_specialized", "two K16 products in flight; V fragments reused over rows"),
    one_block("visible_tile", "ordered_qk_pv", "no work for invisible tiles and padded row tiles"),
)

_DIRECT = (
    Variant(
        "direct_fragments",
        cuda_source("kernels/grouped/direct/direct_fragments.cu"),
        two_launches(
            "direct_fragments", 128, row_tiles, chunk_bytes, by_page=True, merge_threads=lambda case: case.dim
        ),
        parent="visible_tile",
        note="e4m3 bytes decoded straight into tensor-core registers; scores and numerator stay in registers",
    ),
    eight_warps(
        "warp_roles",
        "direct_fragments",
        "four producer warps (QK, softmax) one chunk ahead of four consumer warps (PV); q in shared memory",
        role_bytes,
    ),
    eight_warps("rolled_steps", "warp_roles", "QK steps in a loop, five at a time", role_bytes),
    eight_warps("piped_roles", "rolled_steps", "pipeline of six tiles with full and empty barriers", piped_bytes),
)

VARIANTS = with_admissions((_CONTROL, *_STAGED, *_DIRECT), ADMISSIONS["grouped"]) + closed_variants(__package__ or "")
