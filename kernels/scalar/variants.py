"""The variants of the scalar operator, each with its parent and its launches."""

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
    return Variant(name, Source(f"kernels/scalar/{name}.cu"), launches, parent, "admitted", note)


VARIANTS = (
    Variant(
        "control",
        Source("kernels/scalar/control.cu"),
        _launches("control", block_a_head=True),
        status="control",
        note="one block a head of a partition",
    ),
    _derived("shared_kv", "control", "decoded K and V shared by the heads"),
    _derived("lookup", "shared_kv", "e4m3 decoded by a 256-entry table in shared memory"),
    _derived("compact_page_map", "lookup", "two page numbers a partition; 4,096 bytes reserved", shared_bytes=4096),
)
