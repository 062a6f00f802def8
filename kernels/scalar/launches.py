"""The launches of scalar variants: entries, grids, and shared memory in bytes."""

import dataclasses
from collections.abc import Callable

from audit import Case, Launch, Variant

from ..paged.source import cuda_source
from ..paged.storage import addresses, strides

_PARTITIONS, _THREADS = 256, 256
_WORKSPACE = ("partial", "maximum", "sums")


def two_launches(
    name: str, *, block_a_head: bool = False, shared_bytes: int = 0
) -> Callable[[Case], tuple[Launch, ...]]:
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


def bytewise(name: str, parent: str, note: str, shared_bytes: int = 0) -> Variant:
    """A variant whose threads load K and V a byte at a time, one block for all heads of a partition."""
    launches = two_launches(name, shared_bytes=shared_bytes)
    return Variant(name, cuda_source(f"kernels/scalar/bytewise/{name}.cu"), launches, parent, note=note)


def streamed(
    name: str,
    parent: str,
    note: str,
    *,
    folder: str = "streamed",
    wide_stages: int = 49_152,
    blocks: int = _PARTITIONS,
    padding: int = 0,
) -> Variant:
    """Blocks of 128 threads stream K and V through shared memory; a block of the reducer has 32 dimensions.

    wide_stages: bytes of all stages where D is 256; padding: bytes behind the scores of a head. The shared memory is
    sizeof(GroupMemory).
    """

    def launches(case: Case) -> tuple[Launch, ...]:
        partitions, reducer = two_launches(name)(case)
        stages = wide_stages if case.dim == 256 else 49_152
        shared_bytes = stages + 1_024 + case.heads * (4_160 + padding + 2 * case.dim)
        return (
            dataclasses.replace(partitions, grid=(blocks,), block=(128,), shared_bytes=shared_bytes),
            dataclasses.replace(reducer, grid=(case.heads, case.dim // 32)),
        )

    return Variant(name, cuda_source(f"kernels/scalar/{folder}/{name}.cu"), launches, parent, note=note)
