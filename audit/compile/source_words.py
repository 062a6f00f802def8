"""What a `Source` says of its compilation, as words for nvcc and for the CPU's compiler.

nvcc fuses a multiplication and an addition by default (`-fmad=true`: "CUDA Compiler Driver NVCC"), so the CPU does too
where nothing says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from audit.spec import Source

_FMAD = re.compile(r"--?fmad(?:=(true|false))?")
_FAST_MATH = frozenset(("--use_fast_math", "-use_fast_math"))
_STANDARD = re.compile(r"--?std(?:=c\+\+(\d\d))?")
_LEAST_STANDARD = 17  # what the headers for the CPU are written in


def nvcc_words(source: Source) -> tuple[str, ...]:
    """All declared words for nvcc, and for NVRTC."""
    return (
        *(f"-I{folder}" for folder in source.include),
        *((f"-std={source.std}",) if source.std else ()),
        *source.flags,
    )


def is_contracted(words: Sequence[str]) -> bool:
    """Whether a compiler may fuse a multiplication and an addition."""
    found = True
    for at, word in enumerate(words):
        if match := _FMAD.fullmatch(word):
            found = (match[1] or (words[at + 1] if at + 1 < len(words) else "true")) == "true"
    return found


def has_fast_math(words: Sequence[str]) -> bool:
    """Whether `--use_fast_math` replaces functions, divisions and square roots by faster ones."""
    return not _FAST_MATH.isdisjoint(words)


def host_folders(folders: Sequence[str], tree: Path, root: Path) -> Iterator[str]:
    """Folders of headers for the CPU's compiler: those of the project in its copy."""
    for folder in folders:
        inside = (root / folder).resolve().is_relative_to(root.resolve())
        yield f"-I{tree / folder if inside else Path(folder)}"


def host_standard(words: Sequence[str]) -> tuple[str, ...]:
    """The C++ standard for the CPU's compiler; none where the default holds, or an older one is declared."""
    chosen = ""
    for at, word in enumerate(words):
        if match := _STANDARD.fullmatch(word):
            chosen = match[1] or (words[at + 1] if at + 1 < len(words) else "").removeprefix("c++")
    return (f"-std=c++{chosen}",) if chosen.isdigit() and _LEAST_STANDARD < int(chosen) < 90 else ()


def host_contraction(words: Sequence[str]) -> tuple[str, ...]:
    """The flags that let the CPU's compiler fuse what nvcc may fuse."""
    return ("-ffp-contract=fast", "-DSIMT_CONTRACT") if is_contracted(words) else ()
