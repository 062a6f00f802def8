"""Small inputs of the grouped operator, in permuted, interleaved pages whose dead storage is NaN."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from audit import formats

Array = np.ndarray
NAN_CODE = 0x7F


@dataclass(frozen=True, eq=False)
class PagedCase:
    q: Array
    k: Array
    v: Array
    table: Array
    lengths: Array
    scale: np.float32
    k_scale: np.float32
    v_scale: np.float32

    @property
    def arrays(self) -> tuple[Array, Array, Array, Array, Array]:
        return self.q, self.k, self.v, self.table, self.lengths

    @property
    def scales(self) -> dict[str, np.float32]:
        return {"scale": self.scale, "k_scale": self.k_scale, "v_scale": self.v_scale}

    def changed(self, **fields: Any) -> "PagedCase":
        return replace(self, **fields)

    def address(self, token: int) -> tuple[int, int]:
        """The physical page of a token and its position there."""
        page = self.k.shape[1]
        return int(self.table[0, token // page]), token % page


def paged_case(
    total: int,
    *,
    rows: int = 2,
    heads: int = 3,
    dims: int = 64,
    page: int = 16,
    seed: int = 0,
    query_size: float = 1.0,
    keys: Array | None = None,
    values: Array | None = None,
    lengths: Sequence[int] | None = None,
) -> PagedCase:
    """Normal q, k and v, or the given keys and values f32[total, dims]; live lengths unless given."""
    rng = np.random.default_rng(seed)
    q = (rng.normal(size=(rows, heads, dims)) * query_size).astype(np.float16)
    normal = rng.normal(size=(2, total, dims)).astype(np.float32)
    entries = max(1, -(-total // page))
    pages = entries + 2
    both = np.full((pages, 2, page, 1, dims), NAN_CODE, np.uint8)
    table = rng.permutation(pages)[:entries].astype(np.int32)
    token = np.arange(total)
    for side, given in enumerate((keys, values)):
        codes = formats.encode_e4m3(normal[side] if given is None else given)
        both[table[token // page], side, token % page, 0] = codes
    live = [max(0, total - rows + 1 + row) for row in range(rows)]
    return PagedCase(
        q,
        both[:, 0],
        both[:, 1],
        table[None],
        np.array(live if lengths is None else lengths, np.int32),
        *np.array([0.0773, 0.7, 1.25], np.float32),
    )
