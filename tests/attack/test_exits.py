"""Code of a project that ends the process, takes its streams or forks: no command ends with 0 without its verdict."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from audit.errors import ProjectError
from audit.hooks import Interruption, call
from audit.spec import Case

from ..conftest import Ran
from ..test_pytest_plugin import _PLUGIN

Audit = Callable[..., Ran]
FILE = "kernels/softmax.py"
RUN = ("run", "--axis", "n=1", "--variant", "fast")

# What raises, or would end the process from Python: the message names the line.
NAMED = {
    "sys.exit": "import sys; sys.exit(0)",
    "raise": "raise SystemExit",
    "exit": "exit()",
    "os._exit": "import os; os._exit(0)",
    "posix._exit": "from posix import _exit; _exit(0)",
    "interrupt": "raise KeyboardInterrupt",
    "generator": "raise GeneratorExit",
    "base": "raise BaseException('gone')",
    "abort": "import os; os.abort()",
    "crash": "import ctypes; ctypes.string_at(0)",
}
# What no Python code sees: the process is gone, or its report is.
GONE = {
    "kill": "import os; os.kill(os.getpid(), 9)",
    "kill the parent": "import os; os.kill(os.getppid(), 9)",
    "native _exit": "import ctypes; ctypes.CDLL(None)._exit(0)",
    "native exit": "import ctypes; ctypes.CDLL(None).exit(0)",
    "close all": "import os; os.closerange(3, 256)",
    "exec": "import os; os.execv('/bin/true', ['true'])",
}
# What changes the process for the worse and lets it go on.
HARMLESS = {
    "close 1": "import os; os.close(1)",
    "close streams": "import sys; sys.stdout.close(); sys.stderr.close()",
    "replace stdout": "import io, sys; sys.stdout = io.StringIO()",
    "patch exit": "import sys; sys.exit = lambda *_: None",
    "chdir": "import os; os.chdir('/')",
    "fork": "import os; os.fork()",
    "fork and leave": "import os; os.fork() or os._exit(0)",
    "thread": "import threading, time; threading.Thread(target=time.sleep, args=(1000,)).start()",
    "handlers": "import signal; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]",
    "at exit": "import atexit, os; atexit.register(os._exit, 0)",
    "exit in a thread": "import os, threading; threading.Thread(target=lambda: os._exit(0)).start()",
}
# Where a project's code runs: text of the declaration, and what takes its place.
HOOKS = {
    "inputs": ("inputs=lambda c, rng: {", "inputs=lambda c, rng: leave() or {"),
    "reference": ("    x = inputs", "    leave()\n    x = inputs"),
    "launches": ("launches=lambda c: [", "launches=lambda c: leave() or ["),
    "buffers": ("buffers=lambda c: [", "buffers=lambda c: leave() or ["),
    "steps": ("    bounds=", "    steps=lambda c, i: leave() or {'live': {}},\n    bounds="),
    "bound": ('RelL2("y", 1e-6)', 'Bound("y", lambda *_: leave())'),
    "mutation": ("    bounds=", "    mutations=[Mutation('m', lambda *_: leave())],\n    bounds="),
    "thread": ("inputs=lambda c, rng: {", "inputs=lambda c, rng: Thread(target=leave).start() or sleep(1) or {"),
}


def plant(project: Path, ending: str, hook: str = "") -> int:
    """End the process at the end of the module, or in a hook; the line of the ending."""
    source = project / FILE
    text = source.read_text()
    if not hook:
        source.write_text(f"{text}{ending}\n")
        return len(text.splitlines()) + 1
    old, new = HOOKS[hook]
    assert text.count(old) == 1, hook
    imported = ("threading import Thread", "time import sleep", "audit.spec import Bound, Mutation")
    head = "".join(f"from {words}\n" for words in imported) + f"def leave():\n    {ending}\n"
    source.write_text(head + text.replace(old, new))
    return 5


def refused(ran: Ran, *words: str) -> None:
    """Exit 2, a last line that says it, no verdict, no traceback of the tool."""
    assert ran.code == 2, ran.out + ran.err
    assert ran.out == ""
    last = ran.err.splitlines()[-1]
    assert last.startswith("audit: "), ran.err
    for word in words:
        assert word in last
    assert "bug in kernel-audit" not in ran.err


@pytest.mark.parametrize("ending", NAMED)
def test_the_line_that_ends_it_is_named(softmax_project: Path, audit: Audit, ending: str) -> None:
    line = plant(softmax_project, NAMED[ending])
    refused(audit(softmax_project, "list"), f"softmax.py:{line}")


@pytest.mark.parametrize("ending", GONE)
def test_a_process_that_is_gone_has_no_verdict(softmax_project: Path, audit: Audit, ending: str) -> None:
    plant(softmax_project, GONE[ending])
    ran = audit(softmax_project, "list")
    assert ran.code == 2, ran.err
    assert ran.err.splitlines()[-1].startswith("audit: ")
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("change", HARMLESS)
def test_what_it_changes_does_not_cost_the_verdict(softmax_project: Path, audit: Audit, change: str) -> None:
    plain = audit(softmax_project, "list")
    plant(softmax_project, HARMLESS[change])
    ran = audit(softmax_project, "list")
    assert (ran.code, ran.out) == (0, plain.out), ran.err


@pytest.mark.parametrize("hook", [hook for hook in HOOKS if hook != "thread"])
def test_a_hook_that_ends_it_is_named(softmax_project: Path, audit: Audit, hook: str) -> None:
    line = plant(softmax_project, NAMED["os._exit"], hook)
    refused(audit(softmax_project, *RUN), f"softmax.py:{line}", "os._exit(0)")


def test_a_thread_of_a_hook(softmax_project: Path, audit: Audit) -> None:
    plant(softmax_project, NAMED["os._exit"], "thread")
    ran = audit(softmax_project, *RUN)
    assert (ran.code, "2 passed" in ran.out) == (0, True), ran.err


def test_a_thread_of_a_hook_that_is_gone(softmax_project: Path, audit: Audit) -> None:
    plant(softmax_project, GONE["native _exit"], "thread")
    refused(audit(softmax_project, *RUN), "ended with exit status 0 before it wrote a verdict")


@pytest.mark.parametrize("command", ["run", "sanitize", "bench", "gate", "list", "faults"])
def test_every_command(softmax_project: Path, audit: Audit, command: str) -> None:
    with (softmax_project / "pyproject.toml").open("a") as table:
        table.write(
            'faults = "faults"\n[tool.kernel-audit.gate.everyday]\n[[tool.kernel-audit.gate.everyday.audits]]\n'
        )
        table.write('shapes = ["softmax"]\n')
    (softmax_project / "faults").mkdir()
    (softmax_project / "faults/one.toml").write_text(
        'what = "w"\nkind = "k"\ncheck = "bytes"\nfile = "kernels/wrong.cu"\nfind = "softmax_wrong"\n'
        'replace = "x"\nshape = "softmax"\nvariant = "wrong"\n'
    )
    line = plant(softmax_project, NAMED["os._exit"])
    refused(audit(softmax_project, command), f"softmax.py:{line}")


EVERYDAY = [("native _exit", ""), ("native _exit", "inputs"), ("kill", "launches"), ("exec", "reference")]


@pytest.mark.parametrize(
    ("ending", "place"),
    [
        pytest.param(ending, place, marks=() if (ending, place) in EVERYDAY else pytest.mark.full)
        for ending in GONE
        for place in ("", "inputs", "reference", "launches", "thread")
    ],
)
def test_pytest_is_not_ended_by_what_is_gone(softmax_project: Path, ending: str, place: str) -> None:
    plant(softmax_project, GONE[ending], place)
    done = under_pytest(softmax_project)
    if ending == "kill the parent":
        assert done.returncode != 0
        return
    assert done.returncode == 2, done.stdout + done.stderr
    assert "the process that runs the project's code " in done.stdout
    assert "INTERNALERROR" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("ending", "hook"),
    [
        pytest.param(ending, hook, marks=() if (ending == "os._exit") == (hook == "inputs") else pytest.mark.full)
        for ending in ("sys.exit", "os._exit")
        for hook in ("", "inputs", "launches")
    ],
)
def test_pytest(softmax_project: Path, ending: str, hook: str) -> None:
    plant(softmax_project, NAMED[ending], hook)
    done = under_pytest(softmax_project)
    assert done.returncode in (1, 2), done.stdout + done.stderr
    assert "softmax.py:" in done.stdout


def under_pytest(softmax_project: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", *_PLUGIN, "--audit", "-x"],
        cwd=softmax_project, capture_output=True, text=True, timeout=120, env=dict(os.environ), check=False,
    )  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("ending", [*NAMED, *GONE])
def test_every_ending_in_every_hook(softmax_project: Path, audit: Audit, ending: str, hook: str) -> None:
    plant(softmax_project, {**NAMED, **GONE}[ending], hook)
    ran = audit(softmax_project, *RUN)
    if hook == "thread" and ending in NAMED and ending not in ("abort", "crash"):
        assert (ran.code, "2 passed" in ran.out) == (0, True), ran.err
    else:
        refused(ran)


def test_an_interruption_by_the_user_is_none_of_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    case = Case("softmax", "softmax", {})
    monkeypatch.setattr(Interruption, "watched", True)
    with pytest.raises(ProjectError, match="inputs raised KeyboardInterrupt"):
        call(case, "inputs", interrupt)
    monkeypatch.setattr(Interruption, "came", True)
    with pytest.raises(KeyboardInterrupt):
        call(case, "inputs", interrupt)
