"""Which `__constant__` variables a source leaves without contents."""

from __future__ import annotations

import pytest

from audit.compile.unset_constants import unset_constants


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("__constant__ float a[16];", ("a",)),
        ("static __constant__ const int b[2][N + 1];\n__constant__ T c;", ("b", "c")),
        ("__constant__ float d[2] = {1, 2}; __constant__ int e{3}; __constant__ int f(4);", ()),
        ("extern __constant__ float g[4];", ()),
        ("// __constant__ float h;\n/* __constant__ int i; */", ()),
        ("struct __align__(8) S { int x; }; __constant__ S j;", ("j",)),
    ],
)
def test_variables_without_an_initialiser(text: str, names: tuple[str, ...]) -> None:
    assert unset_constants([text]) == names
