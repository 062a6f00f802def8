"""Planted faults: a copy of the project with one defect is audited. The named check must fail, the clean twin pass.

This is the audit of the audit. A fault is a data file (`fixtures/faults/*.toml`); a new file extends the catalogue.
"""

from __future__ import annotations

import shutil
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
from audit.scratch import scratch_folder
from audit.spec import AxisValue

_ON_CPU = tuple(check.name for check in CATALOGUE if not check.needs_gpu)


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One defect: in `file`, `find` (which occurs exactly once) becomes `replace`, and `check` must catch it.

    `check` names a check (`error`) or one of its bounds (`error:lse`).
    """

    name: str
    what: str
    kind: str
    check: str
    file: str
    find: str
    replace: str
    shape: str
    variant: str  # the variant with the fault; its parents run too
    axes: dict[str, tuple[AxisValue, ...]] = {}
    probes: tuple[str, ...] = ()
    captures: tuple[str, ...] = ()
    detail: str = ""  # text that a failed result's detail must contain
    time_limit: float = 60.0

    @property
    def selection(self) -> Selection:
        """The cases in which the check must catch the fault."""
        return Selection(self.axes, (self.variant,), self.captures or (), self.probes or ())


class Trial(msgspec.Struct, frozen=True):
    """The result of one planted fault: failed results by check, and the verdict of the clean twin."""

    fault: Fault
    failed: dict[str, int]
    twin: Verdict
    caught: bool  # by the named check, with `detail` in its text, and the twin is clean
    seconds: float


def load_faults(folder: Path) -> list[Fault]:
    """Every fault of a folder, by name. Raises ProjectError for a malformed file."""
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
    """Plant each fault in its own copy of the project, then audit it and its clean twin."""
    # The worst verdict of all audits, not the run's: a narrow plan may be vacuous, which does not speak against a twin.
    twins: dict[bytes, Verdict] = {}
    trials = []
    for fault in faults:
        began = time.monotonic()
        key = msgspec.json.encode([fault.shape, fault.selection])
        if key not in twins:
            twins[key] = worst([audit.verdict for audit in _audit(project, fault, planted=False).audits])
        record = _audit(project, fault, planted=True)
        trial = _judge(fault, record, twins[key], time.monotonic() - began)
        trials.append(trial)
        on_trial(trial)
    return trials


def trial_matrix(trials: Sequence[Trial]) -> str:
    """A text table of faults and checks: the number of failed results, with the named check in brackets."""
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
    with scratch_folder() as scratch:
        copy = scratch / "project"
        _copy(project, copy)
        if planted:
            _plant(copy, fault)
        found = find_project(copy)
        limit = fault.time_limit if planted else max(60.0, fault.time_limit)
        plan = planning.make_plan(found, fault.shape, fault.selection, arch="sm_90", time_limit=limit)
        return run(found, plan, scratch / "runs", "audit faults")[0]


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
            f"fault {fault.name}: expected the text of `find` exactly once in {fault.file}, but found it {count} times"
        )
    source.write_text(text.replace(fault.find, fault.replace), encoding="utf-8")


def _judge(fault: Fault, record: RunRecord, twin: Verdict, seconds: float) -> Trial:
    failed: dict[str, int] = {}
    named_check_failed = False
    for audit in record.audits:
        for result in audit.results:
            if result.verdict == "fail":
                check = result.check.partition(":")[0]
                failed[check] = failed.get(check, 0) + 1
                if fault.check in (check, result.check) and fault.detail in result.detail:
                    named_check_failed = True
    caught = record.summary.verdict == "fail" and named_check_failed and twin == "pass"
    return Trial(fault, failed, twin, caught, round(seconds, 1))


def third(faults: Sequence[Fault], turn: int) -> list[Fault]:
    """Every third fault, beginning at `turn` modulo 3: three consecutive turns try them all."""
    return list(faults[turn % 3 :: 3])


def trial_counts(trials: Sequence[Trial]) -> Mapping[str, int]:
    """The numbers of faults tried and caught."""
    return {"tried": len(trials), "caught": sum(trial.caught for trial in trials)}
