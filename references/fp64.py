"""The grouped operator in FP64: `attention` over its splits."""

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .array_library import NUMPY, Array64, ArrayLibrary
from .attention import AttentionFP64, attention_fp64
from .splits import CAPACITY_SPLITS, splits, total_of
from .tensor_core import SM_90, TensorCore
from .underflow import grouped_loss


@dataclass(frozen=True, eq=False)
class GroupedFP64(AttentionFP64):
    """`AttentionFP64` with 80 parts: the splits."""

    @staticmethod
    def accumulation(seen: Array64) -> Array64:
        """4, whatever n."""
        return np.full_like(seen, 4)


def grouped_fp64(
    q: NDArray[np.float16],
    k: NDArray[np.uint8],
    v: NDArray[np.uint8],
    table: NDArray[np.int32],
    lengths: NDArray[np.int32],
    *,
    scale: np.float32,
    k_scale: np.float32,
    v_scale: np.float32,
    model: TensorCore = SM_90,
    library: ArrayLibrary = NUMPY,
) -> GroupedFP64:
    """FP64 of q f16[rows, G, D] over k, v u8[pages, page, 1, D] through table i32[1, n]; lengths i32[rows].

    The inputs must lie in the contract's domain (`domain.check_domain`). Only `loss` depends on the model.
    Beside the result it holds 8*rows*G*total bytes of scores and some 60 MiB. Raises what `attention_fp64` does.
    """
    return GroupedFP64(
        **attention_fp64(
            *(q, k, v, table, lengths),
            scale=scale,
            k_scale=k_scale,
            v_scale=v_scale,
            parts=splits(total_of(lengths)),
            capacity=CAPACITY_SPLITS,
            loss=functools.partial(grouped_loss, model=model),
            library=library,
        )
    )
