"""What racecheck takes for a race where CUDA differs from C++, and that no report hides another."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from audit.compile.host import HostBuild, build_host
from tests.sanitize.host.test_programs import UNDER
from tests.simt.programs import launch

FOLDER = Path(__file__).parent
ENTRIES = (
    *(
        "equal_values",
        "dropped_read",
        "equal_and_another",
        "equal_and_read_early",
        "equal_to_what_was_there",
        "one_word",
    ),
    *("look_back<true>", "look_back<false>", "volatile_reduction<true>", "volatile_reduction<false>"),
)
CLEAN = ("equal_values", "dropped_read", "look_back<true>", "one_word", "volatile_reduction<true>")
RACES = {
    "equal_and_another": ("// equal", "// another"),
    "equal_and_read_early": ("// written", "// read early"),
    "equal_to_what_was_there": ("// the old value", "// a new value"),
    "look_back<false>": ("// published", "// handed over"),
    "volatile_reduction<false>": ("// a lane ahead", "// a lane behind"),
}


@cache
def program() -> HostBuild:
    return build_host(FOLDER, FOLDER / "races.cu", ENTRIES, sanitizer="thread")


def reported(entry: str, folder: Path) -> tuple[int, set[frozenset[int]]]:
    """The exit code, and for each report the lines of its two accesses."""
    arrays = [np.ones(64, "f4"), np.zeros(64, "f4")]
    if entry == "one_word":
        arrays[1] = np.zeros(8, "u8")
    if entry.startswith("look_back"):
        arrays.append(np.zeros(8, "i4"))
    blocks = 8 if entry == "one_word" or entry.startswith("look_back") else 1
    threads = 32 if entry.startswith("volatile") else 64
    ended = launch(program(), folder, entry, blocks, threads, *arrays, under=UNDER["thread"])
    reports = ended.errors.split("WARNING: ThreadSanitizer: data race")[1:]
    sides = [re.findall(r"of size \d+ at .*\n    #0 .*races\.cu:(\d+)", report) for report in reports]
    return ended.code, {frozenset(map(int, side)) for side in sides}


def line(words: str) -> int:
    (number,) = [
        number for number, text in enumerate((FOLDER / "races.cu").read_text().splitlines(), 1) if text.endswith(words)
    ]
    return number


@pytest.mark.parametrize("entry", CLEAN)
def test_it_is_no_race(entry: str, tmp_path: Path) -> None:
    assert reported(entry, tmp_path) == (0, set())


def test_writes_of_one_equal_value_become_a_note_at_their_line(tmp_path: Path) -> None:
    arrays = [np.ones(64, "f4"), np.zeros(64, "f4")]
    ended = launch(program(), tmp_path, "equal_values", 1, 64, *arrays, under=UNDER["thread"])
    notes = [re.sub(r"(equal-write ).*/", r"\1", line) for line in ended.report if line.startswith("note")]
    assert notes == [f"note equal-write races.cu:{line('in[0] + i;')}"]
    ended = launch(program(), tmp_path, "one_word", 8, 64, arrays[0], np.zeros(8, "u8"), under=UNDER["thread"])
    assert not [line for line in ended.report if line.startswith("note")]


@pytest.mark.parametrize("entry", RACES)
def test_it_is_a_race_with_both_lines(entry: str, tmp_path: Path) -> None:
    code, found = reported(entry, tmp_path)
    assert code == 66
    assert frozenset(map(line, RACES[entry])) in found
