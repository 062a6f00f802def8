"""What is stored comes back, says where it is from, and shows what is missing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest
import safetensors.numpy

from audit.capture.publish import publish
from audit.capture.record import Recording
from audit.capture.store import CaptureStore
from audit.errors import CaptureError
from audit.formats import decode_e4m3

IDS = ["small/layer2/rank0", "small/layer2/rank1", "small/layer11/rank0", "small/layer11/rank1"]


def test_round_trip_gives_the_bytes_that_were_published(root: Path, recording: Callable[[int], Recording]) -> None:
    made = recording(0)
    stored = {(r.layer, r.rank): r for r in made.manifest.records}
    for name in IDS:
        capture = CaptureStore(root).load(name)
        record = stored[capture.layer, capture.rank]
        data = made.files[record.file]
        for tensor, array in capture.arrays.items():
            assert array.tobytes() in data
            assert capture.payload_sha256[tensor] == record.tensors[tensor].sha256
        assert capture.arrays["q"].dtype == np.float16
        assert capture.arrays["q"].shape == (8, 2, 8)
        for tensor in "kv":
            assert capture.arrays[tensor].dtype == np.uint8
            assert capture.arrays[tensor].shape == (3, 16, 1, 8)
            assert not capture.arrays[tensor].reshape(48, 8)[40:].any()
        assert (capture.scales["scale"], capture.step, capture.tokens, capture.set) == (0.125, 1, 40, "small")


def test_stored_values_are_those_of_the_model_within_one_rounding(root: Path) -> None:
    # The same draws as the recording's first layer.
    rng = np.random.default_rng(0)
    q = rng.standard_normal((4, 8, 8)).astype(np.float32)
    k = rng.standard_normal((2, 40, 8)).astype(np.float32)
    capture = CaptureStore(root).load("small/layer2/rank1")
    assert np.abs(capture.arrays["q"] - q[2:].transpose(1, 0, 2)).max() <= 2.0**-10
    came = decode_e4m3(capture.arrays["k"]).reshape(48, 8)[:40] * capture.scales["k_scale"]
    step = capture.scales["k_scale"] * 2.0**-10
    assert (np.abs(came - k[1]) <= np.maximum(np.abs(k[1]) * 2.0**-4 * 1.001, step)).all()


def test_list_is_sorted_by_number_and_stable(root: Path) -> None:
    refs = CaptureStore(root).list()
    assert [ref.id for ref in refs] == IDS
    assert refs == CaptureStore(root).list()
    assert (refs[2].layer, refs[2].rank, refs[2].rows, refs[2].tokens) == (11, 0, 8, 40)


def test_listing_loads_neither_numpy_nor_torch(root: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from audit.capture.store import CaptureStore;"
        f"assert len(CaptureStore(Path({str(root)!r})).list()) == 4;"
        "assert not {'numpy', 'torch', 'transformers', 'safetensors'} & set(sys.modules), 'a heavy import'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("rows", range(1, 9))
def test_views_take_the_last_rows_and_their_lengths(root: Path, rows: int) -> None:
    capture = CaptureStore(root).load(IDS[0])
    query = capture.query(rows)
    assert np.shares_memory(query, capture.arrays["q"])
    assert (query == capture.arrays["q"][8 - rows :]).all()
    assert capture.lengths(rows).tolist() == list(range(40 - rows + 1, 41))
    assert capture.lengths(rows).dtype == np.int32


@pytest.mark.parametrize("rows", [0, -1, 9])
def test_rows_that_were_not_captured_are_refused(root: Path, rows: int) -> None:
    capture = CaptureStore(root).load(IDS[0])
    for view in (capture.query, capture.lengths):
        with pytest.raises(CaptureError, match="expected 1 to 8"):
            view(rows)


def test_a_capture_cannot_be_changed(root: Path) -> None:
    capture = CaptureStore(root).load(IDS[0])
    with pytest.raises(ValueError, match="read-only"):
        capture.arrays["k"][0, 0, 0, 0] = 1
    with pytest.raises(TypeError):
        capture.scales["scale"] = 1.0  # type: ignore[index]
    with pytest.raises(AttributeError):
        capture.layer = 3  # type: ignore[misc]


def test_the_safetensors_library_reads_the_same_tensors(root: Path) -> None:
    tensors = safetensors.numpy.load_file(root / "small" / "layer11.safetensors")
    assert sorted(tensors) == [f"rank{rank}.{name}" for rank in (0, 1) for name in ("k", "q", "v")]
    for rank in (0, 1):
        for name, array in CaptureStore(root).load(f"small/layer11/rank{rank}").arrays.items():
            assert np.array_equal(tensors[f"rank{rank}.{name}"].view(np.uint8), array.view(np.uint8))


def test_a_partial_set_shows_as_partial(tmp_path: Path, recording: Callable[[int], Recording]) -> None:
    made = recording(0)
    partial = msgspec.structs.replace(made.manifest, records=made.manifest.records[:2])
    publish(tmp_path / "small", partial, made.files)
    (census,) = CaptureStore(tmp_path).census()
    assert not census.whole
    assert str(census) == "small: captured 2 of 4, lacks layer11/rank0, lacks layer11/rank1"
    assert len(CaptureStore(tmp_path).list()) == 2
    with pytest.raises(CaptureError, match="layer11/rank0"):
        CaptureStore(tmp_path).load("small/layer11/rank0")


def test_a_whole_set_shows_as_whole(root: Path) -> None:
    (census,) = CaptureStore(root).census()
    assert census.whole
    assert str(census) == "small: captured 4 of 4"


def test_a_folder_without_manifest_is_no_set_and_a_missing_root_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "file").write_text("x")
    assert CaptureStore(tmp_path).list() == ()
    with pytest.raises(CaptureError, match="there is none"):
        CaptureStore(tmp_path / "absent").list()


@pytest.mark.parametrize(
    "name",
    [
        "",
        "small",
        "small/layer2",
        "small/layer02/rank0",
        "../small/layer2/rank0",
        "small/layer2/rank0/",
        "/layer2/rank0",
    ],
)
def test_malformed_ids_are_refused(root: Path, name: str) -> None:
    with pytest.raises(CaptureError, match="expected an id such as"):
        CaptureStore(root).load(name)


def test_unknown_ids_name_what_there_is(root: Path) -> None:
    with pytest.raises(CaptureError, match="expected one of layer2/rank0"):
        CaptureStore(root).load("small/layer3/rank0")
    with pytest.raises(CaptureError, match="expected a folder"):
        CaptureStore(root).load("other/layer2/rank0")
