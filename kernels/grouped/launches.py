"""The launches of grouped variants: entries, grids, and shared memory in bytes."""

from collections.abc import Callable

from audit import Case, Launch, Variant

from ..paged.source import cuda_source
from ..paged.storage import addresses, strides

COMPILED_PAGES = (1648, 3296)
"""Page sizes that the page-specialized variants have as constants."""
_TILE_ROWS, _ROW_SLOTS, _SPLITS = 16, 8, 80
_SCALES = ("scale", "k_scale", "v_scale")


def two_launches(
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


def row_tiles(case: Case) -> int:
    """16-row tiles that hold the rows and heads of the case."""
    return _tiles(case.rows * case.heads)


def _tiles(slots: int) -> int:
    return -(-slots // _TILE_ROWS)


def control_bytes(case: Case) -> int:
    """sizeof SplitMemory in control.cu, which asserts it."""
    dim = case.dim
    halves = 2 * (_TILE_ROWS + 3 * 32) * (dim + 8) + 4 * _TILE_ROWS * (32 + 8)
    return int(halves + 4 * _TILE_ROWS * (32 + 4) + 8 * _TILE_ROWS * (dim + 4) + 16 * _TILE_ROWS)


def split_bytes(case: Case, row_tiles: int, warps: int, panel_tiles: int = 1, *, in_registers: bool = False) -> int:
    """sizeof SplitMemory in staged/panels.cuh; staged/splits.cuh asserts it."""
    tokens = 32 * panel_tiles
    panels = 2 * (_TILE_ROWS * row_tiles + 2 * tokens) * (case.dim + 8)
    state = 12 if in_registers else 12 + 64 * panel_tiles
    slot = 4 * (tokens + 8) + 4 * (tokens + 4) + state
    return int(panels + _TILE_ROWS * row_tiles * slot + 1280 * warps)


def chunk_bytes(case: Case) -> int:
    """sizeof ChunkMemory in direct/direct_fragments.cuh, which asserts it."""
    return int(3 * 128 * (case.dim + 16) + 8960)


def role_bytes(case: Case) -> int:
    """sizeof RoleMemory in direct/warp_roles.cuh, which asserts it."""
    return int((2 * 128 + 2 * 32) * (case.dim + 16) + 2 * 8704 + 512 + 32 * case.dim + 16)


def piped_bytes(case: Case) -> int:
    """sizeof PipedMemory in direct/piped_roles.cuh, which asserts it."""
    return int((128 + 6 * 32) * case.dim + 2 * 8704 + 2 * 256 + 32 * case.dim + 96)


def one_block(
    name: str,
    parent: str,
    note: str,
    *,
    folder: str = "staged",
    by_page: bool = True,
    panel_tiles: int = 1,
    in_registers: bool = False,
) -> Variant:
    """A staged variant whose block serves every row and head of a split."""

    def shared_bytes(case: Case) -> int:
        row_tiles = _tiles(_ROW_SLOTS * case.heads)
        return split_bytes(case, row_tiles, 8, panel_tiles, in_registers=in_registers)

    launches = two_launches(name, 256, lambda _case: 1, shared_bytes, by_page=by_page)
    return Variant(name, cuda_source(f"kernels/grouped/{folder}/{name}.cu"), launches, parent, note=note)


def eight_warps(
    name: str, parent: str, note: str, shared_bytes: Callable[[Case], int], *, folder: str = "direct"
) -> Variant:
    """A direct variant whose block has eight warps and serves one row tile."""
    launches = two_launches(
        name,
        256,
        row_tiles,
        shared_bytes,
        by_page=True,
        merge_threads=lambda _case: 64,
        merge_parts=lambda case: case.dim // 64,
    )
    return Variant(name, cuda_source(f"kernels/grouped/{folder}/{name}.cu"), launches, parent, note=note)
