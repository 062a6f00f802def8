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
    merge_threads: Callable[[Case], int] = lambda _case: 128,
    merge_parts: Callable[[Case], int] = lambda _case: 1,
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
                (case.rows * case.heads, merge_parts(case)),
                (merge_threads(case),),
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


def _split_bytes(case: Case, row_tiles: int, warps: int, panel_tiles: int = 1, *, in_registers: bool = False) -> int:
    """sizeof SplitMemory in panels.cuh; splits.cuh asserts it."""
    tokens = 32 * panel_tiles
    panels = 2 * (_TILE_ROWS * row_tiles + 2 * tokens) * (case.dim + 8)
    state = 12 if in_registers else 12 + 64 * panel_tiles
    slot = 4 * (tokens + 8) + 4 * (tokens + 4) + state
    return int(panels + _TILE_ROWS * row_tiles * slot + 1280 * warps)


def _chunk_bytes(case: Case) -> int:
    """sizeof ChunkMemory in direct/chunk.cuh; direct/split.cuh asserts it."""
    return int(3 * 128 * (case.dim + 16) + 8960)


def _role_bytes(case: Case) -> int:
    """sizeof RoleMemory in direct/roles.cuh, which asserts it."""
    return int((2 * 128 + 2 * 32) * (case.dim + 16) + 2 * 8704 + 512 + 32 * case.dim + 16)


def _lean_bytes(case: Case) -> int:
    """sizeof LeanMemory in direct/lean.cuh, which asserts it."""
    return int((128 + 6 * 32) * case.dim + 2 * 8704 + 256 + 32 * case.dim + 16)


def _piped_bytes(case: Case) -> int:
    """sizeof PipedMemory in direct/piped.cuh, which asserts it."""
    return int((128 + 6 * 32) * case.dim + 2 * 8704 + 2 * 256 + 32 * case.dim + 96)


def _woven_bytes(case: Case) -> int:
    """sizeof WovenMemory in direct/woven.cuh, which asserts it."""
    return int((128 + 6 * 32) * case.dim + 4 * (2048 + 64 + 1024) + 512 + 32 * case.dim)


def _row_tiles(case: Case) -> int:
    return _tiles(case.rows * case.heads)


def _one_block(
    name: str,
    parent: str,
    note: str,
    *,
    by_page: bool = True,
    panel_tiles: int = 1,
    in_registers: bool = False,
) -> Variant:
    """A variant whose block serves every row and head of a split."""

    def shared_bytes(case: Case) -> int:
        row_tiles = _tiles(_ROW_SLOTS * case.heads)
        return _split_bytes(case, row_tiles, 8, panel_tiles, in_registers=in_registers)

    launches = _launches(name, 256, lambda _case: 1, shared_bytes, by_page=by_page)
    return Variant(name, Source(f"kernels/grouped/{name}.cu"), launches, parent, note=note)


def _in_roles(name: str, parent: str, note: str, shared_bytes: Callable[[Case], int] = _role_bytes) -> Variant:
    """A variant whose block has warps in two roles."""
    launches = _launches(
        name,
        256,
        _row_tiles,
        shared_bytes,
        by_page=True,
        merge_threads=lambda _case: 64,
        merge_parts=lambda case: case.dim // 64,
    )
    return Variant(name, Source(f"kernels/grouped/{name}.cu"), launches, parent, note=note)


VARIANTS = (
    Variant(
        "control",
        Source("kernels/grouped/control.cu"),
        _launches("control", 128, _row_tiles, _control_bytes),
        note="one block for each 16-row tile of a split, each reading K and V again; scalar loads",
    ),
    Variant(
        "vector_loads",
        Source("kernels/grouped/vector_loads.cu"),
        _launches("vector_loads", 128, _row_tiles, lambda case: _split_bytes(case, 1, 4)),
        parent="control",
        note="16-byte loads where strides and base allow, 8-byte or single bytes otherwise",
    ),
    _one_block("shared_kv", "vector_loads", "one block serves all heads: K and V are read once", by_page=False),
    _one_block("page_specialized", "shared_kv", "page size a compile-time constant (1648, 3296)"),
    _one_block("ordered_qk_pv", "page_specialized", "two K16 products in flight; V fragments reused over rows"),
    _one_block("visible_tile", "ordered_qk_pv", "invisible tiles and padded row tiles do no work"),
    Variant(
        "direct_fragments",
        Source("kernels/grouped/direct_fragments.cu"),
        _launches("direct_fragments", 128, _row_tiles, _chunk_bytes, by_page=True, merge_threads=lambda case: case.dim),
        parent="visible_tile",
        note="e4m3 goes from its bytes into tensor-core registers; scores and numerator stay in registers",
    ),
    _in_roles(
        "warp_roles",
        "direct_fragments",
        "four warps of a block weigh (QK, softmax) one chunk ahead of the four that add (PV); q in shared memory",
    ),
    _in_roles("rolled_steps", "warp_roles", "the steps of QK are a loop, five at a time"),
    _in_roles("lean_roles", "warp_roles", "the weighing warps copy V too, in whole rows", _lean_bytes),
    _in_roles("even_roles", "lean_roles", "softmax ahead of the next QK: barriers halve the work", _lean_bytes),
    _in_roles("piped_roles", "rolled_steps", "tiles go through a ring with barriers of its own", _piped_bytes),
    _in_roles("woven_steps", "rolled_steps", "PV of a chunk between the steps of QK of the next one", _woven_bytes),
    _one_block("n64", "ordered_qk_pv", "two 32-token tiles loaded as one panel", panel_tiles=2),
    _one_block("register_softmax", "visible_tile", "row state in registers", in_registers=True),
    _one_block("m8n32_qk", "visible_tile", "QK by m8n32k16"),
    _one_block("operand_rotation", "visible_tile", "K is the left operand"),
    _one_block("fp64_sum", "visible_tile", "K16 products summed in FP64"),
)
