"""From evidence and a policy to a verdict, every condition listed. Nothing is run here and nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import msgspec

from audit import __version__
from audit.errors import CaptureError, PlanError
from audit.evidence import machine
from audit.evidence.folder import REPORT
from audit.evidence.schema import Audit, Evidence
from audit.evidence.verify import Verified
from audit.gate import admission, baseline, coverage
from audit.gate.baseline import Accepted
from audit.gate.coverage import Spoken
from audit.gate.findings import of_audit, of_session
from audit.gate.policy import AuditRule, Policy, SanitizeRule
from audit.gate.verdict import SCHEMA, Condition, Found, Gate, Standing, overall
from audit.plan import Backend, Plan
from audit.project import Project
from audit.sanitize import suppressions
from audit.sanitize.schema import Checked, SanitizeEvidence, SanitizePlan, Suppression, Tool
from audit.vacuity import unseen

_NAMED = 3


def evaluate(
    project: Project,
    name: str,
    policy: Policy,
    evidence: Sequence[Verified],
    accepted: Sequence[Accepted],
    *,
    started: str,
    today: date,
    baseline_file: str = "",
) -> Gate:
    """The verdict of a policy over evidence that was verified; `today` decides what is expired."""
    judged = _Judgement(
        project, policy, evidence, baseline.valid(accepted, today), suppressions.declared(project), today
    )
    conditions = [
        *judged.folders(),
        *admission.conditions(project, policy, evidence),
        *(one for rule in policy.audits for shape in rule.shapes for one in judged.audits(rule, shape)),
        *(one for rule in policy.sanitizers for shape in rule.shapes for one in judged.sanitizers(rule, shape)),
        *judged.suppressions(),
    ]
    if not policy.audits and not policy.sanitizers:
        conditions.append(
            Condition("rules", "at least 1", "0", "inconclusive", "the policy asks for no audit and no sanitizer")
        )
    if accepted:
        seen = {found.fingerprint for found in judged.found}
        whole = not any(condition.verdict == "inconclusive" for condition in conditions)
        conditions.append(baseline.condition(accepted, seen, today, baseline_file, whole=whole))
    return Gate(
        schema=SCHEMA,
        kind="gate",
        tool=__version__,
        policy=name,
        started=started,
        commit=machine.commit(project.root),
        verdict=overall(conditions),
        conditions=tuple(conditions),
        found=tuple(dict.fromkeys(judged.found)),
        evidence=tuple(judged.shown(one.path) for one in evidence),
    )


@dataclass
class _Judgement:
    """One evaluation on its way; `found` and `sessions` gather what the rules have looked at."""

    project: Project
    policy: Policy
    evidence: Sequence[Verified]
    accepted: dict[str, str]
    rules: tuple[Suppression, ...]
    today: date
    found: list[Found] = field(default_factory=list)
    sessions: dict[Path, SanitizeEvidence] = field(default_factory=dict)

    def shown(self, path: Path) -> str:
        """Relative to the project, where it lies inside."""
        return _shown(self.project, path)

    def folders(self) -> Iterator[Condition]:
        """Each folder of evidence: whole and unaltered, whatever it says. That it is stale counts where it is used."""
        for one in self.evidence:
            wrong = [fault for fault in one.faults if fault.kind != "stale"]
            verdict: Standing = one.verdict if wrong else "pass"
            yield Condition(
                name=f"evidence {one.path.name}",
                required="whole and unaltered",
                measured=", ".join(dict.fromkeys(fault.kind for fault in wrong)) or "whole and unaltered",
                verdict=verdict,
                detail="; ".join(fault.what for fault in wrong[:_NAMED]),
                path=self.shown(one.path),
            )

    def audits(self, rule: AuditRule, shape: str) -> Iterator[Condition]:
        """What one rule asks of one shape's audits."""
        about = f"{shape} on {rule.device}"
        try:
            plan = rule.plan(self.project, shape)
        except (PlanError, CaptureError) as error:
            yield Condition(f"audits {about}", "a plan that can be made", "none", "inconclusive", str(error))
            return
        spoken = coverage.audits(plan, self.evidence)
        there = [one for one in spoken.values() if one is not None]
        path = self.shown(there[0].by.path / REPORT) if there else ""
        yield self._passed(about, spoken, path)
        yield _at_least(f"cases {about}", rule.minimum.cases, len({one.result.case for one in there}), path)
        yield from self._captures(about, rule, plan, spoken, path)
        yield _mutations(about, rule, plan, there, path)
        if there:
            yield self._sources(f"sources {about}", rule.device, there, path)

    def sanitizers(self, rule: SanitizeRule, shape: str) -> Iterator[Condition]:
        """What one rule asks of one shape's sanitizers, for each tool."""
        try:
            plan = rule.plan(self.project, shape)
        except (PlanError, CaptureError) as error:
            yield Condition(
                f"sanitizers {shape} on {rule.device}", "a plan that can be made", "none", "inconclusive", str(error)
            )
            return
        for tool in plan.tools:
            yield from self._tool(f"{tool} {shape} on {rule.device}", plan, tool)

    def suppressions(self) -> Iterator[Condition]:
        """Every suppression of the project in force and, where all was run, in use."""
        if not self.rules and not any(record.suppressions for record in self.sessions.values()):
            return
        told = dict.fromkeys(suppressions.complaints(self.rules, self.today, ()))
        for record in self.sessions.values():
            tools = [tool.tool for tool in record.tools]
            told |= dict.fromkeys(
                suppressions.complaints(record.suppressions, self.today, tools, narrowed=record.plan.pruned)
            )
        yield Condition(
            name="suppressions",
            required="each in force and in use",
            measured=f"{len(self.rules)} declared, {len(told)} complaints",
            verdict="fail" if told else "pass",
            detail="; ".join(told),
            path="pyproject.toml",
        )

    def _passed(self, about: str, spoken: dict[coverage.Pair, Spoken[Evidence, Audit] | None], path: str) -> Condition:
        missing = [f"{variant} in {case}" for (case, variant), one in spoken.items() if one is None]
        passed, failed, open_, accepted = 0, [], [], 0
        for one in spoken.values():
            if one is None:
                continue
            told = self._accepting(of_audit(one.result, one.record.plan, self.shown(one.by.path)))
            self.found += told
            if one.result.verdict == "pass":
                passed += 1
            elif told and all(found.accepted for found in told):
                accepted += 1
            elif one.result.verdict == "fail":
                failed.append(f"{one.result.variant} in {one.result.case}")
            else:
                open_.append(f"{one.result.variant} in {one.result.case}")
        return Condition(
            name=f"audits {about}",
            required=f"{len(spoken)} passed",
            measured=_counts(passed=passed, failed=len(failed), inconclusive=len(open_), missing=len(missing))
            + (f", {accepted} accepted by the baseline" if accepted else ""),
            verdict=_standing(failed, open_ or missing or not spoken, accepted),
            detail="; ".join(
                _listed(what, names)
                for what, names in (("failed", failed), ("inconclusive", open_), ("no evidence of", missing))
                if names
            ),
            path=path,
        )

    def _captures(
        self,
        about: str,
        rule: AuditRule,
        plan: Plan,
        spoken: dict[coverage.Pair, Spoken[Evidence, Audit] | None],
        path: str,
    ) -> Iterator[Condition]:
        wanted = {case.id: case.capture for case in plan.cases if case.capture}
        if not wanted and not rule.minimum.captures:
            return
        lacking = {case for (case, _), one in spoken.items() if one is None}
        missing = [capture for case, capture in wanted.items() if case in lacking]
        covered, required = len(wanted) - len(missing), max(len(wanted), rule.minimum.captures)
        yield Condition(
            name=f"captures {about}",
            required=f"{required} layers x ranks",
            measured=str(covered),
            verdict="pass" if covered >= required else "inconclusive",
            detail=_listed("no evidence of", missing) if missing else "",
            path=path,
        )

    def _sources(
        self,
        name: str,
        device: Backend,
        there: Sequence[Spoken[Evidence, Audit]] | Sequence[Spoken[SanitizeEvidence, Checked]],
        path: str,
    ) -> Condition:
        """Whether evidence is of today's sources; what was run on a host can be run again, so the policy's leave to be
        stale is for devices alone."""
        variants = {one.result.variant for one in there}
        changed = sorted({one.result.variant for one in there if not one.current})
        files = dict.fromkeys(what for one in there if not one.current for what in one.by.stale.told())
        stale: Standing = self.policy.stale if device == "cuda" else "inconclusive"
        return Condition(
            name=name,
            required="those of the project now",
            measured=f"{len(changed)} of {len(variants)} variants stale" if changed else "the same",
            verdict=stale if changed else "pass",
            detail=f"{', '.join(changed)}: {'; '.join(files)}; run them again" if changed else "",
            path=path,
        )

    def _tool(self, about: str, plan: SanitizePlan, tool: Tool) -> Iterator[Condition]:
        spoken = coverage.checks(plan, tool, self.evidence)
        there = [one for one in spoken.values() if one is not None]
        self.sessions |= {one.by.path: one.record for one in there}
        path = self.shown(there[0].by.path / REPORT) if there else ""
        missing = [f"{variant} in {case}" for (case, variant), one in spoken.items() if one is None]
        clean, failed, open_, accepted = 0, [], [], 0
        for one in there:
            told, taken = self._findings(one)
            self.found += told
            where = f"{one.result.variant} in {one.result.case}"
            if any(not found.accepted for found in told) or (one.result.verdict == "fail" and one.result.build is None):
                failed.append(where)
            elif one.result.verdict == "inconclusive":
                open_.append(f"{where}: {one.result.reason}")
            elif taken:
                accepted += 1
            else:
                clean += 1
        yield Condition(
            name=about,
            required=f"{len(spoken)} clean",
            measured=_counts(clean=clean, failed=len(failed), inconclusive=len(open_), missing=len(missing))
            + (f", {accepted} accepted by the baseline" if accepted else ""),
            verdict=_standing(failed, open_ or missing or not spoken, accepted),
            detail="; ".join(
                _listed(what, names)
                for what, names in (("findings in", failed), ("inconclusive", open_), ("no evidence of", missing))
                if names
            ),
            path=path,
        )
        if not there:
            return
        yield _canaries(about, tool, {one.by.path: one.record for one in there}, path)
        seen, planned = (sum(getattr(one.result, name) for one in there) for name in ("launches", "planned_launches"))
        yield Condition(
            f"launches {about}",
            f"{planned} seen",
            str(seen),
            "pass" if seen == planned > 0 else "inconclusive",
            path=path,
        )
        yield self._sources(f"sources {about}", plan.backend, there, path)

    def _findings(self, one: Spoken[SanitizeEvidence, Checked]) -> tuple[tuple[Found, ...], bool]:
        """What was found, judged by the suppressions of today, and whether the baseline accepts some of it."""
        plain = [msgspec.structs.replace(finding, suppressed="") for finding in one.result.findings]
        judged = suppressions.apply(self.rules, plain, self.today)
        reasons = {rule.name: rule.reason for rule in self.rules}
        told = []
        taken = False
        for suppressed in (*dict.fromkeys(finding.suppressed for finding in judged),):
            group = [finding for finding in judged if finding.suppressed == suppressed]
            found = of_session(one.result, group, one.record.builds, self.project.root, self.shown(one.by.path))
            if suppressed:
                told += [msgspec.structs.replace(each, accepted=reasons[suppressed]) for each in found]
            else:
                accepting = self._accepting(found)
                taken = taken or any(each.accepted for each in accepting)
                told += accepting
        return tuple(told), taken

    def _accepting(self, found: Sequence[Found]) -> list[Found]:
        return [
            msgspec.structs.replace(one, accepted=self.accepted.get(one.fingerprint, one.accepted)) for one in found
        ]


def _mutations(
    about: str, rule: AuditRule, plan: Plan, there: Sequence[Spoken[Evidence, Audit]], path: str
) -> Condition:
    """Could the checks of these cases have failed?"""
    cases = {case.id for case in plan.cases}
    records = {one.by.path: one.record for one in there}
    exposures = [one for record in records.values() for one in record.exposures if one.case in cases]
    caught = {one.mutation for one in exposures if one.caught_by}
    missed = unseen(exposures, pruned=plan.pruned)
    enough = not missed and len(caught) >= rule.minimum.mutations
    return Condition(
        name=f"mutations {about}",
        required=f"all, at least {rule.minimum.mutations}, told from the right result",
        measured=f"{len(caught)} of {len(caught) + len(missed)}",
        verdict="pass" if enough else "inconclusive",
        detail=f"no check tells a right result from {', '.join(missed)}" if missed else "",
        path=path,
    )


def _canaries(about: str, tool: Tool, sessions: dict[Path, SanitizeEvidence], path: str) -> Condition:
    """Each session's own: those of one prove nothing of another."""
    own = [canary for record in sessions.values() for canary in record.canaries if canary.tool == tool]
    lacking = [canary for canary in own if not (canary.found and canary.twin_clean)]
    silent = [one.name for one, record in sessions.items() if not any(c.tool == tool for c in record.canaries)]
    return Condition(
        name=f"canaries {about}",
        required=f"all {len(own)} found, at least 1 a session",
        measured=str(len(own) - len(lacking)),
        verdict="pass" if own and not lacking and not silent else "inconclusive",
        detail="; ".join(
            [*(f"{one.name}: {one.detail}" for one in lacking), *(f"{name}: none ran" for name in silent)]
        ),
        path=path,
    )


def _at_least(name: str, required: int, measured: int, path: str) -> Condition:
    return Condition(
        name,
        f"at least {required}",
        str(measured),
        "pass" if measured >= max(required, 1) else "inconclusive",
        path=path,
    )


def _standing(failed: Sequence[str], open_: object, accepted: int) -> Standing:
    return "fail" if failed else "inconclusive" if open_ else "warn" if accepted else "pass"


def _counts(**counts: int) -> str:
    """Every count that is not zero, and the first in any case."""
    first = next(iter(counts))
    return ", ".join(f"{number} {what}" for what, number in counts.items() if number or what == first)


def _listed(what: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{what} {', '.join(names[:_NAMED])}{more}"


def _shown(project: Project, path: Path) -> str:
    whole = path.resolve()
    return whole.relative_to(project.root).as_posix() if whole.is_relative_to(project.root) else str(whole)
