"""The variants of the scalar operator, each with its parent and its launches."""

import dataclasses
from collections.abc import Callable

from audit.spec import Case, Launch, Source, Variant

from ..paged.storage import addresses, strides

_PARTITIONS, _THREADS = 256, 256
_WORKSPACE = ("partial", "maximum", "sums")


def _launches(name: str, *, block_a_head: bool = False, shared_bytes: int = 0) -> Callable[[Case], tuple[Launch, ...]]:
    """The two launches of a variant: every partition, then the reducer. Grids never depend on the length."""

    def launches(case: Case) -> tuple[Launch, ...]:
        arguments = f"<{case.heads}, {case.dim}>"
        grid = (_PARTITIONS, case.heads) if block_a_head else (_PARTITIONS,)
        inputs = ("q", *addresses(case), "table", "lengths", case.page, *strides(case), "scale", "k_scale", "v_scale")
        return (
            Launch(f"scalar_{name}_partitions{arguments}", grid, (_THREADS,), shared_bytes, (*inputs, *_WORKSPACE)),
            Launch(f"scalar_{name}_reduce{arguments}", (case.heads,), (_THREADS,), 0, ("lengths", *_WORKSPACE, "out")),
        )

    return launches


def _derived(name: str, parent: str, note: str, shared_bytes: int = 0) -> Variant:
    launches = _launches(name, shared_bytes=shared_bytes)
    return Variant(name, Source(f"kernels/scalar/{name}.cu"), launches, parent, note=note)


def _by_head(name: str, note: str) -> Variant:
    launches = _launches(name, block_a_head=True)
    return Variant(name, Source(f"kernels/scalar/{name}.cu"), launches, "control", note=note)


def _token_launches(
    name: str, *, wide_ring: int = 49_152, blocks: int = _PARTITIONS, padding: int = 0
) -> Callable[[Case], tuple[Launch, ...]]:
    """Blocks of 128 threads, and the reducer over 32 dimensions of a head. The shared memory is sizeof(GroupMemory)."""

    def launches(case: Case) -> tuple[Launch, ...]:
        partitions, reducer = _launches(name)(case)
        ring = wide_ring if case.dim == 256 else 49_152
        shared_bytes = ring + 1_024 + case.heads * (4_160 + padding + 2 * case.dim)
        return (
            dataclasses.replace(partitions, grid=(blocks,), block=(128,), shared_bytes=shared_bytes),
            dataclasses.replace(reducer, grid=(case.heads, case.dim // 32)),
        )

    return launches


VARIANTS = (
    Variant(
        "control",
        Source("kernels/scalar/control.cu"),
        _launches("control", block_a_head=True),
        note="one block a head of a partition",
    ),
    _derived("shared_kv", "control", "decoded K and V shared by the heads"),
    _derived("lookup", "shared_kv", "e4m3 decoded by a 256-entry table in shared memory"),
    _derived("compact_page_map", "lookup", "two page numbers a partition; 4,096 bytes reserved", shared_bytes=4096),
    Variant(
        "token_groups",
        Source("kernels/scalar/token_groups.cu"),
        _token_launches("token_groups"),
        parent="compact_page_map",
        note="16 threads score a token; K and V stream through shared memory as they lie",
    ),
    Variant(
        "token_ahead",
        Source("kernels/scalar/token_ahead.cu"),
        _token_launches("token_ahead", wide_ring=65_536, blocks=264),
        parent="token_groups",
        note="shared memory is read one step ahead; the heads of few partitions are shared out over blocks",
    ),
    Variant(
        "head_halves",
        Source("kernels/scalar/head_halves.cu"),
        _token_launches("head_halves", wide_ring=65_536, blocks=264, padding=16),
        parent="token_ahead",
        note="in PV half of a warp's lanes have half of the heads, and read half of the weights",
    ),
    _by_head("pv_unroll4", "four V loads are issued before their four fmas"),
    _by_head("pv_prefetch", "V is loaded one token ahead of its fma"),
)
