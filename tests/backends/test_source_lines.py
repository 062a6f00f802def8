"""Addresses in a message become lines of the source, and threads at one line are one group."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from audit.backends.source_lines import with_lines
from audit.compile.host import build_host

SOURCE = """#include "absent_or_not.h"
__global__ void k(volatile int* p) {
  while (*p == 0) {
  }
}
"""


def stopped(folder: Path) -> tuple[str, Path]:
    """What a program says at its time limit, and the program."""
    (folder / "absent_or_not.h").write_text("// nothing\n")
    (folder / "k.cu").write_text(SOURCE)
    program = build_host(folder, folder / "k.cu", ["k"]).executable
    (folder / "p").write_bytes(bytes(64))
    lines = ["kernel-audit-host 1", "report r", "limit 1500", "buffer p p 0 64", "launch 0 1 1 1 4 1 1 0 1 p:p+0", ""]
    (folder / "script").write_text("\n".join(lines))
    done = subprocess.run([program, folder / "script"], check=False, timeout=60, capture_output=True)
    assert done.returncode == 3
    return (folder / "r").read_text().splitlines()[-1], program


def test_a_program_says_where_its_threads_are(tmp_path: Path) -> None:
    said, program = stopped(tmp_path)
    assert re.match(r"error wait kernel k, block \(0, 0, 0\): thread", said)
    assert with_lines(said, program).endswith(": threads 0-3 at k.cu:3 `while (*p == 0) {`")


def test_what_is_no_address_stays(tmp_path: Path) -> None:
    _, program = stopped(tmp_path)
    for message in ("", "launch 0 k 1 1", "threads 0-3 at __syncthreads (k.cu:4)", "thread 1 at @ffffffff"):
        assert with_lines(message, program) == message
    assert with_lines("threads 2, 4 had no turn yet; thread 1 exited", program) == (
        "threads 2, 4 had no turn yet; thread 1 exited"
    )
    assert with_lines("thread 1 at __syncwarp (k.cu:4); threads 3, 5-6 exited", program) == (
        "thread 1 at __syncwarp (k.cu:4); threads 3, 5-6 exited"
    )
