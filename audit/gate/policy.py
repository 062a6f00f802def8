"""What a project asks of its evidence before a change is merged: `[tool.kernel-audit.gate]`.

[tool.kernel-audit.gate]
baseline = "gate.toml"              # accepted findings, see `audit.gate.baseline`

[tool.kernel-audit.gate.everyday]   # the policy that is used unless --policy names another
stale = "warn"                      # evidence of a device whose sources have changed since: warn or fail
retained = ["reports"]              # folders of evidence that cannot be made here
signed-by = "allowed_signers"       # who must have signed every record that the gate did not make itself

[[tool.kernel-audit.gate.everyday.audits]]
shapes = ["q1", "q6"]
device = "host"                     # run here; "cuda": retained evidence, or run where there is a GPU
contexts = [129]                    # narrows the default plan as the options of `audit run` do

[[tool.kernel-audit.gate.everyday.sanitizers]]
shapes = ["q6"]
device = "cuda"                     # retained sessions of a GPU
tools = ["memcheck", "synccheck"]
minimum = { cases = 3, canaries = 1 }

[tool.kernel-audit.gate.release]
like = "everyday"                   # all keys that this table leaves out
stale = "fail"
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from audit.errors import ProjectError
from audit.plan import Backend, Plan, Selection, make_plan
from audit.project import TABLE, Project
from audit.records.sanitize import SanitizePlan, Tool
from audit.sanitize.plan import make_sanitize_plan
from audit.spec import AxisValue, Operator, Status

EVERYDAY = "everyday"
_BASELINE = "baseline"
_LIVE: tuple[Status, ...] = ("control", "admitted", "experimental")


class Minimum(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Least counts, for each shape."""

    cases: int = 1
    captures: int = 0
    mutations: int = 1  # distinguished from the right result


class _Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """What both kinds of rules choose. Without `variants`, all with one of the statuses; never a closed variant."""

    shapes: tuple[str, ...]
    device: Backend = "host"
    arch: str = "sm_90"
    variants: tuple[str, ...] = ()
    statuses: tuple[Status, ...] = _LIVE
    time_limit: float = 120.0  # seconds, for one variant in one case

    def chosen(self, operator: Operator) -> tuple[str, ...]:
        """The variants by name; empty where they are those of the default plan."""
        live = [variant.name for variant in operator.variants if variant.status != "closed"]
        named = [
            variant.name
            for variant in operator.variants
            if (variant.name in self.variants if self.variants else variant.status in self.statuses)
        ]
        for name in self.variants:
            operator.variant(name)  # refuses what does not exist
        return () if named == live else tuple(named)


class AuditRule(_Rule, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """Audits that must have passed; contexts, axes, captures and probes narrow the default plan as options do."""

    contexts: tuple[int, ...] = ()
    axes: dict[str, tuple[AxisValue, ...]] = {}
    captures: tuple[str, ...] | None = None
    probes: tuple[str, ...] | None = None
    minimum: Minimum = Minimum()

    def plan(self, project: Project, shape: str) -> Plan:
        """The plan that must be covered. Raises PlanError and CaptureError as `audit run` does."""
        operator, _ = project.shape(shape)
        axes: dict[str, tuple[AxisValue, ...]] = {"context": self.contexts} if self.contexts else {}
        selection = Selection(
            axes={**axes, **self.axes},
            variants=self.chosen(operator),
            captures=self.captures,
            probes=self.probes,
        )
        return make_plan(project, shape, selection, arch=self.arch, time_limit=self.time_limit, backend=self.device)


class SanitizeMinimum(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Least counts, for each shape and tool; `canaries` must be found in each session that speaks for it."""

    cases: int = 1
    canaries: int = 1


class SanitizeRule(_Rule, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """Sanitizers that must have found their canaries and nothing else; `cases` are parts of cases' names."""

    tools: tuple[Tool, ...] = ()  # all four
    cases: tuple[str, ...] = ()
    time_limit: float = 180.0
    minimum: SanitizeMinimum = SanitizeMinimum()

    def plan(self, project: Project, shape: str) -> SanitizePlan:
        """The plan that must be covered. Raises PlanError as `audit sanitize` does."""
        operator, _ = project.shape(shape)
        return make_sanitize_plan(
            project,
            shape,
            tools=self.tools,
            variants=self.chosen(operator),
            cases=self.cases,
            backend=self.device,
            time_limit=self.time_limit,
        )


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """One policy of the table. `signed_by` is a file of allowed signers in the project; None: nothing need be signed.
    `defaults` are the statuses that a default variant may have; an admitted one needs
    evidence, too."""

    audits: tuple[AuditRule, ...] = ()
    sanitizers: tuple[SanitizeRule, ...] = ()
    retained: tuple[str, ...] = ()  # empty: the project's folder of reports
    stale: Literal["warn", "fail"] = "fail"
    signed_by: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    defaults: tuple[Status, ...] = ("control", "admitted")


def allowed_signers(project: Project, policy: Policy) -> Path | None:
    """The file of allowed signers that a policy names, if it names one."""
    return None if policy.signed_by is None else project.root / policy.signed_by


def load_policy(project: Project, name: str) -> Policy:
    """The policy of that name. Raises ProjectError that names the table, the field and the fix."""
    table = _merged(project, name)
    try:
        policy = msgspec.convert(table, Policy)
    except msgspec.ValidationError as error:
        known = ", ".join(field.encode_name for field in msgspec.structs.fields(Policy))
        raise ProjectError(f"{_where(project, name)}: {error}; known keys: {known}") from None
    if not policy.retained:
        policy = msgspec.structs.replace(policy, retained=(project.settings.reports,))
    for rule in (*policy.audits, *policy.sanitizers):
        for shape in rule.shapes:
            if shape not in project.shapes():
                raise ProjectError(
                    f"{_where(project, name)}: shapes: expected some of {', '.join(project.shapes())}, "
                    f"but got {shape!r}"
                )
    for folder in policy.retained:
        if not (project.root / folder).resolve().is_relative_to(project.root):
            raise ProjectError(
                f"{_where(project, name)}: retained: expected a folder inside the project, but got {folder!r}"
            )
    signers = allowed_signers(project, policy)
    if signers and not (signers.resolve().is_relative_to(project.root) and signers.is_file()):
        raise ProjectError(
            f"{_where(project, name)}: signed-by: expected a file of allowed signers inside the project, but got "
            f"{policy.signed_by!r}"
        )
    return policy


def policy_names(project: Project) -> tuple[str, ...]:
    """The names of the project's policies, as its table lists them."""
    return tuple(name for name in project.settings.gate if name != _BASELINE)


def baseline_path(project: Project) -> str | None:
    """The file of accepted findings, relative to the project's folder."""
    name = project.settings.gate.get(_BASELINE)
    if name is None:
        return None
    if not isinstance(name, str) or not (project.root / name).resolve().is_relative_to(project.root):
        raise ProjectError(
            f"{project.root / 'pyproject.toml'}: [tool.{TABLE}.gate] {_BASELINE}: expected a file inside the project, "
            f"but got {name!r}"
        )
    return name


def _merged(project: Project, name: str, below: tuple[str, ...] = ()) -> dict[str, Any]:
    policies = {key: value for key, value in project.settings.gate.items() if key != _BASELINE}
    if not policies:
        raise ProjectError(
            f"{project.root / 'pyproject.toml'}: expected a table [tool.{TABLE}.gate.{name}] that says what must hold, "
            f"but there is none; `audit gate --help` shows the least that it needs"
        )
    table = policies.get(name)
    if not isinstance(table, dict):
        raise ProjectError(
            f"{project.root / 'pyproject.toml'}: [tool.{TABLE}.gate]: expected a policy of {sorted(policies)}, each a "
            f"table, but got {name!r}"
        )
    if (like := table.get("like")) is None:
        return table
    if like in below or like == name or not isinstance(like, str):
        raise ProjectError(f"{_where(project, name)}: like: expected another policy, but got {like!r}")
    own = {key: value for key, value in table.items() if key != "like"}
    return {**_merged(project, like, (*below, name)), **own}


def _where(project: Project, name: str) -> str:
    return f"{project.root / 'pyproject.toml'}: [tool.{TABLE}.gate.{name}]"
