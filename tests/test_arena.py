"""The arena: poison that shows, guards that notice, snapshots that read back what was there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from audit import arena, sparse
from audit.errors import ProjectError
from audit.spec import Buffer, Case, Inputs

CASE = Case("s", "op", {"rows": 3, "n": 5})
BUFFERS = (
    Buffer("x", "f32", "rows n", "in"),
    Buffer("table", "i32", "entry=2", "in", behind=(0).to_bytes(4, "little")),
    Buffer("h", "f16", "rows", "out", offset=2),
    Buffer("w", "f32", "rows n", "workspace"),
)
INPUTS = {"x": np.arange(15.0).reshape(3, 5), "table": np.array([7, 9], np.int32)}


@pytest.fixture
def laid(tmp_path: Path) -> tuple[Path, dict[str, arena.Slot]]:
    slots = arena.lay_out(BUFFERS, CASE, "salt")
    arena.create(tmp_path, slots, INPUTS, CASE, BUFFERS)
    return tmp_path, {slot.name: slot for slot in slots}


def test_untouched_files_have_whole_guards_and_their_data(laid: tuple[Path, dict[str, arena.Slot]]) -> None:
    folder, slots = laid
    for slot in slots.values():
        assert arena.read_slot(folder / slot.file, slot).broken_guards == ()
    x = arena.typed(arena.read_slot(folder / "x.bin", slots["x"]), BUFFERS[0], CASE)
    assert x.dtype == np.float32
    np.testing.assert_array_equal(x, INPUTS["x"])


@pytest.mark.parametrize("where", [-4096, -1, 30, 30 + 4095])
def test_one_changed_byte_around_a_buffer_is_found(laid: tuple[Path, dict[str, arena.Slot]], where: int) -> None:
    folder, slots = laid
    slot = slots["x"]
    where = where if where < 0 else slot.size + where - 30
    with (folder / slot.file).open("r+b") as file:
        file.seek(slot.offset + where)
        old = file.read(1)[0]
        file.seek(slot.offset + where)
        file.write(bytes([old ^ 1]))
    assert arena.read_slot(folder / slot.file, slot).broken_guards == (where,)


def test_what_lies_behind_a_buffer_is_what_was_asked_for(laid: tuple[Path, dict[str, arena.Slot]]) -> None:
    folder, slots = laid
    slot = slots["table"]
    raw = (folder / slot.file).read_bytes()
    assert np.frombuffer(raw, "<i4", 3, slot.offset).tolist() == [7, 9, 0]


def test_guards_are_nan_in_every_format_and_no_usable_index() -> None:
    for salt in range(40):
        word = arena._guard_word(str(salt))
        assert np.isnan(np.frombuffer(word, "<f2")).all()
        assert np.isnan(np.frombuffer(word, "<f4")).all()
        assert all(byte & 0x7F == 0x7F for byte in word)
        assert all(index < 0 or index > 2**30 for index in np.frombuffer(word, "<i4").tolist())


@pytest.mark.parametrize("name", ["h", "w"])
def test_poison_is_a_nan_of_the_type_and_new_each_step_and_arm(name: str) -> None:
    words = set()
    for salt in ("a", "b"):
        slot = next(slot for slot in arena.lay_out(BUFFERS, CASE, salt) if slot.name == name)
        for step in range(5):
            word = arena.poison(slot, salt, step)
            words.add(word)
            assert np.isnan(arena.poison_array(slot, word).view("<f2" if name == "h" else "<f4")).all()
    assert len(words) == 10


def test_base_offset_moves_the_data_only() -> None:
    slot = next(slot for slot in arena.lay_out(BUFFERS, CASE, "s") if slot.name == "h")
    assert (slot.offset, slot.size, slot.file_size) == (4098, 6, 3 * 4096)


def test_exact_policy_has_no_guards_to_blind_a_sanitizer() -> None:
    for slot in arena.lay_out(BUFFERS, CASE, "s", "exact"):
        assert slot.file_size - slot.size in (0, 2)
        assert slot.behind == ""


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"x": INPUTS["x"]}, r"expected inputs\(\) to return an array for the buffer 'table'"),
        ({**INPUTS, "x": np.zeros((5, 3))}, r"expected shape \(3, 5\), but got \(5, 3\)"),
        ({**INPUTS, "table": np.array([7, 9])}, "expected dtype int32, but got int64"),
    ],
)
def test_inputs_that_do_not_fit_are_named(tmp_path: Path, inputs: dict[str, np.ndarray], words: str) -> None:
    with pytest.raises(ProjectError, match=words):
        arena.create(tmp_path, arena.lay_out(BUFFERS, CASE, "s"), inputs, CASE, BUFFERS)


def test_digest_of_inputs_sees_values_names_and_shapes() -> None:
    base = arena.input_digest(INPUTS)
    changed = {**INPUTS, "x": INPUTS["x"].reshape(5, 3)}
    other = {**INPUTS, "x": INPUTS["x"] + np.float64(1e-9)}
    assert len({base, arena.input_digest(changed), arena.input_digest(other)}) == 3
    assert arena.input_digest(dict(reversed(INPUTS.items()))) == base


GIB = 1 << 30
LARGE = (Buffer("far", "u8", f"byte={4 * GIB + 5}", "in", offset=8),)


@pytest.fixture
def large() -> Inputs:
    """More than 4 GiB, of which three blocks hold anything."""
    far = sparse.zeros(LARGE[0].shape(CASE))
    far[0], far[2 * GIB : 2 * GIB + 100], far[-1] = 1, 2, 3
    return {"far": far}


class Growth:
    """The most memory that the process held inside a `with`, in bytes beyond what it held before."""

    def __enter__(self) -> Growth:
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
        self.before = self._status("VmRSS")
        return self

    def __exit__(self, *_: object) -> None:
        self.bytes = self._status("VmHWM") - self.before

    def _status(self, field: str) -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(field))


def test_a_sparse_input_costs_neither_memory_nor_disk(tmp_path: Path, large: Inputs) -> None:
    (slot,) = arena.lay_out(LARGE, CASE, "s", shift=768)
    with Growth() as growth:
        digest = arena.input_digest(large)
        arena.create(tmp_path, [slot], large, CASE, LARGE)
        status = (tmp_path / slot.file).stat()
        snapshot = arena.read_slot(tmp_path / slot.file, slot)
        (tmp_path / slot.file).unlink()
        assert list(sparse.differing(snapshot.data, arena.input_array(LARGE[0], CASE, large))) == []
    assert growth.bytes < 32 << 20
    assert status.st_size == slot.file_size > 4 * GIB
    assert status.st_blocks * 512 < 8 << 20
    assert snapshot.broken_guards == ()
    assert [int(snapshot.data[at]) for at in (0, 1, 2 * GIB - 1, 2 * GIB, 2 * GIB + 99, -1)] == [1, 0, 0, 2, 2, 3]
    assert digest == arena.input_digest({"far": snapshot.data})


@pytest.mark.parametrize("where", [1, 3 * GIB, 4 * GIB + 4, -1, -4096, 4 * GIB + 5, 4 * GIB + 5 + 4095])
def test_one_changed_byte_of_a_sparse_file_is_found(tmp_path: Path, large: Inputs, where: int) -> None:
    """In a hole, in the data, in the guards."""
    (slot,) = arena.lay_out(LARGE, CASE, "s")
    arena.create(tmp_path, [slot], large, CASE, LARGE)
    with (tmp_path / slot.file).open("r+b") as file:
        file.seek(slot.offset + where)
        old = file.read(1)[0]
        file.seek(slot.offset + where)
        file.write(bytes([old ^ 4]))
    snapshot = arena.read_slot(tmp_path / slot.file, slot)
    changed = [int(at) for positions in sparse.differing(snapshot.data, large["far"]) for at in positions]
    inside = 0 <= where < slot.size
    assert changed == ([where] if inside else [])
    assert snapshot.broken_guards == (() if inside else (where,))


def test_a_digest_sees_where_the_bytes_of_a_sparse_input_lie(large: Inputs) -> None:
    far = large["far"]
    before = arena.input_digest(large)
    far[3 * GIB] = 9
    there = arena.input_digest(large)
    far[3 * GIB], far[3 * GIB + sparse.BLOCK] = 0, 9
    assert len({before, there, arena.input_digest(large)}) == 3
    far[3 * GIB + sparse.BLOCK] = 0
    assert arena.input_digest(large) == before


def test_a_large_input_is_not_copied(tmp_path: Path) -> None:
    buffer = Buffer("x", "u8", f"byte={96 << 20}", "in")
    inputs = {"x": np.full(96 << 20, 5, np.uint8)}
    (slot,) = arena.lay_out([buffer], CASE, "s")
    with Growth() as growth:
        arena.create(tmp_path, [slot], inputs, CASE, [buffer])
        snapshot = arena.read_slot(tmp_path / slot.file, slot)
        arena.input_digest(inputs)
        assert list(sparse.differing(snapshot.data, inputs["x"])) == []
    assert growth.bytes < 16 << 20
