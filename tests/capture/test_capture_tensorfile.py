"""The bounded safetensors reader and the writer whose bytes repeat."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from audit.capture.tensorfile import ALIGNMENT, MAX_HEADER_BYTES, open_inside, read_header, serialise
from audit.errors import CaptureError

TENSORS = {
    "b": ("F16", (2, 3), np.arange(6, dtype="<f2").tobytes()),
    "a": ("U8", (5,), bytes(range(5))),
}


def test_the_same_tensors_give_the_same_file_with_an_aligned_data_area() -> None:
    data, offsets = serialise(TENSORS)
    assert data == serialise(TENSORS)[0]
    assert offsets == {"b": 0, "a": 12}
    assert (len(data) - 17) % ALIGNMENT == 0


def test_what_is_written_is_read_here_and_by_the_library(tmp_path: Path) -> None:
    data, _ = serialise(TENSORS)
    (tmp_path / "x").write_bytes(data)
    with open_inside(tmp_path, "x", 1 << 20) as stream:
        file = read_header(stream, "x")
        for key, (dtype, shape, payload) in TENSORS.items():
            assert (file.entries[key].dtype, file.entries[key].shape) == (dtype, shape)
            assert file.read(key) == payload
    assert sorted(safetensors.numpy.load(data)) == ["a", "b"]


def test_a_file_of_the_library_is_read(tmp_path: Path) -> None:
    array = np.arange(12, dtype=np.uint8).reshape(3, 4)
    safetensors.numpy.save_file({"x": array}, tmp_path / "x", metadata={"format": "np"})
    with open_inside(tmp_path, "x", 1 << 20) as stream:
        assert read_header(stream, "x").read("x") == array.tobytes()


def test_a_payload_that_does_not_fit_its_shape_is_not_written() -> None:
    with pytest.raises(ValueError, match=r"\(2, 3\) of F16"):
        serialise({"b": ("F16", (2, 3), b"short")})


def test_a_sparse_header_of_the_largest_size_is_bounded(tmp_path: Path) -> None:
    with open(tmp_path / "x", "wb") as stream:
        stream.write((MAX_HEADER_BYTES + 1).to_bytes(8, "little"))
        stream.truncate(8 << 30)
    with open_inside(tmp_path, "x", 64 << 30) as stream, pytest.raises(CaptureError, match="header length"):
        read_header(stream, "x")
    with pytest.raises(CaptureError, match="at most 100 bytes"):
        open_inside(tmp_path, "x", 100)


def test_a_file_that_shrinks_while_read_is_refused(tmp_path: Path) -> None:
    data, _ = serialise(TENSORS)
    (tmp_path / "x").write_bytes(data)
    with open_inside(tmp_path, "x", 1 << 20) as stream:
        file = read_header(stream, "x")
        with open(tmp_path / "x", "r+b") as other:
            other.truncate(len(data) - 5)
        stream.seek(0, 2)  # drops what the stream had buffered
        with pytest.raises(CaptureError, match=r"x: a: expected 5 bytes"):
            file.read("a")
