"""The command runs in a child process: no code of a project ends the tool with an exit code of its own, and nothing
that the command has started outlives it.

    tool (what the shell waits for) -> keeper -> command -> compilers, kernels, sanitizers

The command reports its exit code through a pipe as the last thing that it does; one that ends without a report was
ended by something else. The tool passes signals on. The keeper, in a process group of its own, ends every process that
is left when the command or the tool ends, and removes the folders that they leave. Whichever of the three is killed,
another one does that; where all are killed at once, kernels end with the command, and the next run removes the folders.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import sys
import time
import traceback
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

from audit import scratch
from audit.cli.exit_codes import INCONCLUSIVE, USAGE
from audit.errors import AuditError
from audit.hooks import Interruption
from audit.printable import printable

_SPARED = "KERNEL_AUDIT_SPARED"  # in the environment of a process that may outlive the command
_INTERRUPTIONS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
_TOOL_ENDED = signal.SIGUSR1
_PATIENCE = 5.0  # seconds between a signal and the command's end
_DEATH_LIMIT = 20.0  # seconds; a GPU's driver takes its time to let a process go
_INTERRUPTED = "interrupted; what was running left no record"
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_LINE = re.compile(r'File "(.+)", line (\d+)')  # as faulthandler writes it


def supervised(command: Callable[[], int]) -> int:
    """The exit code that `command` returns in a child process; USAGE where that ends without returning one."""
    if not _has_output():
        return _said("standard output is closed, so that no verdict can be written there; open it", USAGE)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where it is ignored, nobody learns how a child ended
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, *_heeded()})
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    reading, writing = os.pipe()
    tool, group = os.getpid(), os.getpgrp()
    try:
        keeper = os.fork()
        if keeper == 0:
            try:
                _keep(command, writing, tool, group)
            finally:
                os._exit(USAGE)
    except OSError as error:
        return _said(f"no process can be started: {error.strerror}; nothing was judged", USAGE)
    os.close(writing)
    code, interrupted = _relayed(keeper)
    if code < 0:  # the keeper was killed: what it would have done is done here
        end_descendants()
        scratch.sweep()
    os.set_blocking(reading, False)
    report = os.read(reading, 1 << 16).decode(errors="replace") if _readable(reading) else ""
    return _judged(report, code, interrupted)


def die_with(parent: int, number: int = signal.SIGKILL) -> None:
    """Have the kernel send this process a signal when its parent's thread ends; end at once where that has happened."""
    _prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(1)


def spare_children() -> None:
    """Let what this process starts from now on outlive the command: a browser."""
    os.environ[_SPARED] = "1"


def end_descendants() -> None:
    """Kill every child of this process, those that become its children by that too, but for those that are spared."""
    deadline = time.monotonic() + _DEATH_LIMIT
    while (left := [child for child in _children() if not _is_spared(child)]) and time.monotonic() < deadline:
        for child in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
        _reap()
        time.sleep(0.002)


def _has_output() -> bool:
    """Whether standard output is open. Descriptors 0 to 2 are, from then on: a file must not get their numbers."""
    closed = []
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)
            closed.append(descriptor)
    return 1 not in closed


def _heeded() -> list[signal.Signals]:
    """The signals that interrupt; not those that whoever started the tool has it ignore, as nohup does."""
    return [number for number in _INTERRUPTIONS if signal.getsignal(number) != signal.SIG_IGN]


def _relayed(keeper: int) -> tuple[int, bool]:
    """The keeper's exit code, negative where a signal ended it, and whether a signal was passed on to it."""
    interrupted = False
    while True:
        ended, status = os.waitpid(keeper, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status), interrupted
        number = signal.sigwait({signal.SIGCHLD, *_heeded()})
        if number != signal.SIGCHLD:
            interrupted = True
            os.kill(keeper, number)


def _keep(command: Callable[[], int], writing: int, tool: int, group: int) -> NoReturn:
    """Be the keeper of a command in a process of its own."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {_TOOL_ENDED})
    os.setpgid(0, 0)  # not in the terminal's group, nor in one that is killed as a whole
    die_with(tool, _TOOL_ENDED)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    keeper, child = os.getpid(), os.fork()
    if child == 0:
        _run(command, writing, keeper, group)
    os.close(writing)
    deadline = None
    while (status := _reap().get(child)) is None:
        left = max(0.0, deadline - time.monotonic()) if deadline else 3600.0
        came = signal.sigtimedwait({signal.SIGCHLD, _TOOL_ENDED, *_heeded()}, left)
        number = came.si_signo if came else signal.SIGKILL if deadline else signal.SIGCHLD
        if number == signal.SIGCHLD:
            continue
        deadline = deadline or time.monotonic() + _PATIENCE
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL if number == _TOOL_ENDED else number)
    end_descendants()
    scratch.sweep()
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def _run(command: Callable[[], int], writing: int, keeper: int, group: int) -> NoReturn:
    """Be the command."""
    from audit.cli.streams import claim_streams, require_delivered

    with contextlib.suppress(OSError):
        os.setpgid(0, group)
    die_with(keeper)
    own, leave = os.getpid(), os._exit
    import faulthandler

    faulthandler.enable(writing, all_threads=False)  # says where a crash came
    Interruption.watched = True
    heeded = _heeded()
    for number in heeded:
        signal.signal(number, _interrupt)
    code = INCONCLUSIVE
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD, _TOOL_ENDED, *heeded})
        output = claim_streams()
        code = command()
        if code != USAGE:
            require_delivered(output)
    except AuditError as error:
        code = _said(str(error), USAGE)
    except KeyboardInterrupt:  # as the command was about to end
        code = _said(_INTERRUPTED, INCONCLUSIVE)
    except BaseException:
        with contextlib.suppress(OSError):
            os.write(2, printable(traceback.format_exc()).encode())
        code = max(code, USAGE)
    finally:
        if os.getpid() == own:
            with contextlib.suppress(OSError):  # closed by code of the project
                os.write(writing, f"code {code}".encode())
        leave(code)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """Only the first signal interrupts: the second must not disturb what the first one set in motion."""
    if not Interruption.came:
        Interruption.came = True
        raise KeyboardInterrupt


def _judged(report: str, code: int, interrupted: bool) -> int:
    """The exit code of the tool."""
    word, _, rest = report.rpartition("\n")[2].partition(" ")
    if word == "code" and rest == str(code):
        return code
    if interrupted:
        return _said(_INTERRUPTED, INCONCLUSIVE)
    lines = _LINE.findall(report)
    own = [line for line in lines if not line[0].startswith((sys.prefix, sys.base_prefix))]
    where = f" ({':'.join((own or lines)[0])})" if lines else ""
    number = -code if code < 0 else code - 128
    if number in signal.valid_signals():
        how = f"was killed by {signal.Signals(number).name}"
    else:
        how = f"ended with exit status {code}"
    return _said(
        f"the command {how}{where} before it wrote a verdict; look for code of the project that ends the process, "
        "and for a machine without memory",
        USAGE,
    )


def _said(sentence: str, code: int) -> int:
    with contextlib.suppress(OSError):
        os.write(2, f"audit: {printable(sentence)}\n".encode())
    return code


def _readable(descriptor: int) -> bool:
    import select

    return bool(select.select([descriptor], [], [], 0)[0])


def _prctl(option: int, value: int) -> None:
    """Does nothing where the kernel does not know the option."""
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _reap() -> dict[int, int]:
    """The children that have ended, with their status."""
    found = {}
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            found[ended[0]] = ended[1]
    return found


def _children() -> list[int]:
    own, found = os.getpid(), []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                if int(file.read().rpartition(b")")[2].split()[1]) == own:
                    found.append(int(name))
    return found


def _is_spared(process: int) -> bool:
    with contextlib.suppress(OSError), open(f"/proc/{process}/environ", "rb") as file:
        return f"{_SPARED}=1".encode() in file.read().split(b"\0")
    return False
