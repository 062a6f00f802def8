"""What a kernel prints, however much: neither memory nor a disk holds it, and its first and last part are kept."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from audit import processes
from audit.backends import child
from audit.backends.outcome import Crashed, TimedOut
from audit.backends.workers import Worker

from ..conftest import Ran, full_run

Audit = Callable[..., Ran]
SIZE = 10**9 if full_run() else 10**8
KEPT = 2 * processes._PART + 200
FLOOD = f"{{ echo first; yes | head -c {SIZE}; echo last; }}"


def test_only_the_first_and_the_last_part_are_kept() -> None:
    done = processes.run_process(["sh", "-c", f"{FLOOD}; {FLOOD} >&2"], 100)
    assert done.code == 0
    for stream in (done.output, done.errors):
        assert len(stream) < KEPT
        assert stream.startswith(b"first\ny\n")
        assert stream.endswith(b"y\nlast\n")
        assert b"bytes left out ...]" in stream


def test_a_short_output_is_kept_whole() -> None:
    done = processes.run_process(["sh", "-c", "echo one; echo two >&2; exit 5"], 10)
    assert done == (5, b"one\n", b"two\n")


def test_a_crash_and_a_time_out_say_what_was_printed(tmp_path: Path) -> None:
    command = f"printf 'step live\\n' > {tmp_path}/report; seq 3000"
    crashed = child.execute(["sh", "-c", f"{command}; exit 9"], tmp_path / "report", {}, 10)
    assert isinstance(crashed, Crashed)
    assert crashed.kind == "exit 9"
    assert crashed.message.startswith("after step live: 1\n2\n")
    assert crashed.message.endswith("\n3000")
    assert len(crashed.message) < 3000
    late = child.execute(["sh", "-c", f"{command}; sleep 100"], tmp_path / "report", {}, 0.5)
    assert isinstance(late, TimedOut)
    assert late.after.startswith("step live; it printed: 1\n2\n")
    assert late.after.endswith("\n3000")


def test_a_process_that_leaves_the_group_holds_nobody_up() -> None:
    done = processes.run_process(["sh", "-c", "setsid sleep 20 & echo there"], 10)
    assert (done.code, done.output) == (0, b"there\n")


def test_a_worker_prints_into_no_file(tmp_path: Path) -> None:
    worker = Worker(["sh", "-c", f"read folder; {FLOOD} >&2; exit 7"], dict(os.environ))
    crashed = worker.execute(tmp_path, tmp_path / "report", {}, 60)
    assert isinstance(crashed, Crashed)
    assert crashed.kind == "exit 7"
    assert "first" in crashed.message
    assert crashed.message.endswith("last")


def test_a_log_of_a_sanitizer_that_is_cut_is_not_clean(softmax_project: Path, audit: Audit) -> None:
    """What a kernel writes on its standard error goes into the sanitizer's log."""
    source = softmax_project / "kernels/fast.cu"
    old = "const int t = threadIdx.x;"
    text = source.read_text()
    shout = f"for (int i = 0; t == 0 && i < {SIZE // 5_000}; ++i) write(2, in, 5000);"
    declared = 'extern "C" long write(int, const void*, unsigned long);\n'
    source.write_text(declared + text.replace(old, f"{old} {shout}"))
    ran = audit(softmax_project, "sanitize", "--tool", "memcheck", "--variant", "fast")
    assert ran.code == 3, ran.out + ran.err
    assert "unknown line" in ran.out


def test_a_kernel_that_prints(softmax_project: Path) -> None:
    source = softmax_project / "kernels/fast.cu"
    old = "const int t = threadIdx.x;"
    line = "x" * 200
    count = SIZE // (7 * len(line))
    source.write_text(
        source.read_text().replace(old, f'{old} if (t == 0) for (int i = 0; i < {count}; ++i) printf("{line}\\n");')
    )
    for words in (("run", "--axis", "n=1"), ("sanitize", "--tool", "memcheck")):
        done = subprocess.run(
            [sys.executable, "-c", _PEAK, *words, "--variant", "fast"],
            cwd=softmax_project, capture_output=True, text=True, timeout=500, check=False,
        )  # fmt: skip
        code, peak = map(int, done.stdout.splitlines()[-1].split())
        assert code == 0, done.stdout + done.stderr
        assert peak < 400 * 1024  # KiB, of the largest process


_PEAK = """
import resource, subprocess, sys
code = subprocess.run([sys.executable, "-m", "audit", *sys.argv[1:]]).returncode
print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
