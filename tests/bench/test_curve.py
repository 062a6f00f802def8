"""A frozen curve: written once, compared only with what is comparable, refused where it is damaged."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from audit.bench import curve
from audit.errors import EvidenceError
from audit.records.bench import BenchRecord

from .records import bench, pair, point


def two_contexts(factor: float = 1.0, **changes: object) -> BenchRecord:
    """control 1 ms and 2 ms, fast 0.5 ms and 1 ms, all but fast at 5,120 tokens scaled by `factor`."""
    made = bench(
        point(1024, pair(a_ms=[factor] * 5, b_ms=[0.5 * factor] * 5)),
        point(5120, pair(a_ms=[2 * factor] * 5, b_ms=[1.0] * 5)),
    )
    return msgspec.structs.replace(made, **changes)


def test_a_curve_comes_back_as_it_was_frozen(tmp_path: Path) -> None:
    frozen = curve.curve_of(two_contexts())
    file = curve.freeze_curve(tmp_path, frozen)
    assert file == tmp_path / "curves/q6-nvidia-h200.json"
    assert curve.load_curve(file) == frozen == curve.find_curve(tmp_path, two_contexts())
    assert (frozen.device, frozen.driver) == ("NVIDIA H200, sm_90", "580.159.04, CUDA 13.0")
    assert [(arm.name, arm.ms) for arm in frozen.arms] == [
        ("control", {1024: 1.0, 5120: 2.0}),
        ("fast", {1024: 0.5, 5120: 1.0}),
    ]
    assert frozen.binaries == {"fast": "b" * 64}
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_a_curve_is_never_overwritten(tmp_path: Path) -> None:
    file = curve.freeze_curve(tmp_path, curve.curve_of(two_contexts()))
    before = file.read_bytes()
    with pytest.raises(EvidenceError, match=r"is never overwritten; compare with it, or move it away"):
        curve.freeze_curve(tmp_path, curve.curve_of(two_contexts(2.0)))
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_later_costs_are_told_in_multiples_of_the_frozen() -> None:
    found = curve.compare_with_curve(curve.curve_of(two_contexts()), two_contexts(1.25))
    assert found.verdict == "compared"
    assert [(row.name, row.value, row.ratio) for row in found.costs] == [
        ("control", 1024, 1.25),
        ("control", 5120, 1.25),
        ("fast", 1024, 1.25),
        ("fast", 5120, 1.0),
    ]
    control, fast = found.added  # control: 1 ms, then 1.25 ms for 4,096 tokens; fast: 0.5 ms, then 0.375 ms
    assert (control.frozen_us, control.now_us, control.ratio) == pytest.approx((250, 312.5, 1.25))
    assert (fast.frozen_us, fast.now_us, fast.ratio) == pytest.approx((125, 93.75, 0.75))
    assert "1.0000 to 1.2500 of the frozen cost" in found.sentence
    assert "now" not in found.sentence  # nothing else changed


def test_a_cost_that_did_not_grow_has_no_ratio() -> None:
    flat = bench(point(1024, pair()), point(5120, pair()))
    assert [row.ratio for row in curve.compare_with_curve(curve.curve_of(flat), two_contexts()).added] == [None, None]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"device": "NVIDIA H100, sm_90, driver 580.159.04, CUDA 13.0"},
            "device is NVIDIA H200, sm_90, but this bench",
        ),
        ({"shape": "q5"}, "shape is q6"),
        ({"axes": {"context": 1024, "page": 16}}, "working set is context=65536"),
        ({"layers": 8}, "number of layers is 16, but this bench's is 8"),
        ({"points": (point(2048, pair()),)}, "both timed no arm at the same context"),
    ],
)
def test_what_cannot_be_compared_is_inconclusive(change: dict[str, object], words: str) -> None:
    later = two_contexts()
    if "device" in change:
        later = msgspec.structs.replace(later, machine=msgspec.structs.replace(later.machine, **change))
    elif "layers" in change:
        later = msgspec.structs.replace(later, method=msgspec.structs.replace(later.method, **change))
    else:
        later = msgspec.structs.replace(later, **change)
    found = curve.compare_with_curve(curve.curve_of(two_contexts()), later)
    assert (found.verdict, found.costs, found.added) == ("inconclusive", (), ())
    assert words in found.sentence


def test_what_else_differs_is_told() -> None:
    then = msgspec.structs.replace(
        curve.curve_of(two_contexts()),
        driver="570.1, CUDA 12.8",
        binaries={"fast": "0" * 64},
        peers={"peer": "peer 1.1"},
        arms=(*curve.curve_of(two_contexts()).arms[:1], curve.FrozenArm("gone", False, {1024: 1.0})),
    )
    sentence = curve.compare_with_curve(then, two_contexts()).sentence
    assert "The driver differs: 570.1, CUDA 12.8 then, 580.159.04, CUDA 13.0 now." in sentence
    assert "Another binary now: fast." in sentence
    assert "Peers of another version now: peer." in sentence
    assert "Not in the curve: fast." in sentence
    assert "Only in the curve: gone." in sentence


def test_no_curve_without_a_device_or_a_time(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match="expected a GPU's name"):
        curve.curve_of(bench(point(1024, pair()), device=None))
    with pytest.raises(EvidenceError, match="nothing was timed"):
        curve.curve_of(bench())
    assert curve.find_curve(tmp_path, two_contexts()) is None
    with pytest.raises(EvidenceError, match="cannot be read"):
        curve.load_curve(tmp_path / "absent.json")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": 2}, "expected schema 1, but got 2"),
        ({"colour": "green"}, "unknown field `colour`"),
        ({"arms": [{"name": "fast", "is_peer": False, "ms": {"1024": 0.0}}]}, "expected positive times"),
        ({"kind": "bench"}, "kind"),
    ],
)
def test_a_damaged_curve_is_refused(tmp_path: Path, change: dict[str, object], words: str) -> None:
    file = curve.freeze_curve(tmp_path, curve.curve_of(two_contexts()))
    file.write_text(json.dumps({**json.loads(file.read_bytes()), **change}))
    with pytest.raises(EvidenceError, match=words):
        curve.load_curve(file)


def test_a_shape_cannot_leave_the_folder(tmp_path: Path) -> None:
    assert curve.path(tmp_path, "../../x", "GPU/../1, sm_90").parent == tmp_path / curve.CURVES
