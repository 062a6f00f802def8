"""The variants of the scalar operator, each with its parent and its launches."""

from audit import Variant

from ..admission import ADMISSIONS, closed_variants, with_admissions
from ..paged.source import cuda_source
from .launches import bytewise, streamed, two_launches

_CONTROL = Variant(
    "control",
    cuda_source("kernels/scalar/control.cu"),
    two_launches("control", block_a_head=True),
    note="one block a head of a partition",
)

_BYTEWISE = (
    bytewise("shared_kv", "control", "decoded K and V shared by the heads"),
    bytewise("lookup", "shared_kv", "e4m3 decoded by a 256-entry table in shared memory"),
    bytewise("compact_page_map", "lookup", "two page numbers a partition; 4,096 bytes reserved", shared_bytes=4096),
)

_STREAMED = (
    streamed(
        "token_groups",
        "compact_page_map",
        "16 threads score a token; K and V stream through shared memory undecoded",
    ),
    streamed(
        "token_ahead",
        "token_groups",
        "shared memory read one step ahead; the heads of few partitions spread over blocks",
        wide_stages=65_536,
        blocks=264,
    ),
)

VARIANTS = with_admissions((_CONTROL, *_BYTEWISE, *_STREAMED), ADMISSIONS["scalar"]) + closed_variants(
    __package__ or ""
)
