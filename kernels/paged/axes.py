"""The axes of a paged operator, and the buffers that hold its inputs."""

from audit.spec import Axis, Buffer, Case

PAGES = (16, 800, 848, 1616, 1648, 1728, 3296, 3456)
CANARY = 0
"""The physical page that no table names: NaN throughout. It stands behind every table, and a table padded with
zeros would name it too."""


def axes(rows: tuple[int, ...], capacity: int) -> tuple[Axis, ...]:
    """rows: query rows; heads: query heads that share the KV head; dim: head size; context and page in tokens."""
    return (
        Axis("rows", default=rows[-1], values=rows),
        Axis("heads", default=6, values=(3, 6)),
        Axis("dim", default=256, values=(64, 256)),
        Axis("context", default=129, at_least=1, at_most=capacity),
        Axis("page", default=16, values=PAGES),
    )


def table_entries(case: Case) -> int:
    """Pages that the context fills: the exact size of the table."""
    return int(-(-case.context // case.page))


def physical_pages(case: Case) -> int:
    """The pages in use, the canary, and one stranger."""
    return table_entries(case) + 2


def input_buffers(case: Case) -> tuple[Buffer, ...]:
    """q, k, v, table and lengths of kernels/CONTRACT.md, in contiguous layout."""
    storage = f"page={physical_pages(case)} slot={case.page} kv_head=1 dim"
    return (
        Buffer("q", "f16", f"row={case.rows} head={case.heads} dim", "in"),
        Buffer("k", "e4m3", storage, "in"),
        Buffer("v", "e4m3", storage, "in"),
        Buffer(
            "table",
            "i32",
            f"sequence=1 entry={table_entries(case)}",
            "in",
            behind=CANARY.to_bytes(4, "little"),
        ),
        Buffer("lengths", "i32", f"row={case.rows}", "in"),
    )
