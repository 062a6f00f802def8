"""Signals to the tool, its keeper and its command: no process outlives them, and no folder outlives the next run."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from audit import processes, scratch
from audit.cli import doctor

from ..conftest import full_run

ENDLESS = "for (volatile int i = 0;;) i = i + 1;"
BUSY = 20  # ticks, of 10 ms: more than a kernel that ends takes here
STEP = 0.02  # seconds
LIMIT = 10.0  # seconds, in which what a killed tool has started must be gone


@pytest.fixture
def endless(softmax_project: Path) -> Path:
    """A project whose variant `fast` never ends."""
    source = softmax_project / "kernels/fast.cu"
    text = source.read_text()
    old = "const int t = threadIdx.x;"
    assert text.count(old) == 1
    source.write_text(text.replace(old, f"{old}\n    {ENDLESS}"))
    return softmax_project


class Attack:
    """A tool that runs in the background, with all that it has started: each carries a mark in its environment."""

    def __init__(self, folder: Path, *words: str, start: str = "env", **environment: str) -> None:
        self.mark = f"ATTACK={uuid.uuid4()}"
        name, _, value = self.mark.partition("=")
        self.tool = subprocess.Popen(
            [start, sys.executable, "-m", "audit", *words],
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            env={**os.environ, name: value, **environment},
        )  # fmt: skip

    def family(self) -> list[int]:
        """The tool and all its descendants that live."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if self.mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
        return sorted(found)

    def child_of(self, process: int) -> int:
        """The one child of a process, 0 before there is one."""
        words = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        return int(words[0]) if words else 0

    def until(self, program: str) -> None:
        """Wait until a program of this name is at work and has been for a while."""
        deadline = time.monotonic() + 60
        while not any(name == program and ticks >= BUSY for name, ticks in self.programs()):
            assert time.monotonic() < deadline, self.programs()
            time.sleep(STEP)

    def programs(self) -> list[tuple[str, int]]:
        """The name of each, and the ticks of a processor's time that it has taken."""
        found = []
        for process in self.family():
            with contextlib.suppress(OSError):
                head, _, rest = Path(f"/proc/{process}/stat").read_text().rpartition(")")
                found.append((head.partition("(")[2], int(rest.split()[11])))
        return found

    def gone(self) -> list[int]:
        """Who is left after the time that all have to go."""
        deadline = time.monotonic() + LIMIT
        while (left := self.family()) and time.monotonic() < deadline:
            time.sleep(STEP)
        return left

    def end(self) -> None:
        for process in self.family():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.tool.communicate()


@contextlib.contextmanager
def attack(folder: Path, *words: str, start: str = "env", **environment: str) -> Iterator[Attack]:
    started = Attack(folder, *words, start=start, **environment)
    try:
        yield started
    finally:
        started.end()


def dead_folders() -> list[Path]:
    return [folder for folder in scratch.left_over() if scratch.is_dead(folder.name)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_all_and_leaves_nothing(endless: Path, tmp_path: Path, number: signal.Signals) -> None:
    with attack(endless, "run", "--axis", "n=1", TMPDIR=str(tmp_path)) as started:
        started.until("program")
        began = time.monotonic()
        started.tool.send_signal(number)
        out, err = started.tool.communicate(timeout=LIMIT)
        assert started.tool.returncode == 3
        assert (out, err.splitlines()[-1]) == ("", "audit: interrupted; what was running left no record")
        assert "Traceback" not in err
        assert started.gone() == []
        assert time.monotonic() - began < 5
        assert dead_folders() == []


@pytest.mark.parametrize("generation", [0, 1, 2], ids=["tool", "keeper", "command"])
def test_whoever_is_killed_all_end(endless: Path, generation: int) -> None:
    with attack(endless, "run", "--axis", "n=1") as started:
        started.until("program")
        victim = started.tool.pid
        for _ in range(generation):
            victim = started.child_of(victim)
        os.kill(victim, signal.SIGKILL)
        _, err = started.tool.communicate(timeout=LIMIT)
        assert started.tool.returncode == (-signal.SIGKILL if generation == 0 else 2)
        assert started.gone() == []
        assert dead_folders() == []
        if generation:
            assert "killed by SIGKILL" in err


def test_all_three_are_killed_at_once(endless: Path, tmp_path: Path) -> None:
    """Nobody is left to end the kernel: it ends by itself, and the next run removes the folders."""
    with attack(endless, "run", "--axis", "n=1", "--variant", "fast") as started:
        started.until("program")
        keeper = started.child_of(started.tool.pid)
        command = started.child_of(keeper)
        for process in (keeper, started.tool.pid, command):
            os.kill(process, signal.SIGSTOP)  # so that none sees another one's end
        for process in (keeper, started.tool.pid, command):
            with contextlib.suppress(ProcessLookupError):  # the command dies with its keeper
                os.kill(process, signal.SIGKILL)
        assert started.gone() == []
    assert [folder for folder in dead_folders() if f"-{command}-" in folder.name]
    clean = ("run", "--axis", "n=1", "--variant", "control", "--out", str(tmp_path))
    subprocess.run([sys.executable, "-m", "audit", *clean], cwd=endless, capture_output=True, check=True)
    assert dead_folders() == []


def test_a_compiler_ends_with_the_tool(endless: Path) -> None:
    (endless / "kernels/fast.cu").write_text(  # half a million types take a while
        "template <unsigned long N, int D> struct T { static constexpr int v = T<2 * N, D - 1>::v + "
        "T<2 * N + 1, D - 1>::v; };\n"
        "template <unsigned long N> struct T<N, 0> { static constexpr int v = 1; };\n"
        'extern "C" __global__ void softmax_fast(const float*, float* y, int) { y[0] = T<1, 19>::v; }\n'
    )
    with attack(endless, "run", "--axis", "n=1", "--variant", "fast") as started:
        started.until("cc1plus")
        started.tool.kill()
        assert started.gone() == []


def test_a_command_that_heeds_no_signal_is_killed(softmax_project: Path) -> None:
    source = softmax_project / "kernels/softmax.py"
    source.write_text(
        source.read_text()
        + "\nimport signal, time\n[signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]\nprint('on', flush=True)\n"
        + "while True: time.sleep(1)\n"
    )
    with attack(softmax_project, "list") as started:
        assert started.tool.stdout
        assert started.tool.stdout.readline() == "on\n"
        started.tool.terminate()
        started.tool.wait(LIMIT)
        assert started.tool.returncode == 3
        assert started.gone() == []


def test_an_ignored_signal_is_ignored(endless: Path) -> None:
    with attack(endless, "list", start="nohup") as started:
        time.sleep(0.2)
        os.killpg(started.tool.pid, signal.SIGHUP)
        started.tool.communicate(timeout=LIMIT)
        assert started.tool.returncode == 0


def test_random_kills_leave_nothing(endless: Path, tmp_path: Path) -> None:
    draw = random.Random(20260)
    count = 100 if full_run() else 8
    for turn in range(count):
        cache = tmp_path / f"cache{turn % 4}" if turn % 2 else Path(os.environ.get("KERNEL_AUDIT_CACHE", "")) or None
        words = draw.choice((("run", "--axis", "n=1"), ("sanitize", "--tool", "synccheck"), ("run",)))
        with attack(endless, *words, **({"KERNEL_AUDIT_CACHE": str(cache)} if turn % 2 else {})) as started:
            time.sleep(draw.uniform(0.02, 2.0))
            number = draw.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT))
            victims = [started.tool.pid] if number != signal.SIGKILL else (started.family() or [started.tool.pid])
            match draw.choice(("one", "group")):
                case "one":
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(draw.choice(victims), number)
                case "group":
                    os.killpg(started.tool.pid, number)
            started.tool.communicate(timeout=LIMIT + 130)
            assert started.tool.returncode != 0, (turn, number)
            assert started.gone() == [], (turn, number)
    scratch.sweep()
    assert dead_folders() == []


def test_a_sweep_spares_the_living(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    namespace, _, start = scratch.owner().split("-")
    living = tmp_path / f"kernel-audit-{scratch.owner()}-a"
    elsewhere = tmp_path / f"kernel-audit-{int(namespace) + 1}-1-{start}-a"
    dead = [tmp_path / f"kernel-audit-{namespace}-{os.getpid()}-{int(start) + 1}-a",
            tmp_path / f"kernel-audit-{namespace}-{2**22 + 1}-7-a"]  # fmt: skip
    foreign = [tmp_path / "kernel-audit-fault", tmp_path / "kernel-audit-1-2-3"]
    for folder in (living, elsewhere, *dead, *foreign):
        (folder / "inside").mkdir(parents=True)
    link = tmp_path / f"kernel-audit-{namespace}-{2**22 + 1}-7-link"
    link.symlink_to(foreign[0])
    assert {path for path in scratch.left_over() if path.parent == tmp_path} == {elsewhere, *dead}
    scratch.sweep()
    assert set(tmp_path.iterdir()) == {living, elsewhere, *foreign, link}


def test_doctor_names_what_is_left(softmax_project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    namespace = scratch.owner().partition("-")[0]
    folder = tmp_path / f"kernel-audit-{namespace}-{2**22 + 1}-7-a"
    folder.mkdir()
    partial = softmax_project / "runs/.x.partial"
    partial.mkdir(parents=True)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.chdir(softmax_project)
    orphan = subprocess.Popen(["sleep", "60"], env={processes.PARENT: str(2**22 + 1)})
    try:
        found = doctor._left_overs()
    finally:
        orphan.kill()
        orphan.wait()
    assert not found.works
    for what in (f"process {orphan.pid}", str(folder), str(partial)):
        assert what in found.detail
