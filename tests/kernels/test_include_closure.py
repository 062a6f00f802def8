"""What a reader of `piped_roles` must open stays bounded, and no kernel outside `closed/` includes a closed header."""

from __future__ import annotations

from pathlib import Path

import pytest

from audit.project import find_project

from .include_closure import include_closure

ROOT = Path(__file__).resolve().parents[2]
PROJECT = find_project(ROOT)
MOST_LINES, MOST_FILES = 1_150, 13
KEPT = [
    pytest.param(variant.code.path, id=f"{operator.name}-{variant.name}")
    for operator in PROJECT.operators.values()
    for variant in operator.variants
    if variant.status != "closed"
]


def test_files_that_are_included_twice_count_once(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "k.cu").write_text('#include "a.cuh"\n#include "shared/b.cuh"\n#include "audit_copy.h"\n')
    (tmp_path / "a.cuh").write_text('#include "shared/b.cuh"\n// #include "unused.cuh"\n')
    (tmp_path / "shared/b.cuh").write_text('#include <cuda_fp16.h>\n#include "../a.cuh"\n\n')
    (tmp_path / "unused.cuh").write_text("\n")
    closure = include_closure(tmp_path / "k.cu")
    assert {path.name: lines for path, lines in closure.items()} == {"k.cu": 3, "a.cuh": 2, "b.cuh": 3}


def test_piped_roles_takes_few_files_and_lines_to_read() -> None:
    closure = include_closure(ROOT / PROJECT.operators["grouped"].variant("piped_roles").code.path)
    assert {"piped_roles.cuh", "block.cuh", "arithmetic.cuh"} <= {path.name for path in closure}
    assert len(closure) <= MOST_FILES
    assert sum(closure.values()) <= MOST_LINES


@pytest.mark.parametrize("source", KEPT)
def test_no_kept_variant_includes_a_closed_header(source: str) -> None:
    assert not [path for path in include_closure(ROOT / source) if path.parent.name == "closed"]
