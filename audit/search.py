"""Looks beyond a plan for a case that fails: other sizes, seeds and input families, drawn by hypothesis.

A drawn case runs with all input families. The one that is found is made smaller, axis by axis, for as long as it still
fails. What is drawn follows from a seed alone; the time that is left only decides when to stop.
"""

from __future__ import annotations

import math
import os
import random
import shlex
import time
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from audit.backends import cuda
from audit.case import audit_case
from audit.declaration import buffers_of
from audit.default_plan import affordable, names
from audit.errors import AuditError, PlanError, ToolMissing
from audit.families import FLOATS, is_draw
from audit.plan import Plan
from audit.project import Project
from audit.spec import Axis, AxisValue, Case, Families, Operator, Shape

_UNITS: Mapping[str, float] = {"s": 1, "m": 60, "h": 3600}
_EDGES = (1, 2, 31, 32, 33, 63, 65, 127, 129, 255, 257, 1023, 1025)
_WIDEST = 4096
_SEEDS = 9999
_STEPS = 33
_SHRINKING = 0.5
"""The share of the time that making a case smaller may take beyond the rest."""


class SearchedCase(msgspec.Struct, frozen=True):
    """One case that a search runs; `family` is empty for the operator's own steps, `negative`, or `negative:x` for the
    buffer x alone."""

    axes: tuple[tuple[str, AxisValue], ...]
    seed: int
    family: str

    @property
    def options(self) -> list[str]:
        """The options of `audit run` that run this case."""
        axes = [word for name, value in self.axes for word in ("--axis", f"{name}={value}")]
        return [*axes, "--seed", str(self.seed), "--family", self.family or "none"]


class SearchOutcome(msgspec.Struct, frozen=True):
    """What a search did: the cases that it drew and ran, those that the project refused, the smallest that fails."""

    tried: int
    refused: int
    seconds: float
    extent: str
    found: SearchedCase | None = None
    case: Case | None = None
    interrupted: bool = False

    def command(self, shape: str, *more: str) -> str:
        """The command that runs the case that was found."""
        return shlex.join(["audit", "run", "--shape", shape, *(self.found.options if self.found else ()), *more])


def seconds_of(text: str) -> float:
    """The seconds of `90`, `60s`, `5m` or `1h`. Raises PlanError for any other text."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "s")
    try:
        seconds = float(number) * _UNITS[unit]
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= 7 * 24 * 3600:
        raise PlanError(f"--search: expected a time such as 60s, 5m or 1h, of at most a week, but got {text!r}")
    return seconds


class _OutOfTime(BaseException):
    """Ends a search; hypothesis takes no such exception for a failure."""


class _Search:
    """The state of one search: what has been tried, and the smallest case that fails."""

    def __init__(self, project: Project, plan: Plan, seconds: float) -> None:
        self.project, self.plan = project, plan
        self.operator, self.shape = project.shape(plan.shape)
        self.began = time.monotonic()
        self.until = self.began + seconds
        self.families = tuple(_families(self.operator, self.shape))
        self.drawn: set[SearchedCase] = set()
        self.verdicts: dict[SearchedCase, bool] = {}
        self.refused = 0
        self.found: SearchedCase | None = None

    def case(self, trial: SearchedCase) -> Case:
        """The case of a trial."""
        case = self.operator.case(self.shape, dict(trial.axes), seed=trial.seed)
        families = (trial.family,) if trial.family else ()
        return msgspec.structs.replace(case, arch=self.plan.arch, families=families)

    def explore(self, trial: SearchedCase) -> bool:
        """Whether the case fails with all input families at once, and then with one of them, or none, alone."""
        if self.found is not None or time.monotonic() > self.until:
            raise _OutOfTime
        self.drawn.add(trial)
        case = msgspec.structs.replace(self.case(trial), families=self.families)
        failed = self._failed(case)
        steps = list(dict.fromkeys(step for step in failed if step in self.families)) or list(self.families)
        return bool(failed) and any(
            self.fails(msgspec.structs.replace(trial, family=family)) for family in ("", *steps)
        )

    def fails(self, trial: SearchedCase) -> bool:
        """Whether some variant fails in the case; each is run once. A case that the project refuses does not fail."""
        if trial in self.verdicts:
            return self.verdicts[trial]
        if time.monotonic() > self.until:
            raise _OutOfTime
        self.verdicts[trial] = bool(self._failed(self.case(trial)))
        if self.verdicts[trial] and self.found is None:
            self.found = trial
        return self.verdicts[trial]

    def _failed(self, case: Case) -> list[str]:
        """The step of each result that fails; empty for one that concerns the whole case."""
        try:
            if affordable(self.operator, case) < 1:
                self.refused += 1
                return []
            plan = msgspec.structs.replace(self.plan, cases=(case,), described={}, reduced={}, family_seconds=None)
            outcome = audit_case(self.project, plan, case, threads=os.cpu_count() or 1)
        except AuditError:
            self.refused += 1
            return []
        baselines = {variant.label for variant in plan.variants if variant.baseline_only}
        judged = [audit for audit in outcome.audits if audit.variant not in baselines]
        return [result.step for audit in judged for result in audit.results if result.verdict == "fail"]

    def shrink(self) -> None:
        """Make the case that was found smaller, while it fails: the plain inputs, each axis, the seed."""
        assert self.found is not None
        self._try(msgspec.structs.replace(self.found, family=""))
        domains = {axis.name: _domain(axis) for axis in self.operator.axes if axis.name not in self.shape.fixed}
        again = True
        while again:
            before = self.found
            for name, domain in domains.items():
                self._shrink_axis(name, domain)
            again = self.found != before
        for seed in (1, 2, 3):
            if seed < self.found.seed and self._try(msgspec.structs.replace(self.found, seed=seed)):
                break

    def _shrink_axis(self, name: str, domain: range | tuple[AxisValue, ...]) -> None:
        """The first value of a small domain that fails; of a range the one that halving and small steps down reach."""
        assert self.found is not None
        now = dict(self.found.axes)[name]
        if not isinstance(domain, range) or not isinstance(now, int):
            for value in domain:
                if value == now or self._with(name, value):
                    return
            return
        at = (now - domain.start) // domain.step
        if self._with(name, domain.start):
            return
        low = 0  # passes; the value at `at` fails
        while at - low > 1:
            middle = (low + at) // 2
            if self._with(name, domain[middle]):
                at = middle
            else:
                low = middle
        # What fails may fail at every seventh size alone, which halving passes over.
        while lower := next(
            (at - down for down in range(2, min(at, _STEPS)) if self._with(name, domain[at - down])), 0
        ):
            at = lower

    def _with(self, name: str, value: AxisValue) -> bool:
        assert self.found is not None
        axes = tuple((axis, value if axis == name else one) for axis, one in self.found.axes)
        return self._try(msgspec.structs.replace(self.found, axes=axes))

    def _try(self, trial: SearchedCase) -> bool:
        if not self.fails(trial):
            return False
        self.found = trial
        return True


def search(project: Project, plan: Plan, seconds: float, seed: int = 0) -> SearchOutcome:
    """Run cases beyond a plan for so many seconds, or until one fails, and make that one as small as it gets.

    Raises ToolMissing without hypothesis. An interruption ends the search and keeps what it has found.
    """
    try:
        from hypothesis import HealthCheck, Phase, Verbosity, find, settings
        from hypothesis.errors import NoSuchExample
    except ImportError:
        raise ToolMissing("--search needs hypothesis: pip install 'kernel-audit[search]'") from None
    state = _Search(project, plan, seconds)
    interrupted = False
    chosen = settings(
        database=None, deadline=None, max_examples=1_000_000, phases=(Phase.generate,), verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # hypothesis warns where every case has been tried
            find(_trials(state), state.explore, settings=chosen, random=random.Random(seed))
    except (NoSuchExample, _OutOfTime):
        pass
    except KeyboardInterrupt:
        interrupted = True
    if state.found is not None and not interrupted:
        state.until = time.monotonic() + max(10.0, _SHRINKING * seconds)
        try:
            state.shrink()
        except _OutOfTime:
            pass
        except KeyboardInterrupt:
            interrupted = True
    if plan.backend == "cuda":
        cuda.release()
    return SearchOutcome(
        tried=len(state.drawn) - state.refused,
        refused=state.refused,
        seconds=round(time.monotonic() - state.began, 1),
        extent=_extent(state),
        found=state.found,
        case=state.case(state.found) if state.found else None,
        interrupted=interrupted,
    )


def plan_of(plan: Plan, case: Case) -> Plan:
    """The plan of the one case that a search found."""
    return msgspec.structs.replace(plan, cases=(case,), described={}, reduced={}, family_seconds=None, pruned=True)


def _trials(state: _Search) -> Any:
    """The strategy that draws trials: sizes at edges and between them, and seeds."""
    from hypothesis import strategies as st

    operator, shape = state.operator, state.shape
    axes = {}
    for axis in operator.axes:
        domain = _domain(axis) if axis.name not in shape.fixed else (shape.fixed[axis.name],)
        if isinstance(domain, range):
            edges = [value for size in _EDGES if (value := size * domain.step) in domain]
            between = st.integers(0, len(domain) - 1).map(domain.__getitem__)
            axes[axis.name] = st.one_of(st.sampled_from(edges), between) if edges else between
        else:
            axes[axis.name] = st.sampled_from(domain)
    free = [name for name in axes if name not in shape.fixed]
    return st.builds(
        lambda values, seed: SearchedCase(tuple((name, values[name]) for name in free), seed, ""),
        st.fixed_dictionaries({name: axes[name] for name in free}),
        st.integers(1, _SEEDS),
    )


def _families(operator: Operator, shape: Shape) -> Iterator[str]:
    """The families, each also for every single floating-point input where there are several."""
    usual = names(operator.plan if isinstance(operator.plan, Families) else Families(seeds=1))
    yield from usual
    try:
        buffers = buffers_of(operator, operator.case(shape, {}, seed=1))
    except AuditError:
        return
    single = [buffer.name for buffer in buffers if buffer.role in ("in", "inout") and buffer.dtype in FLOATS]
    if len(single) > 1:
        yield from (f"{family}:{name}" for family in usual if not is_draw(family) for name in single)


def _domain(axis: Axis) -> range | tuple[AxisValue, ...]:
    """The values that an axis may take: the declared ones, an interval up to 4,096, or its default alone."""
    if axis.values:
        return tuple(sorted(axis.values, key=lambda value: (isinstance(value, str), value)))
    if axis.at_least is None and axis.at_most is None and axis.multiple_of is None:
        return (axis.default,)
    step = axis.multiple_of or 1
    low = -(-max(1, 1 if axis.at_least is None else axis.at_least) // step) * step
    default = axis.default if isinstance(axis.default, int) else 0
    high = min(math.inf if axis.at_most is None else axis.at_most, max(_WIDEST * step, default, low))
    return range(low, int(high) + 1, step)


def _extent(state: _Search) -> str:
    """What the cases covered, in words."""
    trials = state.drawn
    parts = []
    for axis in state.operator.axes:
        values = {value for trial in trials for name, value in trial.axes if name == axis.name}
        if len(values) > 1:
            numbers = [value for value in values if not isinstance(value, str)]
            span = f" from {min(numbers)} to {max(numbers)}" if len(numbers) == len(values) else ""
            parts.append(f"{len(values)} values of {axis.name}{span}")
    seeds = {trial.seed for trial in trials}
    return ", ".join([*parts, f"{len(seeds)} seeds", f"{len(state.families)} input families in each"])
