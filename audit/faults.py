"""Planted faults: a copy of the project with one defect, audited; the named check must fail, the clean twin pass.

This is the audit of the audit. A fault is a file of data (`fixtures/faults/*.toml`), so the catalogue grows by adding
files.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from audit import foreign
from audit import plan as planning
from audit.checks.catalogue import CATALOGUE
from audit.checks.result import Verdict, worst
from audit.errors import ProjectError
from audit.foreign import ForeignError
from audit.plan import Selection
from audit.printable import one_line
from audit.project import Project, find_project
from audit.records.run import RunRecord
from audit.run import run
from audit.spec import AxisValue

_ON_CPU = tuple(check.name for check in CATALOGUE if not check.needs_gpu)


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One defect: in `file`, `find` (which occurs exactly once) becomes `replace`; `check` must catch it.

    A check is `error`, or one bound of it: `error:lse`.
    """

    name: str
    what: str
    kind: str
    check: str
    file: str
    find: str
    replace: str
    shape: str
    variant: str  # the one that carries the fault; its parents run too
    axes: dict[str, tuple[AxisValue, ...]] = {}
    probes: tuple[str, ...] = ()
    captures: tuple[str, ...] = ()
    detail: str = ""  # words that a failed result's detail must contain
    time_limit: float = 60.0

    @property
    def selection(self) -> Selection:
        """The cases in which the fault is to be caught."""
        return Selection(self.axes, (self.variant,), self.captures or (), self.probes or ())


class Trial(msgspec.Struct, frozen=True):
    """What happened: the checks that failed (with how many results), and whether the clean twin passed."""

    fault: Fault
    failed: dict[str, int]
    twin: Verdict
    caught: bool  # by the named check, with the words asked for, and the twin is clean
    seconds: float


def load_faults(folder: Path) -> list[Fault]:
    """Every fault of a folder, by name. Raises ProjectError for a file that is malformed."""
    faults = []
    for path in sorted(folder.glob("*.toml")):
        try:
            fault = msgspec.convert({**foreign.read_toml(path), "name": path.stem}, Fault)
        except (ForeignError, msgspec.ValidationError) as error:
            raise ProjectError(f"{path}: {one_line(error)}") from None
        if fault.check.partition(":")[0] not in _ON_CPU:
            raise ProjectError(f"{path}: check: expected one of {', '.join(_ON_CPU)}, but got {fault.check!r}")
        faults.append(fault)
    return faults


def try_all(
    project: Project, faults: Sequence[Fault], on_trial: Callable[[Trial], None] = lambda _: None
) -> list[Trial]:
    """Plant each fault in a copy of its own, audit it and its clean twin."""
    twins: dict[bytes, Verdict] = {}  # of all audits; a narrow plan may be vacuous, which is no fault of the twin
    trials = []
    for fault in faults:
        began = time.monotonic()
        key = msgspec.json.encode([fault.shape, fault.selection])
        if key not in twins:
            twins[key] = worst([audit.verdict for audit in _audit(project, fault, planted=False).audits])
        evidence = _audit(project, fault, planted=True)
        trial = _judge(fault, evidence, twins[key], time.monotonic() - began)
        trials.append(trial)
        on_trial(trial)
    return trials


def matrix(trials: Sequence[Trial]) -> str:
    """Faults x checks as text: how many results failed, the named check in brackets."""
    checks = [check for check in _ON_CPU if any(check in (*trial.failed, _named(trial)) for trial in trials)]
    width = max(len(trial.fault.name) for trial in trials)
    lines = [" " * (width + 2) + " ".join(f"{check:>10}" for check in checks)]
    for trial in trials:
        cells = []
        for check in checks:
            count = str(trial.failed.get(check, "")) or "."
            cells.append(f"{f'[{count}]' if check == _named(trial) else count:>10}")
        state = (
            ""
            if trial.caught
            else f"  NOT CAUGHT by {trial.fault.check}"
            if trial.twin == "pass"
            else "  TWIN NOT CLEAN"
        )
        lines.append(f"{trial.fault.name:{width}}  {' '.join(cells)}{state}")
    return "\n".join(lines)


def _named(trial: Trial) -> str:
    return trial.fault.check.partition(":")[0]


def _audit(project: Project, fault: Fault, *, planted: bool) -> RunRecord:
    with tempfile.TemporaryDirectory(prefix="kernel-audit-fault-") as scratch:
        copy = Path(scratch) / "project"
        _copy(project, copy)
        if planted:
            _plant(copy, fault)
        found = find_project(copy)
        limit = fault.time_limit if planted else max(60.0, fault.time_limit)
        plan = planning.make_plan(found, fault.shape, fault.selection, arch="sm_90", time_limit=limit)
        return run(found, plan, Path(scratch) / "runs", "audit faults")[0]


def _copy(project: Project, to: Path) -> None:
    to.mkdir()
    shutil.copy(project.root / "pyproject.toml", to)
    settings = project.settings
    for folder in (settings.kernels, settings.references, settings.captures):
        if folder:
            shutil.copytree(project.root / folder, to / folder, ignore=shutil.ignore_patterns("__pycache__"))


def _plant(copy: Path, fault: Fault) -> None:
    source = copy / fault.file
    if not source.resolve().is_relative_to(copy.resolve()) or not source.is_file():
        raise ProjectError(f"fault {fault.name}: expected a file of the project, but got {fault.file!r}")
    text = source.read_text(encoding="utf-8")
    if (count := text.count(fault.find)) != 1:
        raise ProjectError(
            f"fault {fault.name}: expected its text exactly once in {fault.file}, but found it {count} times"
        )
    source.write_text(text.replace(fault.find, fault.replace), encoding="utf-8")


def _judge(fault: Fault, evidence: RunRecord, twin: Verdict, seconds: float) -> Trial:
    failed: dict[str, int] = {}
    told = False
    for audit in evidence.audits:
        for result in audit.results:
            if result.verdict == "fail":
                check = result.check.partition(":")[0]
                failed[check] = failed.get(check, 0) + 1
                told = told or (fault.check in (check, result.check) and fault.detail in result.detail)
    caught = evidence.summary.verdict == "fail" and told and twin == "pass"
    return Trial(fault, failed, twin, caught, round(seconds, 1))


def third(faults: Sequence[Fault], turn: int) -> list[Fault]:
    """Every third fault, beginning at `turn` modulo 3: three turns in a row try them all."""
    return list(faults[turn % 3 :: 3])


def summary(trials: Sequence[Trial]) -> Mapping[str, int]:
    """How many faults were tried and how many caught."""
    return {"tried": len(trials), "caught": sum(trial.caught for trial in trials)}
