"""Comparing a set with one recorded again: every difference is named, and equal sets have none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from audit.capture.compare import compare_sets
from audit.capture.publish import publish
from audit.capture.record import Recording
from audit.capture.store import CaptureStore
from audit.errors import CaptureError

Make = Callable[[int], Recording]


@pytest.fixture
def against(root: Path, tmp_path: Path) -> Callable[[Recording], list[str]]:
    def compared(made: Recording) -> list[str]:
        publish(tmp_path / "again" / "small", made.manifest, made.files)
        return [str(d) for d in compare_sets(CaptureStore(root), CaptureStore(tmp_path / "again"), "small")]

    return compared


def test_equal_sets_do_not_differ(against: Callable[[Recording], list[str]], recording: Make) -> None:
    made = recording(0)
    elsewhere = msgspec.structs.replace(made.manifest.environment, cpu_capability="AVX512")
    manifest = msgspec.structs.replace(made.manifest, environment=elsewhere)
    assert against(Recording(manifest, made.files)) == []


def test_every_payload_and_scale_that_differs_is_named(
    against: Callable[[Recording], list[str]], recording: Make
) -> None:
    lines = against(recording(1))
    for layer in (2, 11):
        for rank in (0, 1):
            for name in ("q", "k", "v", "k_scale", "v_scale"):
                assert sum(line.startswith(f"small/layer{layer}/rank{rank}/{name}: stored") for line in lines) == 1
    assert len(lines) == 20
    assert sum("of 128 elements" in line for line in lines) == 4


def test_a_damaged_set_is_an_error_and_no_difference(root: Path) -> None:
    path = root / "small" / "layer11.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CaptureError, match="truncated"):
        compare_sets(CaptureStore(root), CaptureStore(root), "small")


def test_missing_captures_and_another_origin_are_named(
    against: Callable[[Recording], list[str]], recording: Make
) -> None:
    made = recording(0)
    manifest = msgspec.structs.replace(
        made.manifest,
        records=made.manifest.records[:2],
        tokens=msgspec.structs.replace(made.manifest.tokens, sha256="1" * 64),
    )
    lines = against(Recording(manifest, made.files))
    assert [line.split(":")[0] for line in lines] == ["tokens", "small/layer11/rank0", "small/layer11/rank1"]
    assert "stored present, now absent" in lines[1]
