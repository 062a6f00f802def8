"""The plan of a run: its cases, variants and checks, chosen and recorded before anything runs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from audit import default_plan
from audit.capture.store import CaptureStore
from audit.checks import CHECKS
from audit.compile.host import TARGETS, check_arch
from audit.declaration import ask
from audit.errors import PlanError
from audit.families import FAMILIES, is_family
from audit.project import Project
from audit.project_reads import collected_in_a_case
from audit.relations import Bitwise, relation_text
from audit.revision import project_at, resolve_revision
from audit.spec import AxisValue, Case, Line, Operator, Shape, Variant

Backend = Literal["host", "cuda"]


_LONGEST = 1_000_000.0  # seconds


class PlannedVariant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One variant of the plan. `parent` is the label of its parent, which precedes it in the plan."""

    name: str
    parent: str | None
    status: str
    source: str
    note: str = ""
    why: str = ""  # the reason, if it is closed
    evidence: tuple[str, ...] = ()  # the records that admit or close it, as the project names them
    revision: str | None = None  # the commit that its sources come from; None: the working tree
    declared_parent: str | None = None  # as the project declares it
    baseline_only: bool = False  # runs so that another variant can be compared with it, and is not compared itself
    relation: str = relation_text(Bitwise())  # to its parent

    @property
    def label(self) -> str:
        """The variant's name in the plan, with its revision if that is not the working tree."""
        return f"{self.name}@{self.revision[:12]}" if self.revision else self.name


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Cases x variants, by name, and the conditions under which they run."""

    shape: str
    operator: str
    backend: Backend
    arch: str
    tensor_cores: str  # how well the model of their arithmetic is confirmed
    cases: tuple[Case, ...]
    described: dict[str, str]  # case -> the operator's own description of it
    variants: tuple[PlannedVariant, ...]
    checks: tuple[str, ...]
    time_limit: float  # seconds, for one variant in one case
    pruned: bool  # true where options narrowed the default plan
    references: dict[str, str] = {}  # name -> the error of the reference itself, if known
    family_seconds: float | None = None  # what the references of a case's input families may take, where none was named
    reduced: dict[str, str] = {}  # case -> why it has fewer input families

    @property
    def audits(self) -> int:
        """The number of audits: one for each variant in each case."""
        return len(self.cases) * len(self.variants)


class Selection(msgspec.Struct, frozen=True):
    """How a user narrows or extends the default plan. Axis values narrow it to the cases that have them, and add a
    case if none has. Axes or seeds also drop captures and probes, unless those are named. Empty or None means the
    default. `full` adds the lines that the default plan omits. `families` replaces the input families of every case."""

    axes: Mapping[str, Sequence[AxisValue]] = {}
    variants: Sequence[str] = ()
    captures: Sequence[str] | None = None
    probes: Sequence[str] | None = None
    seeds: Sequence[int] = ()
    full: bool = False
    against: str | None = None
    families: Sequence[str] | None = None


def checked_time_limit(seconds: float) -> float:
    """The limit, if a process can be waited for so long; else PlanError."""
    if not 0 < seconds <= _LONGEST:  # NaN is neither
        raise PlanError(f"--time-limit: expected more than 0 and at most {_LONGEST:,.0f} seconds, but got {seconds:g}")
    return seconds


def make_plan(
    project: Project,
    shape_name: str,
    selection: Selection,
    *,
    arch: str,
    time_limit: float,
    backend: Backend = "host",
) -> Plan:
    """The plan of one shape. Raises PlanError if the selection names something unknown or out of range."""
    with collected_in_a_case() as reads:  # what a hook reads here it may keep for the cases
        plan = _plan(project, shape_name, selection, arch, time_limit, backend)
    project.reads.files.update(reads.files)
    project.reads.variables.update({**reads.variables, **project.reads.variables})
    return plan


def _plan(
    project: Project, shape_name: str, selection: Selection, arch: str, time_limit: float, backend: Backend
) -> Plan:
    operator, shape = project.shape(shape_name)
    for name in selection.families or ():
        if not is_family(name):
            raise PlanError(f"--family: expected one of {', '.join(FAMILIES)}, seed2, seed3 ..., but got {name!r}")
    cases = [
        *_generated(operator, shape, selection),
        *_probed(operator, shape, selection),
        *_captured(project, operator, shape, selection),
    ]
    if not cases:
        raise PlanError(
            f"shape {shape_name}: expected at least one case, but the options exclude all; "
            "widen --axis, --seed, --probe or --capture"
        )
    by_default = selection.families is None and default_plan.declared_lines(operator, shape) is None
    return Plan(
        shape=shape.name,
        operator=operator.name,
        backend=backend,
        arch=arch,
        tensor_cores=_standing(arch, backend),
        cases=tuple(msgspec.structs.replace(case, arch=arch) for case in cases),
        described={
            case.id: description
            for case in cases
            if (description := ask(case, "describe", operator.describe, case, returns=str))
        },
        variants=_against(
            project, operator, planned_variants(operator, selection.variants, full=selection.full), selection.against
        ),
        checks=tuple(name for name in CHECKS if name != "host" or operator.same_on_host),
        time_limit=checked_time_limit(time_limit),
        pruned=selection != Selection(),
        references={reference.name: reference.own_error for reference in operator.references},
        family_seconds=default_plan.SECONDS if by_default else None,
        reduced={
            case.id: reason for case in cases if by_default and (reason := default_plan.reduction(operator, case))
        },
    )


def _standing(arch: str, backend: Backend) -> str:
    """How well the model of the tensor cores is confirmed. A GPU of an architecture without a model needs none."""
    if backend == "cuda" and arch not in TARGETS:
        return "no model; results are not compared with a CPU"
    return check_arch(arch).standing


def _generated(operator: Operator, shape: Shape, selection: Selection) -> list[Case]:
    """The cases of the declared plan that the selection keeps, and a new case for each combination it lacks."""
    if (selection.captures or selection.probes) and not selection.axes and not selection.seeds:
        return []
    cases: list[Case] = []
    for seed in selection.seeds or (1,):
        planned, everything = (
            [
                _with(operator.case(shape, line.axes, seed=seed, first_step_only=line.first_step_only), line.families)
                for line in _lines(operator, shape, full)
                if line.probe is None
            ]
            for full in (selection.full, True)
        )
        having = cases_having(operator, shape, selection.axes, seed, planned, everything)
        listed = {case.id for case in (*planned, *everything)}
        cases += [
            case if case.id in listed else _with(case, default_plan.families_of(operator, shape, case))
            for case in having
        ]
    if selection.families is not None:
        cases = [_with(case, selection.families) for case in cases]
    return list({case.id: case for case in cases}.values())


def _with(case: Case, families: Sequence[str]) -> Case:
    """The case with its input families; a case that runs only its first step has none."""
    return msgspec.structs.replace(case, families=() if case.first_step_only else tuple(dict.fromkeys(families)))


def cases_having(
    operator: Operator,
    shape: Shape,
    axes: Mapping[str, Sequence[AxisValue]],
    seed: int,
    planned: Sequence[Case],
    everything: Sequence[Case] = (),
) -> list[Case]:
    """For each combination of axis values the planned cases that have it, else those of `everything`, else a new case.
    Without any axis, the planned ones. Raises PlanError if no case can have the values."""
    if not axes:
        return list(planned)
    cases = []
    for values in itertools.product(*axes.values()):
        wanted = dict(zip(axes, values, strict=True))
        added = operator.case(shape, wanted, seed=seed)
        matching = [case for case in planned if wanted.items() <= case.axes.items()]
        beyond = [case for case in everything if wanted.items() <= case.axes.items()]
        cases += matching or beyond or [added]
    return cases


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
    lines = default_plan.declared_lines(operator, shape)
    if lines is None:
        lines = default_plan.lines(operator, shape)
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
        raise PlanError(
            f"operator {operator.name}: the plan uses captures, which need `captures` in [tool.kernel-audit] and the "
            "operator's from_capture; set both"
        )
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
    """The named variants, or the operator's default variants, and what they are compared with; parents come first.

    The default is every variant that is not closed. If some are admitted, it also omits the experimental ones, unless
    `full` is set. A variant that declares a parent is compared with its nearest ancestor among these, by its own
    relation. If none of its ancestors is among them, its parent runs as well, whatever its status, as a baseline only.
    So does the first ancestor where the operator has neither bounds nor probes: nothing says whether it is right.
    """
    settled = any(variant.status == "admitted" for variant in operator.variants) and not full
    left_out = ("closed", "experimental") if settled else ("closed",)
    usual = [variant for variant in operator.variants if variant.status not in left_out]
    chosen = [operator.variant(name) for name in names] or usual
    chosen_names = {variant.name for variant in chosen}
    baselines = {
        variant.parent for variant in chosen if variant.parent and not chosen_names & {*ancestors(operator, variant)}
    }
    planned = chosen_names | baselines
    if not operator.bounds and not operator.probes:
        chosen_names -= {name for variant in chosen for name in ancestors(operator, variant)[-1:]}
    ordered = [name for variant in chosen for name in (*reversed(ancestors(operator, variant)), variant.name)]
    found = []
    for name in dict.fromkeys(name for name in ordered if name in planned):
        variant = operator.variant(name)
        only_baseline = name not in chosen_names
        nearest = next((each for each in ancestors(operator, variant) if each in planned), None)
        found.append(
            PlannedVariant(
                name=name,
                parent=None if only_baseline else nearest,
                status=variant.status,
                source=variant.code.path,
                note=variant.note,
                why=variant.why,
                evidence=variant.evidence,
                declared_parent=variant.parent,
                baseline_only=only_baseline,
                relation=relation_text(variant.relation),
            )
        )
    return tuple(found)


def ancestors(operator: Operator, variant: Variant) -> list[str]:
    """The declared ancestors of a variant, its parent first. PlanError where they form a cycle."""
    found: list[str] = []
    parent = variant.parent
    while parent is not None:
        if parent in found or parent == variant.name:
            raise PlanError(
                f"operator {operator.name}: the parents form a cycle: {' -> '.join((variant.name, *found, parent))}"
            )
        found.append(parent)
        parent = operator.variant(parent).parent
    return found


def _against(
    project: Project, operator: Operator, variants: tuple[PlannedVariant, ...], revision: str | None
) -> tuple[PlannedVariant, ...]:
    """Make each variant's parent the same variant at `revision`, if it existed then: bit for bit, whatever relation to
    its declared parent it has, because the two are one variant."""
    if revision is None:
        return variants
    commit = resolve_revision(project, revision)
    then = project_at(project, commit).operators.get(operator.name)
    existed = {variant.name for variant in then.variants} if then else set()
    if not existed & {variant.name for variant in variants}:
        raise PlanError(
            f"--against {revision}: expected at least one variant of the plan to exist in {commit[:12]}, but none "
            "does; name a later revision"
        )
    planned: list[PlannedVariant] = []
    for variant in variants:
        if variant.name in existed:
            bitwise = relation_text(Bitwise())
            past = msgspec.structs.replace(variant, parent=None, revision=commit, baseline_only=True, relation=bitwise)
            planned.append(past)
            planned.append(msgspec.structs.replace(variant, parent=past.label, relation=bitwise))
        else:
            planned.append(variant)
    return tuple(planned)


def chosen_axes(contexts: Sequence[int], words: Sequence[str]) -> dict[str, list[AxisValue]]:
    """Axis -> the values of each `--axis NAME=VALUE`, and of `--context`. Raises PlanError for any other form."""
    chosen: dict[str, list[AxisValue]] = {"context": list(contexts)} if contexts else {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not value:
            raise PlanError(f"--axis: expected NAME=VALUE, but got {word!r}")
        chosen.setdefault(name, []).append(_axis_value(value))
    return chosen


def _axis_value(text: str) -> AxisValue:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
