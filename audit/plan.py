"""What will be run, decided and recorded before anything runs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from audit.capture.store import CaptureStore
from audit.checks import CHECKS
from audit.compile.host import check_arch
from audit.declaration import ask
from audit.errors import PlanError
from audit.project import Project
from audit.revision import project_at, resolve
from audit.spec import AxisValue, Case, Line, Operator, Shape

Backend = Literal["host", "cuda"]


class PlannedVariant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One variant of the plan; its parent, named by its label, comes before it, since its bytes are the measure."""

    name: str
    parent: str | None
    status: str
    source: str
    note: str = ""
    why: str = ""  # of a closed one
    evidence: tuple[str, ...] = ()  # what admits or closes it, as the project names it
    revision: str | None = None  # the commit whose sources it is built from; None: the working tree

    @property
    def label(self) -> str:
        """Its name in the plan: variants of another revision carry that revision."""
        return f"{self.name}@{self.revision[:12]}" if self.revision else self.name


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Cases x variants, by name, and the conditions under which they run."""

    shape: str
    operator: str
    backend: Backend
    arch: str
    tensor_cores: str  # how far the model of their arithmetic is to be trusted
    cases: tuple[Case, ...]
    described: dict[str, str]  # case -> what a reader should know of it, in the operator's words
    variants: tuple[PlannedVariant, ...]
    checks: tuple[str, ...]
    time_limit: float  # seconds, for one variant in one case
    pruned: bool  # true where options narrowed the default plan
    references: dict[str, str] = {}  # name -> its own error, as far as it is known

    @property
    def audits(self) -> int:
        """How many times a variant is to be audited in a case."""
        return len(self.cases) * len(self.variants)


class Selection(msgspec.Struct, frozen=True):
    """How a user narrows or adds to the default plan. Axis values narrow it to the cases that have them, and add a
    case where none has. Captures and probes are left out where axes or seeds are given, unless named. Empty or None
    means the default; `full` adds the lines that the default leaves out."""

    axes: Mapping[str, Sequence[AxisValue]] = {}
    variants: Sequence[str] = ()
    captures: Sequence[str] | None = None
    probes: Sequence[str] | None = None
    seeds: Sequence[int] = ()
    full: bool = False
    against: str | None = None


def make_plan(
    project: Project,
    shape_name: str,
    selection: Selection,
    *,
    arch: str,
    time_limit: float,
    backend: Backend = "host",
) -> Plan:
    """The plan of one shape; PlanError where the selection names what does not exist or is out of range."""
    operator, shape = project.shape(shape_name)
    cases = [
        *_generated(operator, shape, selection),
        *_probed(operator, shape, selection),
        *_captured(project, operator, shape, selection),
    ]
    if not cases:
        raise PlanError(f"shape {shape_name}: no case is left by the options given; widen them")
    return Plan(
        shape=shape.name,
        operator=operator.name,
        backend=backend,
        arch=arch,
        tensor_cores=check_arch(arch).standing,
        cases=tuple(msgspec.structs.replace(case, arch=arch) for case in cases),
        described={
            case.id: told for case in cases if (told := ask(case, "describe", operator.describe, case, returns=str))
        },
        variants=_against(
            project, operator, planned_variants(operator, selection.variants, full=selection.full), selection.against
        ),
        checks=tuple(CHECKS),
        time_limit=time_limit,
        pruned=selection != Selection(),
        references={reference.name: reference.own_error for reference in operator.references},
    )


def _generated(operator: Operator, shape: Shape, selection: Selection) -> list[Case]:
    """The lines of the written plan that the selection keeps, and cases for what it asks for beyond them."""
    if (selection.captures or selection.probes) and not selection.axes and not selection.seeds:
        return []
    cases: list[Case] = []
    for seed in selection.seeds or (1,):
        planned, everything = (
            [
                operator.case(shape, line.axes, seed=seed, first_step_only=line.first_step_only)
                for line in _lines(operator, shape, full)
                if line.probe is None
            ]
            for full in (selection.full, True)
        )
        if not selection.axes:
            cases += planned
            continue
        for values in itertools.product(*selection.axes.values()):
            wanted = dict(zip(selection.axes, values, strict=True))
            added = operator.case(shape, wanted, seed=seed)  # refuses what no case can have
            matching = [case for case in planned if wanted.items() <= case.axes.items()]
            beyond = [case for case in everything if wanted.items() <= case.axes.items()]
            cases += matching or beyond or [added]
    return list({case.id: case for case in cases}.values())


def _probed(operator: Operator, shape: Shape, selection: Selection) -> list[Case]:
    narrowed = selection.axes or selection.seeds or selection.captures
    wanted = selection.probes if selection.probes is not None else () if narrowed else ("all",)
    for name in wanted:
        if name != "all":
            operator.probe(name)
    cases = [
        operator.case(shape, line.axes, probe=line.probe, first_step_only=line.first_step_only)
        for line in _lines(operator, shape, selection.full)
        if line.probe is not None and ("all" in wanted or line.probe in wanted)
    ]
    axes = selection.axes.items()
    return [case for case in cases if all(case.axes[name] in values for name, values in axes)]


def _lines(operator: Operator, shape: Shape, full: bool) -> list[Line]:
    lines = operator.plan.get(shape.name, operator.plan.get("", (Line(),)))
    return [line for line in lines if full or not line.full]


def _captured(project: Project, operator: Operator, shape: Shape, selection: Selection) -> list[Case]:
    planned = operator.captures.get(shape.name, operator.captures.get("", ()))
    wanted = selection.captures
    if wanted is None:
        wanted = () if selection.axes or selection.seeds or selection.probes else planned
    if "all" in wanted:
        wanted = planned
    if not wanted:
        return []
    if project.captures is None or operator.from_capture is None:
        raise PlanError(f"operator {operator.name}: captures are planned, but the project's settings name no captures")
    store = CaptureStore(project.captures)
    known = {ref.id for ref in store.list()}
    if unknown := [name for name in wanted if name not in known]:
        raise PlanError(f"--capture: expected one of {sorted(known)}, but got {unknown}")
    cases = []
    for name in wanted:
        axes = captured_axes(operator, shape, name, store)
        cases.append(operator.case(shape, axes, capture=name))
    return cases


def captured_axes(operator: Operator, shape: Shape, name: str, store: CaptureStore) -> Mapping[str, AxisValue]:
    """The axes that a capture fixes; none where the operator declares none."""
    if operator.capture_axes is None:
        return {}
    case = Case(shape.name, operator.name, {}, capture=name)  # whose axes are not known yet
    return ask(case, "capture_axes", operator.capture_axes, store.load(name), returns=Mapping[str, AxisValue])


def planned_variants(operator: Operator, names: Sequence[str], *, full: bool = False) -> tuple[PlannedVariant, ...]:
    """Parents before children: those named and their parents; without names the operator's own.

    These are all that are not closed; but where some are admitted, experimental ones run only if named or with `full`.
    Each is compared with its nearest ancestor among them: what was closed, or only led here, is passed over.
    A parent that is there for its child alone is judged by the bounds, not by its own parent's bytes.
    """
    settled = any(variant.status == "admitted" for variant in operator.variants) and not full
    left_out = ("closed", "experimental") if settled else ("closed",)
    usual = [variant for variant in operator.variants if variant.status not in left_out]
    chosen = [operator.variant(name) for name in names] or usual
    wanted = {variant.name for variant in chosen} | {variant.parent for variant in chosen if variant.parent and names}
    ordered: list[str] = []

    def add(name: str, below: tuple[str, ...] = ()) -> None:
        if name in below:
            raise PlanError(f"operator {operator.name}: the parents form a circle: {' -> '.join((*below, name))}")
        variant = operator.variant(name)
        if variant.parent is not None:
            add(variant.parent, (*below, name))
        if name in wanted and name not in ordered:
            ordered.append(name)

    def nearest(parent: str | None) -> str | None:
        while parent is not None and parent not in wanted:
            parent = operator.variant(parent).parent
        return parent

    for variant in chosen:
        add(variant.name)
    return tuple(
        PlannedVariant(v.name, nearest(v.parent), v.status, v.code.path, v.note, v.why, v.evidence)
        for v in map(operator.variant, ordered)
    )


def _against(
    project: Project, operator: Operator, variants: tuple[PlannedVariant, ...], revision: str | None
) -> tuple[PlannedVariant, ...]:
    """Give every variant itself as it was at `revision` as its parent, where it existed then."""
    if revision is None:
        return variants
    commit = resolve(project, revision)
    then = project_at(project, commit).operators.get(operator.name)
    existed = {variant.name for variant in then.variants} if then else set()
    if not existed & {variant.name for variant in variants}:
        raise PlanError(
            f"--against {revision}: no variant of the plan existed in {commit[:12]}; nothing to compare with"
        )
    planned: list[PlannedVariant] = []
    for variant in variants:
        parent = variant.parent
        if variant.name in existed:
            past = msgspec.structs.replace(variant, parent=None, revision=commit)
            planned.append(past)
            parent = past.label
        planned.append(msgspec.structs.replace(variant, parent=parent))
    return tuple(planned)


def axis_values(words: tuple[str, ...]) -> list[tuple[str, AxisValue]]:
    """What `--axis NAME=VALUE` says, once for each. Raises PlanError where it says something else."""
    found = []
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not value:
            raise PlanError(f"--axis: expected NAME=VALUE, but got {word!r}")
        found.append((name, _number(value)))
    return found


def _number(text: str) -> AxisValue:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
