"""Paged storage of K and V: the layout of a page, and the physical pages of the context.

In every layout a storage is u8 [physical pages, page stride], C-contiguous. Layouts differ in where a token lies:

    contiguous   storages k and v, each page [page, 1, D]
    padded       the same with 8 bytes after every token of K and 8 more after every page, and 24 of V: a kernel that
                 takes a stride of K for one of V meets NaN
    interleaved  one storage kv, each page [2, page, 1, D], K before V: the layout of a real cache

Storage without a token of the context is NaN, so that a result that uses it shows. Placements:

    near         the pages of the context are the first ones
    far          pages lie beyond 2^31 and beyond 2^32 bytes in turn, more than 2^31 bytes from one to the next. A page
                 offset that wraps at 32 bits falls into NaN, or before the storage; the rest is a hole in a file
"""

from collections.abc import Iterator

import numpy as np

from audit import Array, At, Buffer, Case, Inputs, sparse

LAYOUTS = ("contiguous", "padded", "interleaved")
PLACEMENTS = ("near", "far")
CANARY = 0
"""The physical page that no table names; it is all NaN. Its number follows every table in memory, and a table padded
with zeros would name it too."""
E4M3_NAN = 0x7F
_PADS = {"k": 8, "v": 24}  # bytes; odd multiples of 8, as strides may be


def table_entries(case: Case) -> int:
    """Pages that the context occupies: the exact size of the table."""
    return int(-(-case.context // case.page))


def token_stride(case: Case, part: str) -> int:
    """Bytes from one token of K or V (part `k` or `v`) to the next in its page."""
    return int(case.dim + (_PADS[part] if case.layout == "padded" else 0))


def page_stride(case: Case, part: str) -> int:
    """Bytes from one physical page of K or V to the next."""
    tokens = case.page * token_stride(case, part)
    return int({"contiguous": tokens, "padded": tokens + _PADS[part], "interleaved": 2 * tokens}[case.layout])


def physical_pages(case: Case) -> int:
    """Pages of a storage."""
    return max(pages.stop for pages in (*_of_context(case), *_unnamed_pages(case, "k"), *_unnamed_pages(case, "v")))


def storage_buffers(case: Case) -> tuple[Buffer, ...]:
    """The storages, their base shifted by `base` bytes."""
    pages = f"page={physical_pages(case)}"

    def dims(name: str) -> str:
        if case.layout == "padded":
            return f"{pages} byte={page_stride(case, name)}"
        part = "part=2 " if case.layout == "interleaved" else ""
        return f"{pages} {part}slot={case.page} kv_head=1 dim"

    return tuple(Buffer(name, "e4m3", dims(name), "in", offset=case.base) for name in dict(_origins(case)))


def addresses(case: Case) -> tuple[At, At]:
    """Launch arguments: the first token of physical page 0 of K and of V."""
    k, v = _origins(case)
    return At(*k), At(*v)


def strides(case: Case) -> tuple[np.int64, np.int64, np.int64, np.int64]:
    """Launch arguments, in bytes: page and token of K, page and token of V."""
    k, v = ((np.int64(page_stride(case, part)), np.int64(token_stride(case, part))) for part in "kv")
    return *k, *v


def views(case: Case, inputs: Inputs) -> tuple[Array, Array]:
    """K and V in the form of the contract, u8 [physical pages, page, 1, D]: strided views of the storages."""
    shape = (physical_pages(case), case.page, 1, case.dim)
    k, v = (
        np.ndarray(
            shape,
            np.uint8,
            np.asarray(inputs[name]).reshape(-1),
            start,
            (page_stride(case, part), token_stride(case, part), case.dim, 1),
        )
        for part, (name, start) in zip("kv", _origins(case), strict=True)
    )
    return k, v


def draw_table(case: Case, rng: np.random.Generator) -> Array:
    """i32 [1, entries]: a distinct physical page for each page of the context, in random order."""
    regions = [rng.permutation(np.array(pages, np.int32)) for pages in _of_context(case)]
    table = np.empty(table_entries(case), np.int32)
    for first, pages in enumerate(regions):
        entries = table[first :: len(regions)]
        entries[:] = pages[: entries.size]
    return table[None]


def empty_storages(case: Case) -> dict[str, Array]:
    """The storages without tokens: NaN; where they are far, holes except in the pages that a kernel might read."""
    storages: dict[str, Array] = {}
    for buffer in storage_buffers(case):
        shape = buffer.shape(case)
        if case.placement == "near":
            storages[buffer.name] = np.full(shape, E4M3_NAN, np.uint8)
            continue
        storages[buffer.name] = sparse.zeros(shape)
        by_page = storages[buffer.name].reshape(shape[0], -1)
        part = "v" if buffer.name == "v" else "k"
        for pages in (*_of_context(case), *_unnamed_pages(case, part)):
            by_page[pages.start : pages.stop] = E4M3_NAN
    return storages


def _origins(case: Case) -> tuple[tuple[str, int], tuple[str, int]]:
    """(buffer, byte offset) of the first token of K and of V."""
    if case.layout == "interleaved":
        return ("kv", 0), ("kv", case.page * token_stride(case, "k"))
    return ("k", 0), ("v", 0)


def _of_context(case: Case) -> tuple[range, ...]:
    """Pages from which the table is drawn, from one region and the next in turn."""
    entries = table_entries(case)
    if case.placement == "near":
        return (range(CANARY + 1, entries + 2),)  # one more than needed, which no table names
    low, high = entries // 2, entries - entries // 2
    least = min(page_stride(case, part) for part in "kv")
    beyond_31, beyond_32 = (-(-(2**bits) // least) for bits in (31, 32))
    high_start = beyond_32 + low + 1  # more than 2^31 bytes from all of the low region
    return range(high_start, high_start + high), range(beyond_31, beyond_31 + low)


def _unnamed_pages(case: Case, part: str) -> Iterator[range]:
    """Pages that no table names and that are NaN, including the canary."""
    yield range(CANARY, CANARY + 1)
    if case.placement == "near":
        return
    high, stride = _of_context(case)[0], page_stride(case, part)
    first = high.start * stride % 2**32 // stride  # where the offsets of the high region fall, modulo 2^32
    yield range(first, first + len(high) + 1)
    for pages in _of_context(case):
        yield range(pages.stop, pages.stop + 1)
