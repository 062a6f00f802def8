"""A bundle: launches become bits and addresses, steps become files, and what does not fit together is refused."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from audit import arena, bundle
from audit.arguments import Argument
from audit.bundle import AGAIN, FIRST, MANIFEST, Bundle
from audit.errors import ProjectError
from audit.spec import At, Axis, Buffer, Case, Launch, Operator, Pointers, Source, Struct, Variant

CASE = Case("s", "op", {"rows": 3, "n": 4})
BUFFERS = (
    Buffer("x", "f32", "rows n", "in"),
    Buffer("lengths", "i32", "rows", "in"),
    Buffer("y", "f16", "rows n", "out"),
    Buffer("w", "f64", "n", "workspace"),
)
INPUTS = {"x": np.arange(12.0).reshape(3, 4), "lengths": np.array([1, 2, 3], np.int32), "scale": np.float32(0.5)}


def operator() -> Operator:
    return Operator("op", [Axis("rows", 3), Axis("n", 4)], lambda _: BUFFERS, lambda *_: INPUTS, [])


def variant(*args: object, grid: tuple[int, ...] = (3,), launches: int = 1) -> Variant:
    launch = Launch("kernel", grid, (32,), 128, args)  # type: ignore[arg-type]
    return Variant("fast", Source("k.cu"), lambda _: [launch] * launches)


def written(folder: Path, *args: object, steps: dict[str, dict[str, object]] | None = None, **more: object) -> Bundle:
    made = variant(*args)
    return bundle.write_bundle(folder, operator(), made, CASE, INPUTS, steps or {"live": {}}, **more)  # type: ignore[arg-type]


def arguments(*args: object) -> tuple[Argument, ...]:
    return bundle.resolve_launch(variant(*args).launches(CASE)[0], variant(), BUFFERS, INPUTS).args


@pytest.mark.parametrize(
    ("given", "kind", "value"),
    [
        (7, "i32", np.int32(7)),
        (0.1, "f32", np.float32(0.1)),
        (np.float64(0.1), "f64", np.float64(0.1)),
        (np.uint64(2**63), "u64", np.uint64(2**63)),
        ("scale", "f32", np.float32(0.5)),
    ],
)
def test_a_number_becomes_the_bits_of_its_type(given: object, kind: str, value: np.generic) -> None:
    assert arguments(given) == (Argument(kind, bits=value.tobytes().hex()),)


def test_a_buffer_becomes_a_pointer_and_at_counts_in_elements() -> None:
    assert arguments("x", At("y", 3), At("w", 2)) == (
        Argument("pointer", "x"),
        Argument("pointer", "y", 6),
        Argument("pointer", "w", 16),
    )


LAID = np.dtype([("p", "u8"), ("n", "i4")], align=True)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("z",), "expected a buffer of .* or a scalar input of .*'scale'.*, but got 'z'"),
        (("lengths_",), "but got 'lengths_'"),
        ((At("z", 0),), r"but got At\('z'\)"),
        ((2**31,), "does not fit in an int"),
        ((np.complex64(1),), "expected a name, a number or one of"),
        ((Pointers("x", "z"),), r"argument 1, pointer 1: expected a buffer of .*, but got 'z'"),
        ((Pointers(),), "expected 1 to 1,048,576 pointers, but got 0"),
        ((Struct(np.dtype([("p", "u8"), ("n", "i4")]), p="x", n=1),), "layout of C, 16 bytes, but got 12 bytes"),
        ((Struct(LAID, p="z", n=1),), r"argument 1, field p: expected a buffer of .*, but got 'z'"),
        ((Struct(LAID, p="x", n="x"),), "field n: expected uint64 for a pointer, but got int32"),
        ((Struct(LAID, p="x"),), r"expected the fields \['p', 'n'\] of the struct, but got \['p'\]"),
        ((Struct(LAID, p="x", n=2**40),), "field n: expected int32, but got 1099511627776"),
        ((Struct(np.dtype([("p", "O")], align=True), p=1),), "a structured dtype of numbers"),
        ((Struct(np.dtype([("p", ">i4")], align=True), p=1),), "a structured dtype of numbers"),
        ((np.zeros((), np.dtype([("a", "u1"), ("b", "f8")]))[()],), "write numpy.dtype"),
        ((np.zeros((), np.dtype([("a", "f4", 9000)], align=True))[()],), "at most 32,764 bytes, but got 36,000"),
    ],
)
def test_an_argument_that_no_launch_can_take_is_refused(args: tuple[object, ...], words: str) -> None:
    with pytest.raises(ProjectError, match=rf"variant fast, launch of kernel: .*{words}"):
        arguments(*args)


@pytest.mark.parametrize("grid", [(), (1, 2, 3, 4), (0,), (3, -1)])
def test_a_grid_that_is_none_is_refused(tmp_path: Path, grid: tuple[int, ...]) -> None:
    with pytest.raises(ProjectError, match="expected one to three positive extents"):
        bundle.write_bundle(tmp_path, operator(), variant(grid=grid), CASE, INPUTS, {"live": {}})


def test_extents_that_are_left_out_are_one(tmp_path: Path) -> None:
    (launch,) = written(tmp_path, "x").launches
    assert (launch.grid, launch.block, launch.shared_bytes) == ((3, 1, 1), (32, 1, 1), 128)


def test_without_a_launch_or_a_step_there_is_nothing_to_run(tmp_path: Path) -> None:
    for number, (made, steps) in enumerate([(variant(launches=0), {"live": {}}), (variant(), {})]):
        folder = tmp_path / str(number)
        folder.mkdir()
        with pytest.raises(ProjectError, match="at least one launch and one step"):
            bundle.write_bundle(folder, operator(), made, CASE, INPUTS, steps)


def test_the_folder_holds_the_manifest_and_a_file_a_buffer(tmp_path: Path) -> None:
    made = written(tmp_path, "x", "y")
    assert msgspec.json.decode((tmp_path / MANIFEST).read_bytes(), type=Bundle) == made
    assert {slot.name: slot.role for slot in made.slots} == {each.name: each.role for each in BUFFERS}
    assert all((tmp_path / slot.file).is_file() for slot in made.slots)
    snapshot = arena.read_slot(tmp_path / made.slot("x").file, made.slot("x"))
    np.testing.assert_array_equal(arena.typed(snapshot, BUFFERS[0], CASE), INPUTS["x"])


def test_a_step_loads_what_it_changes_and_lays_poison_of_its_own(tmp_path: Path) -> None:
    made = written(tmp_path, "x", steps={"live": {}, "tail": {"lengths": np.array([0, 0, 9], np.int32)}})
    live, tail = made.steps
    assert (live.loads, list(tail.loads)) == ({}, ["lengths"])
    assert np.frombuffer((tmp_path / tail.loads["lengths"]).read_bytes(), "<i4").tolist() == [0, 0, 9]
    assert live.poison.keys() == tail.poison.keys() == {"y", "w"}
    assert live.poison != tail.poison


@pytest.mark.parametrize(
    ("change", "words"),
    [({"y": np.zeros((3, 4))}, "it changes y, whose role is 'out'"), ({"z": 1}, r"but got \['z'\]")],
)
def test_a_step_changes_inputs_alone(tmp_path: Path, change: dict[str, object], words: str) -> None:
    with pytest.raises(ProjectError, match=words):
        written(tmp_path, "x", steps={"live": {}, "odd": change})


def test_arms_differ_in_poison_schedule_and_addresses(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("first", "again")]
    for folder in folders:
        folder.mkdir()
    first, again = (written(folder, "x", arm=arm) for folder, arm in zip(folders, (FIRST, AGAIN), strict=True))
    assert first.steps[0].poison != again.steps[0].poison
    assert (first.schedule_seed, again.schedule_seed) == (0, AGAIN.schedule_seed)
    assert again.slot("x").offset - first.slot("x").offset == AGAIN.shift


def test_results_are_copied_after_every_step_and_large_inputs_are_not() -> None:
    slots = arena.lay_out(BUFFERS, CASE, "salt")
    large = msgspec.structs.replace(slots[0], size=2**30)
    made = Bundle(1, "c", "v", (large, *slots[1:]), (), (bundle.BundledStep("live", {}, {}),))
    assert [slot.name for slot in made.saved] == ["lengths", "y", "w"]
    assert made.copies(Path("f"))["live"]["y"] == Path("f/after0.y.bin")


def test_no_buffer_is_a_null_pointer() -> None:
    assert arguments(None) == (Argument("pointer"),)
