"""The axes of a paged operator, and the buffers that hold its inputs."""

from audit import Axis, Buffer, Case

from .storage import CANARY, LAYOUTS, PLACEMENTS, storage_buffers, table_entries

TABLE_TOKENS = 266_240
LENGTHS = ("live", "replayed")


def axes(rows: tuple[int, ...], capacity: int) -> tuple[Axis, ...]:
    """The axes along which the cases of an operator differ.

    rows: query rows; heads: query heads that share the KV head; dim: head size; context and page in tokens;
    layout and placement: see `storage`; q_offset: offset of q from an aligned address, in halves; base: offset of the
    storages of K and V from one, in bytes; lengths: live, where the longest row sees the context in every step, or
    replayed, as `inputs.steps` describes.
    """
    return (
        Axis("rows", default=rows[-1], values=rows),
        Axis("heads", default=6, values=(3, 6)),
        Axis("dim", default=256, values=(64, 256)),
        Axis("context", default=129, at_least=1, at_most=capacity),
        Axis("page", default=16, at_least=16, at_most=TABLE_TOKENS, multiple_of=16),
        Axis("layout", default="contiguous", values=LAYOUTS, quiet=True),
        Axis("placement", default="near", values=PLACEMENTS, quiet=True),
        Axis("q_offset", default=0, values=(0, 1, 4, 7), quiet=True),
        Axis("base", default=0, values=(0, 8, 16), quiet=True),
        Axis("lengths", default="live", values=LENGTHS, quiet=True),
    )


def input_buffers(case: Case) -> tuple[Buffer, ...]:
    """q, the storages of K and V, table and lengths of kernels/CONTRACT.md."""
    return (
        Buffer("q", "f16", f"row={case.rows} head={case.heads} dim", "in", offset=2 * case.q_offset),
        *storage_buffers(case),
        Buffer(
            "table",
            "i32",
            f"sequence=1 entry={table_entries(case)}",
            "in",
            behind=CANARY.to_bytes(4, "little"),
        ),
        Buffer("lengths", "i32", f"row={case.rows}", "in"),
    )
