"""Publishing: an existing set is not overwritten by accident, and half a set never reads as one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from audit.capture import publish as publishing
from audit.capture.publish import publish
from audit.capture.record import Recording
from audit.capture.store import CaptureStore
from audit.errors import CaptureError

Make = Callable[[int], Recording]


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_same_recording_gives_the_same_bytes(tmp_path: Path, recording: Make) -> None:
    for name in ("a", "b"):
        made = recording(3)
        publish(tmp_path / name / "small", made.manifest, made.files)
    assert content(tmp_path / "a" / "small") == content(tmp_path / "b" / "small")
    assert len(content(tmp_path / "a" / "small")) == 4


def test_an_existing_set_is_refused_and_left_alone(root: Path, recording: Make) -> None:
    before = content(root / "small")
    made = recording(1)
    with pytest.raises(CaptureError, match="--out"):
        publish(root / "small", made.manifest, made.files)
    assert content(root / "small") == before


def test_replacing_keeps_what_is_not_of_the_set(root: Path, recording: Make) -> None:
    (root / "small" / "README.md").write_text("notes")
    old = CaptureStore(root).load("small/layer2/rank0")
    made = recording(1)
    publish(root / "small", made.manifest, made.files, replace=True)
    new = CaptureStore(root).load("small/layer2/rank0")
    assert new.payload_sha256 != old.payload_sha256
    assert (root / "small" / "README.md").read_text() == "notes"
    assert not list((root / "small").glob(".incomplete-*"))


@pytest.mark.parametrize("moves", range(4))
def test_a_replacement_that_stops_midway_leaves_no_set(
    root: Path, recording: Make, monkeypatch: pytest.MonkeyPatch, moves: int
) -> None:
    done = 0

    def stopping(source: Path, target: Path) -> None:
        nonlocal done
        if done == moves:
            raise KeyboardInterrupt
        done += 1
        os.rename(source, target)

    made = recording(1)
    monkeypatch.setattr(publishing.os, "replace", stopping)
    with pytest.raises(KeyboardInterrupt):
        publish(root / "small", made.manifest, made.files, replace=True)
    assert CaptureStore(root).list() == ()


def test_a_full_disk_leaves_the_old_set_whole(root: Path, recording: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    before = content(root / "small")
    made = recording(1)
    monkeypatch.setattr(publishing.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        publish(root / "small", made.manifest, made.files, replace=True)
    assert content(root / "small") == before
