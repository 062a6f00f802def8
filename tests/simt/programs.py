"""The .cu files of this folder as programs: built once, run on arrays, and what came back."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from audit.compile.host import HostBuild, build_host

FOLDER = Path(__file__).parent
GUARD = 64

Array = npt.NDArray[np.generic]


class Ended(msgspec.Struct, frozen=True):
    """How a program ended. `buffers` hold what the last `save` wrote."""

    code: int
    report: list[str]
    errors: str
    output: str
    buffers: dict[str, Array]

    @property
    def error(self) -> str:
        """The report's error line, or nothing."""
        return next((line for line in self.report if line.startswith("error ")), "")


def line(name: str, text: str) -> str:
    """`name.cu:N`, as messages name the one line that contains `text`."""
    source = (FOLDER / f"{name}.cu").read_text().splitlines()
    (number,) = [number for number, words in enumerate(source, 1) if text in words]
    return f"{name}.cu:{number}"


def build(name: str, entries: Sequence[str], **options: object) -> HostBuild:
    """A .cu file of this folder."""
    return build_host(FOLDER, FOLDER / f"{name}.cu", entries, **options)  # type: ignore[arg-type]


def run_script(program: HostBuild, folder: Path, lines: Sequence[str], under: Sequence[str] = ()) -> Ended:
    """Run a script as it is, after its first two lines; `under` is a command that runs the program."""
    (folder / "script").write_text("\n".join(["kernel-audit-host 1", "report report", *lines]) + "\n")
    done = subprocess.run(
        [*under, program.executable, folder / "script"], capture_output=True, text=True, timeout=60, check=False
    )
    report = folder / "report"
    lines_seen = report.read_text().splitlines() if report.exists() else []
    report.unlink(missing_ok=True)
    return Ended(done.returncode, lines_seen, done.stderr, done.stdout, {})


class Call(msgspec.Struct, frozen=True):
    """One launch. Arrays among `args` become buffers b0, b1, ... with guards; strings are arguments as they are."""

    entry: str
    grid: Sequence[int] | int
    block: Sequence[int] | int
    args: tuple[Array | str, ...] = ()
    shared: int = 0


def launch(
    program: HostBuild,
    folder: Path,
    entry: str,
    grid: Sequence[int] | int,
    block: Sequence[int] | int,
    *args: Array | str,
    shared: int = 0,
    threads: int = 1,
    seed: int = 0,
    under: Sequence[str] = (),
) -> Ended:
    """One launch in a process of its own."""
    return launch_all(program, folder, {"": Call(entry, grid, block, args, shared)}, threads, seed, under)


def launch_all(
    program: HostBuild,
    folder: Path,
    calls: Mapping[str, Call],
    threads: int = 1,
    seed: int = 0,
    under: Sequence[str] = (),
) -> Ended:
    """Launches one after another in one process; the names of their buffers begin with those of `calls`."""
    head, launches, tail = [f"threads {threads}", f"seed {seed}"], [], []
    arrays: dict[str, Array] = {}
    guard = b"\xa5" * GUARD
    for called, call in calls.items():
        words = []
        for arg in call.args:
            if isinstance(arg, str):
                words.append(arg)
                continue
            name = f"{called}b{sum(word.startswith('p:') for word in words)}"
            arrays[name] = arg
            (folder / f"{name}.bin").write_bytes(guard + arg.tobytes() + guard)
            head.append(f"buffer {name} {name}.bin {GUARD} {arg.nbytes}")
            tail.append(f"save {name} {name}.out")
            words.append(f"p:{name}+0")
        extents = " ".join(f"{extent}" for size in (call.grid, call.block) for extent in _three(size))
        index = program.identity.entries.index(call.entry)
        launches.append(f"launch {index} {extents} {call.shared} {len(words)} {' '.join(words)}")
    ended = run_script(program, folder, [*head, *launches, *tail], under)
    if ended.code == 0:
        for name, array in arrays.items():
            raw = (folder / f"{name}.out").read_bytes()
            assert raw[:GUARD] == raw[-GUARD:] == guard
            ended.buffers[name] = np.frombuffer(raw[GUARD:-GUARD], array.dtype).reshape(array.shape)
    return ended


def _three(size: Sequence[int] | int) -> tuple[int, ...]:
    extents = (size,) if isinstance(size, int) else tuple(size)
    return extents + (1,) * (3 - len(extents))
