"""The variants of the grouped operator, each with its parent and its launches."""

from collections.abc import Callable

from audit.spec import Case, Launch, Source, Variant

from ..paged.storage import addresses, strides

_TILE_ROWS, _ROW_SLOTS, _SPLITS = 16, 8, 80
_SCALES = ("scale", "k_scale", "v_scale")


def _launches(
    name: str, threads: int, row_tiles: Callable[[Case], int], shared_bytes: Callable[[Case], int]
) -> Callable[[Case], tuple[Launch, ...]]:
    """The two launches of a variant: every split, then the merge. Grids never depend on the lengths."""

    def launches(case: Case) -> tuple[Launch, ...]:
        arguments = f"<{case.heads}, {case.dim}>"
        inputs = ("q", *addresses(case), "table", "lengths", case.rows, case.page, *strides(case), *_SCALES)
        return (
            Launch(
                f"grouped_{name}_splits{arguments}",
                (_SPLITS, row_tiles(case)),
                (threads,),
                shared_bytes(case),
                (*inputs, "partial", "lse"),
            ),
            Launch(
                f"grouped_{name}_merge{arguments}",
                (case.rows * case.heads,),
                (128,),
                0,
                ("lengths", case.rows, "partial", "lse", "out"),
            ),
        )

    return launches


def _tiles(rows: int) -> int:
    return -(-rows // _TILE_ROWS)


def _control_bytes(case: Case) -> int:
    """sizeof SplitMemory in control.cu, which asserts it."""
    dim = case.dim
    halves = 2 * (_TILE_ROWS + 3 * 32) * (dim + 8) + 4 * _TILE_ROWS * (32 + 8)
    return int(halves + 4 * _TILE_ROWS * (32 + 4) + 8 * _TILE_ROWS * (dim + 4) + 16 * _TILE_ROWS)


def _shared_kv_bytes(case: Case) -> int:
    """sizeof SplitMemory in splits.cuh, which asserts it."""
    tiles, dim, warps = _tiles(_ROW_SLOTS * case.heads), case.dim, 8
    halves = 2 * (_TILE_ROWS * tiles + 2 * 32) * (dim + 8)
    return int(halves + _TILE_ROWS * tiles * (4 * (32 + 8) + 4 * (32 + 4) + 76) + 1280 * warps)


VARIANTS = (
    Variant(
        "control",
        Source("kernels/grouped/control.cu"),
        _launches("control", 128, lambda case: _tiles(case.rows * case.heads), _control_bytes),
        status="control",
        note="one block for each 16-row tile of a split, each reading K and V again; scalar loads",
    ),
    Variant(
        "shared_kv",
        Source("kernels/grouped/shared_kv.cu"),
        _launches("shared_kv", 256, lambda _case: 1, _shared_kv_bytes),
        parent="control",
        status="admitted",
        note="one block serves all heads and rows: each K and V byte is read once",
    ),
)
