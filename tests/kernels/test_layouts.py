"""Kernels read K and V in every layout that the contract admits; kernels that assume more are caught."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from audit.project import find_project

ROOT = Path(__file__).resolve().parents[2]
LAYOUTS = ("contiguous", "padded", "interleaved")
TOKEN_BYTES = "storage.bytes + physical_page * storage.page_stride + position * storage.token_stride"


def words(**axes: int | str) -> list[str]:
    """A narrowed plan: 3 rows and heads, 64 dimensions, 129 tokens in nine pages of 16, or what `axes` say."""
    chosen = {"heads": 3, "dim": 64, "context": 129, **axes}
    options = [word for name, value in chosen.items() for word in ("--axis", f"{name}={value}")]
    return ["run", "--shape", "q3", "--json", *options]


@pytest.fixture
def planted(own_project: Path) -> Callable[[str], Path]:
    """The project with another expression for a token's address, in code that `control` does not share."""

    def plant(address: str) -> Path:
        source = own_project / "kernels/paged/inputs.cuh"
        text = source.read_text()
        assert text.count(TOKEN_BYTES) == 1
        source.write_text(text.replace(TOKEN_BYTES, address))
        return own_project

    return plant


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_passes_all_checks(audit: Callable, tmp_path: Path, layout: str) -> None:
    several = [word for axis in ("base=8", "base=16", "q_offset=1", "q_offset=7") for word in ("--axis", axis)]
    ran = audit(ROOT, *words(layout=layout), *several, "--out", str(tmp_path))
    assert ran.code == 0, ran.out + ran.err
    usual = ("control", "admitted")
    variants = [variant.name for variant in find_project(ROOT).operators["grouped"].variants if variant.status in usual]
    assert ran.json["planned"] == ran.json["passed"] == 4 * len(variants)
    assert {"control", "shared_kv"} <= set(variants)


@pytest.mark.parametrize(
    "axes",
    [
        {"layout": "interleaved", "page": 3296, "context": 3297, "q_offset": 4},
        {"layout": "padded", "page": 48, "context": 97, "heads": 6, "dim": 256},
        {"placement": "far"},
        {"placement": "far", "layout": "padded", "base": 8, "q_offset": 7},
        {"placement": "far", "layout": "interleaved", "page": 1648, "context": 1649},
    ],
    ids=str,
)
def test_layouts_and_placements_together(audit: Callable, tmp_path: Path, axes: dict[str, int | str]) -> None:
    ran = audit(ROOT, *words(**axes), "--out", str(tmp_path))
    assert ran.code == 0, ran.out + ran.err
    assert ran.json["planned"] == ran.json["passed"] >= 2


@pytest.mark.parametrize(
    ("address", "axes"),
    [
        (TOKEN_BYTES.replace("storage.token_stride", "64"), {"layout": "padded"}),
        (TOKEN_BYTES.replace("storage.page_stride", "(16 * storage.token_stride)"), {"layout": "interleaved"}),
        (TOKEN_BYTES.replace("physical_page * storage.page_stride", "int(physical_page * storage.page_stride)"),
         {"placement": "far"}),
        (TOKEN_BYTES.replace("physical_page * storage.page_stride", "unsigned(physical_page * storage.page_stride)"),
         {"placement": "far"}),
    ],
    ids=["token stride D", "page stride of one storage", "signed 32 bits", "unsigned 32 bits"],
)  # fmt: skip
def test_an_address_that_assumes_too_much_is_caught(
    audit: Callable, planted: Callable[[str], Path], address: str, axes: dict[str, str]
) -> None:
    project = planted(address)
    usual = audit(project, *words(), "--variant", "shared_kv")
    assert usual.code == 0, usual.out + usual.err  # the default layout and placement do not show it
    ran = audit(project, *words(**axes), "--variant", "shared_kv")
    assert ran.code == 1, ran.out + ran.err
    assert ran.failed() & {"completion", "finite", "bytes", "error"}
    failed = {result["variant"] for result in ran.results() if result["verdict"] == "fail"}
    assert "shared_kv" in failed
    assert "control" not in failed
