"""The scalar operator in FP64: `attention` over its partitions."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .array_library import NUMPY, Array64, ArrayLibrary
from .attention import AttentionFP64, attention_fp64
from .splits import CAPACITY_PARTITIONS, PARTITION, partitions, total_of
from .underflow import scalar_loss


@dataclass(frozen=True, eq=False)
class ScalarFP64(AttentionFP64):
    """`AttentionFP64` with one row and 256 parts: the partitions."""

    @staticmethod
    def accumulation(seen: Array64) -> Array64:
        """4 + sqrt(n), n the tokens that one chain of PV adds up: at most a partition's."""
        return np.asarray(4 + np.sqrt(np.minimum(seen, PARTITION)))


def scalar_fp64(
    q: NDArray[np.float16],
    k: NDArray[np.uint8],
    v: NDArray[np.uint8],
    table: NDArray[np.int32],
    lengths: NDArray[np.int32],
    *,
    scale: np.float32,
    k_scale: np.float32,
    v_scale: np.float32,
    library: ArrayLibrary = NUMPY,
) -> ScalarFP64:
    """FP64 of q f16[1, G, D] over k, v u8[pages, page, 1, D] through table i32[1, n]; lengths i32[1].

    The inputs must lie in the contract's domain (`domain.check_domain`). Beside the result it holds 8*G*total bytes
    of scores and some 30 MiB. Raises what `attention_fp64` does.
    """
    return ScalarFP64(
        **attention_fp64(
            *(q, k, v, table, lengths),
            scale=scale,
            k_scale=k_scale,
            v_scale=v_scale,
            parts=partitions(total_of(lengths)),
            capacity=CAPACITY_PARTITIONS,
            loss=scalar_loss,
            library=library,
        )
    )
