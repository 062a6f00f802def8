"""The process in which `pytest --audit` runs code of the project: nothing there can end pytest, or its exit code.

It gets orders as lines of JSON on its standard input, and answers each on a descriptor of its own. One that is gone
without an answer was ended by code of the project: that is an error, whatever exit code it chose.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import msgspec

from audit.case import audit_case
from audit.copies import without_copies
from audit.errors import AuditError, ProjectError
from audit.hooks import project_line
from audit.plan import Plan, Selection, make_plan, planned_variants
from audit.printable import printable
from audit.processes import PARENT, end_with_parent, package_environment
from audit.project import Project, project_in
from audit.records.run import Audit

_MODULE = "audit.pytest_worker"
_PATIENCE = 5.0  # seconds for a process that has no more orders


class Order(msgspec.Struct, frozen=True):
    """What the process is to do: plan shapes (all, where none is named), or audit variants of a planned case."""

    shapes: tuple[str, ...] = ()
    case: str = ""
    variants: tuple[str, ...] = ()
    time_limit: float = 120.0  # seconds, for one variant in one case


class Answer(msgspec.Struct, frozen=True):
    """The plans or the audits; `error` is what the user has to mend, `bug` a traceback of the tool."""

    plans: tuple[Plan, ...] = ()
    audits: tuple[Audit, ...] = ()
    error: str = ""
    bug: str = ""


class PytestWorker:
    """The process, as pytest sees it. It starts with the first order."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._process: subprocess.Popen[bytes] | None = None
        self._answers = -1
        self._busy = False

    def plans(self, shapes: Sequence[str], time_limit: float) -> tuple[Plan, ...]:
        """The default plans of some shapes, or of all. Raises AuditError."""
        return self._answer(Order(tuple(shapes), time_limit=time_limit)).plans

    def audits(self, shape: str, case: str, variants: Sequence[str]) -> tuple[Audit, ...]:
        """The audits of some variants in a case of a plan that was made, and of their parents. Raises AuditError."""
        return self._answer(Order((shape,), case, tuple(variants))).audits

    def end(self) -> None:
        """End the process, and with it what it runs."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        _exit_code(process, 0.0 if self._busy else _PATIENCE)  # with an order at hand: pytest was interrupted
        os.close(self._answers)

    def _answer(self, order: Order) -> Answer:
        process = self._process or self._start()
        assert process.stdin
        self._busy = True
        line = b""
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(msgspec.json.encode(order) + b"\n")
            process.stdin.flush()
            line = _line(self._answers, process.pid)
        self._busy = False
        if not line.endswith(b"\n"):
            code = _exit_code(process, _PATIENCE)
            how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit status {code}"
            raise ProjectError(
                f"the process that runs the project's code {how} before it gave an answer; look for code of the "
                "project that ends the process, and for a machine without memory"
            )
        answer = msgspec.json.decode(line, type=Answer)
        if answer.bug:
            raise RuntimeError(answer.bug)
        if answer.error:
            raise AuditError(answer.error)
        return answer

    def _start(self) -> subprocess.Popen[bytes]:
        reading, writing = os.pipe()
        words = [str(writing), str(self._root), os.pathsep.join(sys.path)]
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", _MODULE, *words],
            stdin=subprocess.PIPE,
            pass_fds=(writing,),
            start_new_session=True,
            env={"OPENBLAS_NUM_THREADS": "1", **package_environment(), PARENT: str(os.getpid())},
        )
        os.close(writing)
        self._process, self._answers = process, reading
        return process


def _line(descriptor: int, process: int) -> bytes:
    """One line; or what came before the process ended, though a process that it has forked holds the pipe open."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    alive = None
    with contextlib.suppress(OSError):  # an old kernel, or gone already
        poll.register(alive := os.pidfd_open(process), select.POLLIN)
    line = b""
    try:
        while not line.endswith(b"\n"):
            if descriptor not in dict(poll.poll()):
                break
            if not (part := os.read(descriptor, 1 << 20)):
                break
            line += part
    finally:
        if alive is not None:
            os.close(alive)
    return line


def _exit_code(process: subprocess.Popen[bytes], patience: float) -> int:
    """The exit code of a process, which is killed where it does not end by itself."""
    try:
        return process.wait(patience)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.wait()


def serve(orders: IO[bytes], answers: IO[bytes], root: Path) -> None:
    """Answer every order, to the last."""
    project = project_in(root)
    plans: dict[str, Plan] = {}
    for line in orders:
        answer = _answered(project, plans, msgspec.json.decode(line, type=Order))
        answers.write(msgspec.json.encode(answer) + b"\n")
        answers.flush()


def _answered(project: Project, plans: dict[str, Plan], order: Order) -> Answer:
    try:
        if order.case:
            return Answer(audits=_audits(project, plans[order.shapes[0]], order))
        for shape in order.shapes or project.shapes():
            plans[shape] = make_plan(project, shape, Selection(), arch="sm_90", time_limit=order.time_limit)
        return Answer(plans=tuple(plans.values()))
    except AuditError as error:
        return Answer(error=printable(str(error)))
    except SystemExit as error:
        return Answer(error=printable(f"{project_line(error)}: SystemExit: {error}"))
    except Exception:
        return Answer(bug=printable(traceback.format_exc()))


def _audits(project: Project, plan: Plan, order: Order) -> tuple[Audit, ...]:
    case = next(case for case in plan.cases if case.id == order.case)
    variants = planned_variants(project.operators[plan.operator], order.variants)
    narrowed = msgspec.structs.replace(
        plan, cases=(case,), variants=variants, pruned=plan.pruned or variants != plan.variants
    )
    outcome = audit_case(project, narrowed, case, threads=os.cpu_count() or 1)
    if len(plan.cases) > 1:
        return outcome.audits
    return without_copies(narrowed, outcome.audits, outcome.builds)


def main() -> None:
    """Serve pytest; the words name the descriptor of the answers, the project's folder, and where modules are found."""
    answers, root, path = sys.argv[1:]
    sys.path[:] = path.split(os.pathsep)
    end_with_parent()
    orders = os.fdopen(os.dup(0), "rb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # the orders are not for code of the project
    os.close(nothing)
    with os.fdopen(int(answers), "wb") as writing:
        os.set_inheritable(writing.fileno(), False)
        serve(orders, writing, Path(root))


if __name__ == "__main__":
    main()
