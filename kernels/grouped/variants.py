"""The variants of the grouped operator, each with its parent and its launches."""

from collections.abc import Callable

from audit.spec import Case, Launch, Source, Variant

from ..paged.storage import addresses, strides

COMPILED_PAGES = (1648, 3296)
"""Page sizes that the page-specialized variants have as constants."""
_TILE_ROWS, _ROW_SLOTS, _SPLITS = 16, 8, 80
_SCALES = ("scale", "k_scale", "v_scale")


def _launches(
    name: str,
    threads: int,
    row_tiles: Callable[[Case], int],
    shared_bytes: Callable[[Case], int],
    *,
    by_page: bool = False,
) -> Callable[[Case], tuple[Launch, ...]]:
    """The two launches of a variant: every split, then the merge. Grids never depend on the lengths."""

    def launches(case: Case) -> tuple[Launch, ...]:
        shape = f"{case.heads}, {case.dim}"
        page = f", {case.page if case.page in COMPILED_PAGES else 0}" if by_page else ""
        inputs = ("q", *addresses(case), "table", "lengths", case.rows, case.page, *strides(case), *_SCALES)
        return (
            Launch(
                f"grouped_{name}_splits<{shape}{page}>",
                (_SPLITS, row_tiles(case)),
                (threads,),
                shared_bytes(case),
                (*inputs, "partial", "lse"),
            ),
            Launch(
                f"grouped_{name}_merge<{shape}>",
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


def _split_bytes(case: Case, row_tiles: int, warps: int) -> int:
    """sizeof SplitMemory in panels.cuh; splits.cuh asserts it."""
    panels = 2 * (_TILE_ROWS * row_tiles + 2 * 32) * (case.dim + 8)
    return int(panels + _TILE_ROWS * row_tiles * (4 * (32 + 8) + 4 * (32 + 4) + 76) + 1280 * warps)


def _row_tiles(case: Case) -> int:
    return _tiles(case.rows * case.heads)


def _one_block(name: str, parent: str, note: str, *, by_page: bool = True) -> Variant:
    """A variant whose block serves every row and head of a split."""

    def shared_bytes(case: Case) -> int:
        return _split_bytes(case, _tiles(_ROW_SLOTS * case.heads), 8)

    launches = _launches(name, 256, lambda _case: 1, shared_bytes, by_page=by_page)
    return Variant(name, Source(f"kernels/grouped/{name}.cu"), launches, parent, "admitted", note)


VARIANTS = (
    Variant(
        "control",
        Source("kernels/grouped/control.cu"),
        _launches("control", 128, _row_tiles, _control_bytes),
        status="control",
        note="one block for each 16-row tile of a split, each reading K and V again; scalar loads",
    ),
    Variant(
        "vector_loads",
        Source("kernels/grouped/vector_loads.cu"),
        _launches("vector_loads", 128, _row_tiles, lambda case: _split_bytes(case, 1, 4)),
        parent="control",
        status="admitted",
        note="16-byte loads where strides and base allow, 8-byte or single bytes otherwise",
    ),
    _one_block("shared_kv", "vector_loads", "one block serves all heads: K and V are read once", by_page=False),
    _one_block("page_specialized", "shared_kv", "page size a compile-time constant (1648, 3296)"),
    _one_block("ordered_qk_pv", "page_specialized", "two K16 products in flight; V fragments reused over rows"),
    _one_block("visible_tile", "ordered_qk_pv", "invisible tiles and padded row tiles do no work"),
)
