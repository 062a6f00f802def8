"""No byte around a buffer can be touched unseen: guards fill its mapping, and margins surround it."""

from __future__ import annotations

from pathlib import Path

import pytest

from .projects import audit, make, results

MIB, GIB = 1 << 20, 1 << 30
SIZE = 160  # bytes of x and of y
CHANGE = "{{ volatile char* at = (volatile char*)({of}) + {where}ll; if (i == 0) *at = *at ^ 1; }}"
READ = "{{ volatile char* at = (volatile char*)({of}) + {where}ll; if (i == 0 && *at == 77) value = 0; }}"


def words(where: int) -> str:
    return f"{-where} bytes before the start of " if where < 0 else f"{where - SIZE} bytes past the end of "


@pytest.mark.parametrize("of", ["x", "y"])
@pytest.mark.parametrize("where", [-1, -4096, SIZE, SIZE + 4095, SIZE + 4096, 8191 - 4096])
def test_a_byte_inside_the_mapping_is_guarded(tmp_path: Path, of: str, where: int) -> None:
    """From the page in front to the end of the last page: the data begin at byte 4,096 of it."""
    take = CHANGE.format(of=of, where=where)
    found = results(audit(make(tmp_path / "project", "f32", take)), "fail")
    assert f"{words(where)}{of} ({SIZE} bytes)" in found["guards"].detail


@pytest.mark.parametrize("access", [CHANGE, READ], ids=["change", "read"])
@pytest.mark.parametrize(
    "where", [-4097, SIZE + 8192, MIB, -MIB, 512 * MIB, -512 * MIB, GIB], ids=lambda where: f"{where:+}"
)
def test_an_access_outside_the_mapping_ends_the_program(tmp_path: Path, access: str, where: int) -> None:
    take = access.format(of="y", where=where)
    found = results(audit(make(tmp_path / "project", "f32", take)), "fail")
    assert f"{words(where)}y.bin" in found["completion"].detail
