"""The GPU code of a variant, whatever its declaration names: a source, or a file that is compiled already."""

from __future__ import annotations

import threading
from functools import lru_cache
from pathlib import Path

from audit.compile.cubin_build import CubinBuild
from audit.compile.cuda import compile_cubin
from audit.compile.gpu_file import load_machine
from audit.compile.source_words import nvcc_words
from audit.errors import PlanError
from audit.spec import Binary, Machine, Variant

_turns: dict[object, threading.Lock] = {}  # one a cubin: cases that need the same one wait for the first to build it


def build_device(
    root: Path, variant: Variant, entries: tuple[str, ...], arch: str, *, line_info: bool = False
) -> CubinBuild:
    """The cubin of a variant with the kernels `entries`; a process builds each once.

    Raises PlanError for a program that only a CPU runs, and what `compile_cubin` and `load_machine` raise.
    """
    code = variant.code
    if isinstance(code, Binary):
        raise PlanError(
            f"variant {variant.name}: a frozen host program cannot run on a GPU; select other variants with --variant"
        )
    if isinstance(code, Machine):
        return load_machine(root, code, entries, arch)
    defines = tuple(code.defines.items())
    what = (root, code.path, defines, nvcc_words(code), code.also, entries, arch, line_info)
    with _turns.setdefault(what, threading.Lock()):
        return _compiled(*what)


@lru_cache(maxsize=64)
def _compiled(
    root: Path,
    path: str,
    defines: tuple[tuple[str, str], ...],
    flags: tuple[str, ...],
    also: tuple[str, ...],
    entries: tuple[str, ...],
    arch: str,
    line_info: bool,
) -> CubinBuild:
    return compile_cubin(
        root, root / path, entries, arch=arch, defines=dict(defines), flags=flags, also=also, line_info=line_info
    )
