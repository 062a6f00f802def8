"""Verdict words have colour on a terminal; none in a pipe or with NO_COLOR."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from audit.cli.terminal import coloured

from ..conftest import ROOT

SAY = "from audit.cli.terminal import echo; echo('fail         bytes: x\\n             fail again\\npass: 3 of 3')"


def on_a_terminal(*words: str, folder: Path = ROOT, **environment: str) -> str:
    """What a Python command writes where stdout is a terminal."""
    ours, theirs = pty.openpty()
    env = {**{name: value for name, value in os.environ.items() if name != "NO_COLOR"}, **environment}
    process = subprocess.Popen(
        [sys.executable, *words], stdout=theirs, stderr=subprocess.DEVNULL, cwd=folder, env={"TERM": "xterm", **env}
    )
    os.close(theirs)
    written = b""
    while True:
        try:
            block = os.read(ours, 4096)
        except OSError:  # Linux says so where the last writer has closed a terminal
            break
        if not block:
            break
        written += block
    os.close(ours)
    process.wait(timeout=60)
    return written.decode().replace("\r\n", "\n")


def test_verdict_words_have_colour_on_a_terminal() -> None:
    red, green, plain = "\x1b[31m\x1b[1m", "\x1b[32m\x1b[1m", "\x1b[0m"
    assert on_a_terminal("-c", SAY) == (
        f"{red}fail{plain}         bytes: x\n             fail again\n{green}pass{plain}: 3 of 3\n"
    )


def test_no_color_is_obeyed() -> None:
    assert "\x1b" not in on_a_terminal("-c", SAY, NO_COLOR="1")
    assert "\x1b" in on_a_terminal("-c", SAY, NO_COLOR="")  # as https://no-color.org has it


def test_there_is_no_colour_in_a_pipe() -> None:
    done = subprocess.run([sys.executable, "-c", SAY], capture_output=True, check=True, cwd=ROOT)
    assert done.stdout == b"fail         bytes: x\n             fail again\npass: 3 of 3\n"


def test_a_command_has_colour_on_a_terminal(softmax_project: Path) -> None:
    settings = softmax_project / "pyproject.toml"
    policy = '[[tool.kernel-audit.gate.everyday.audits]]\nshapes = ["softmax"]\n'
    settings.write_text(f"{settings.read_text()}\n{policy}")
    yellow = "\x1b[33m\x1b[1minconclusive\x1b[0m"
    words = ("-m", "audit", "gate", "--no-run", "--project", str(softmax_project))
    written = on_a_terminal(*words)
    assert f"{yellow} audits softmax on host" in written
    assert written.splitlines()[-1].startswith(f"{yellow}: of ")
    file = softmax_project / "gate.txt"
    on_a_terminal(*words, "--output", str(file))
    assert "\x1b" not in file.read_text()


@pytest.mark.parametrize("text", ["passed all", "failing", "the pass", "warned"])
def test_a_word_that_is_no_verdict_stays_plain(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert coloured("pass") != "pass"
    assert coloured(text) == text
