"""Whatever happens to the bytes of a set: it is refused, or what comes back is what was stored."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from audit.capture.store import Capture, CaptureStore
from audit.errors import CaptureError

ID = "small/layer11/rank1"
FILES = ("manifest.json", "layer11.safetensors", "text.txt")


@pytest.fixture
def intact(root: Path) -> tuple[Path, dict[str, bytes], Capture]:
    return root, {name: (root / "small" / name).read_bytes() for name in FILES}, CaptureStore(root).load(ID)


@st.composite
def damages(draw: st.DrawFn) -> tuple[str, int, int, int, bytes]:
    """File, offset (taken modulo its size), bits to flip, bytes to cut away, bytes to put in."""
    return (
        draw(st.sampled_from(FILES)),
        draw(st.integers(0, 1 << 20) | st.integers(0, 700)),
        draw(st.integers(0, 255)),
        draw(st.sampled_from([0, 0, 0, 1, 2, 64, 1 << 20])),
        draw(st.sampled_from([b"", b"", b"0", b"9", b",", b"\0", b"\xff", b"[[", b'"a":1,'])),
    )


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damage=damages())
def test_damage_is_refused_or_harmless(
    intact: tuple[Path, dict[str, bytes], Capture], damage: tuple[str, int, int, int, bytes]
) -> None:
    root, contents, good = intact
    name, offset, flip, cut, insert = damage
    data = bytearray(contents[name])
    at = offset % len(data)
    data[at] ^= flip
    data[at : at + cut] = insert
    (root / "small" / name).write_bytes(data)
    try:
        came = CaptureStore(root).load(ID)
    except CaptureError:
        pass
    else:
        assert came.scales == good.scales
        assert (came.layer, came.rank, came.tokens) == (good.layer, good.rank, good.tokens)
        for tensor, array in good.arrays.items():
            assert came.arrays[tensor].dtype == array.dtype
            assert np.array_equal(came.arrays[tensor].view(np.uint8), array.view(np.uint8))
    finally:
        (root / "small" / name).write_bytes(contents[name])
