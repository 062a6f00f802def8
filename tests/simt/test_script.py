"""The host program's protocol: what it accepts, what it refuses and how it says so."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from audit.compile.host import HostBuild
from audit.compile.identity import fnv1a64

from .programs import Ended, build, launch, run_script

ENTRIES = ["scale", "kinds", "small_kinds", "nothing", "whole_grid", "by_value", "far"]


@pytest.fixture(scope="module")
def program() -> HostBuild:
    return build("launches", ENTRIES)


def after_launch(program: HostBuild, folder: Path, entry: str, words: str) -> Ended:
    (folder / "b.bin").write_bytes(bytes(64))
    return run_script(program, folder, ["buffer b b.bin 16 32", f"launch {ENTRIES.index(entry)} {words}"])


def test_arguments_of_every_kind_arrive(program: HostBuild, tmp_path: Path) -> None:
    words = ["i32:-3", "u32:4000000000", "i64:-9000000000", "u64:18000000000000000000", "f32:40490fdb"]
    ended = launch(program, tmp_path, "kinds", 1, 1, np.zeros(6), *words, "f64:400921fb54442d18")
    pi = float(np.float32(np.pi))
    assert ended.buffers["b0"].tolist() == [-3, 4000000000, -9000000000, 18000000000000000000, pi, np.pi]
    ended = launch(program, tmp_path, "small_kinds", 1, 1, np.zeros(4), "u32:1", "i32:-128", "u32:65535", "u32:2")
    assert ended.buffers["b0"].tolist() == [1, -128, 65535, 2]


def test_the_identity_is_that_of_the_file(program: HostBuild, tmp_path: Path) -> None:
    ended = launch(program, tmp_path, "nothing", 1, 1)
    assert ended.report[0] == f"identity {program.identity.binary_fnv}"
    assert program.identity.binary_fnv == fnv1a64(program.executable.read_bytes())


def test_fnv_of_known_strings() -> None:
    assert fnv1a64(b"") == "cbf29ce484222325"
    assert fnv1a64(b"foobar") == "85944171f73967e8"


def test_every_block_and_thread_runs_once(program: HostBuild, tmp_path: Path) -> None:
    for threads, seed in ((1, 0), (2, 3), (5, 77)):
        counts = np.zeros((3, 5, 7, 2, 4, 8), np.int32)
        ended = launch(program, tmp_path, "whole_grid", (7, 5, 3), (8, 4, 2), counts, threads=threads, seed=seed)
        assert ended.code == 0, ended.errors
        assert (ended.buffers["b0"] == 1).all()


def test_steps_fill_load_and_save(program: HostBuild, tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(b"G" * 8 + bytes(20) + b"H" * 8)
    (tmp_path / "in.bin").write_bytes(bytes(range(20)))
    ended = run_script(
        program,
        tmp_path,
        [
            "buffer x x.bin 8 20",
            "step one",
            "fill x 1122334455667788",
            "save x one.out",
            "step two",
            "load x in.bin",
            "launch 0 1 1 1 4 1 1 0 2 p:x+4 i32:4",
            "save x two.out",
        ],
    )
    assert ended.code == 0, ended.errors
    assert ended.report[1:] == ["step one", "step two", "launch 0 scale 1 4", "done"]
    word = bytes.fromhex("8877665544332211")
    assert (tmp_path / "one.out").read_bytes() == b"G" * 8 + word + word + word[:4] + b"H" * 8
    doubled = (np.frombuffer(bytes(range(4, 20)), np.int32) * 2).tobytes()
    assert (tmp_path / "two.out").read_bytes() == b"G" * 8 + bytes(range(4)) + doubled + b"H" * 8
    assert (tmp_path / "x.bin").read_bytes() == (tmp_path / "two.out").read_bytes()


def test_a_sparse_buffer_stays_sparse(program: HostBuild, tmp_path: Path) -> None:
    size, at = 6 << 30, 5 << 30
    for name in ("big.bin", "in.bin"):
        with (tmp_path / name).open("wb") as file:
            file.truncate(size if name == "in.bin" else size + 8192)
            file.seek(at)
            file.write(np.array([21], np.int32).tobytes() if name == "in.bin" else b"\xff" * 100_000)
    ended = run_script(
        program,
        tmp_path,
        [
            f"buffer b big.bin 4096 {size}",
            "load b in.bin",
            f"launch 6 1 1 1 1 1 1 0 2 p:b+0 i64:{at}",
            "save b big.out",
        ],
    )
    assert ended.code == 0, ended.errors
    for name in ("big.bin", "big.out"):
        assert os.stat(tmp_path / name).st_size == size + 8192
        assert os.stat(tmp_path / name).st_blocks * 512 < 2 << 20
    with (tmp_path / "big.out").open("rb") as file:
        file.seek(at + 4096)
        assert np.frombuffer(file.read(8), np.int32).tolist() == [42, 0]
        file.seek(at)
        assert file.read(4096) == b"\0" * 4096, "what lay in the region before it was loaded"


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["frobnicate"], "script:3: unknown command `frobnicate`"),
        (["threads 0"], "expected 1 to 1024 threads, but got 0"),
        (["threads two"], "expected a count of threads, but got `two`"),
        (["seed"], "expected a seed at the end of the line"),
        (["step one two"], "unexpected `two` after step"),
        (["buffer b b.bin 60 5"], "b.bin has 64 bytes; a buffer of 5 bytes at offset 60 does not fit"),
        (["buffer b none.bin 0 4"], "cannot open none.bin"),
        (["buffer b b.bin 0 4", "buffer b b.bin 0 4"], "script:4: buffer `b` is declared twice"),
        (["fill c 0000000000000000"], "unknown buffer `c`"),
        (["buffer b b.bin 0 8", "fill b 00"], "expected a word of 16 hexadecimal digits, but got `00`"),
        (["buffer b b.bin 0 8", "load b b.bin"], "b.bin has 64 bytes, but its buffer has 8"),
        (["launch 99 1 1 1 1 1 1 0 0"], "expected a kernel index below 7, but got 99"),
        (["launch 3 1 1 1 1 1 1 0 1"], "expected 1 arguments, but got 0"),
        (["launch 3 1 1 1 -1 1 1 0 0"], "expected a grid or block size, but got `-1`"),
    ],
)
def test_a_wrong_script_is_an_error(program: HostBuild, tmp_path: Path, lines: list[str], says: str) -> None:
    (tmp_path / "b.bin").write_bytes(bytes(64))
    ended = run_script(program, tmp_path, lines)
    assert ended.code == 3
    assert ended.error.startswith("error script ")
    assert says in ended.error
    assert "done" not in ended.report


def test_another_version_of_the_protocol_is_refused(program: HostBuild, tmp_path: Path) -> None:
    for text in ("kernel-audit-host 2\n", ""):
        (tmp_path / "other").write_text(text)
        done = subprocess.run([program.executable, tmp_path / "other"], capture_output=True, text=True, check=False)
        assert done.returncode == 3
        assert done.stderr.startswith("error script other:")


@pytest.mark.parametrize(
    ("entry", "words", "says"),
    [
        (
            "scale",
            "1 1 1 1 1 1 0 2 i32:1 i32:1",
            "kernel scale, argument 1 of 8 bytes: expected a pointer, p:NAME+BYTES or p:null, but got i32:1",
        ),
        (
            "scale",
            "1 1 1 1 1 1 0 2 p:b+0 p:b+0",
            "argument 2 of 4 bytes: expected a signed integer of at most 32 bits, i32:VALUE",
        ),
        ("scale", "1 1 1 1 1 1 0 2 p:b+0 u32:1", "but got u32:1"),
        ("scale", "1 1 1 1 1 1 0 1 p:b+0", "kernel scale: expected 2 arguments, but the launch has 1"),
        ("scale", "1 1 1 1 1 1 0 2 p:b+33 i32:1", "argument 1: b+33 is past the 32 bytes of its buffer"),
        ("scale", "1 1 1 1 1 1 0 2 p:b+2 i32:1", "argument 1: expected an address aligned to 4 bytes, but b+2 is not"),
        ("small_kinds", "1 1 1 1 1 1 0 5 p:b+0 u32:1 i32:128 u32:0 u32:0", "argument 3: 128 does not fit in 8 bits"),
        ("by_value", "1 1 1 1 1 1 0 1 i32:1", ": expected a struct, or a type of 16 or 8 bits"),
        ("nothing", "0 1 1 1 1 1 0 0", "kernel nothing: expected grid x of 1 to 2147483647, but got 0"),
        ("nothing", "1 65536 1 1 1 1 0 0", "expected grid y of 1 to 65535, but got 65536"),
        ("nothing", "1 1 65536 1 1 1 0 0", "expected grid z of 1 to 65535, but got 65536"),
        ("nothing", "1 1 1 1025 1 1 0 0", "expected block x of 1 to 1024, but got 1025"),
        ("nothing", "1 1 1 1 1 65 0 0", "expected block z of 1 to 64, but got 65"),
        ("nothing", "1 1 1 64 32 1 0 0", "expected threads a block of 1 to 1024, but got 2048"),
        ("nothing", "1 1 1 1 1 1 232449 0", "232449 bytes of dynamic shared memory; the limit of sm_90 is 232448"),
    ],
)
def test_a_launch_that_cuda_would_refuse(program: HostBuild, tmp_path: Path, entry: str, words: str, says: str) -> None:
    ended = after_launch(program, tmp_path, entry, words)
    assert ended.code == 3
    assert ended.error.startswith(("error launch ", "error arguments "))
    assert says in ended.error


def test_the_largest_block(program: HostBuild, tmp_path: Path) -> None:
    assert after_launch(program, tmp_path, "nothing", "3 65535 1 1 1 1 0 0").code == 0
    assert after_launch(program, tmp_path, "nothing", "2 1 1 16 1 64 232448 0").code == 0
