"""What the conditions about audits and about sanitizers share: results counted, enough cases, sources."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from audit.gate.coverage import AnyWitness, Coverage, Witness
from audit.gate.evaluation import Evaluation
from audit.gate.verdict import Condition, Standing
from audit.plan import Backend
from audit.records.folder import REPORT

State = Literal["good", "accepted", "failed", "inconclusive"]
Witnesses: TypeAlias = Sequence[Witness[Any, Any]]

_NAMED = 3


@dataclass
class ResultCount:
    """The results that a plan asks for, counted; names are those of a variant in a case."""

    good: int = 0
    accepted: int = 0
    failed: list[str] = field(default_factory=list)
    inconclusive: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, coverage: Coverage[AnyWitness], judge: Callable[[AnyWitness], tuple[State, str]]) -> ResultCount:
        """Count a coverage; `judge` gives the state of each result, and a reason that is named beside it."""
        count = cls()
        for (case, variant), witness in coverage.items():
            name = f"{variant} in {case}"
            if witness is None:
                count.missing.append(name)
                continue
            state, reason = judge(witness)
            name = f"{name}: {reason}" if reason else name
            if state == "good":
                count.good += 1
            elif state == "accepted":
                count.accepted += 1
            else:
                (count.failed if state == "failed" else count.inconclusive).append(name)
        return count

    def condition(self, name: str, good: str, failed: str, device: Backend, path: str) -> Condition:
        """All must be good; `failed` says in words what the others are. Nothing at all is inconclusive."""
        required = self.good + self.accepted + len(self.failed) + len(self.inconclusive) + len(self.missing)
        counts = (
            (self.good, good),
            (len(self.failed), "failed"),
            (len(self.inconclusive), "inconclusive"),
            (len(self.missing), "missing"),
            (self.accepted, "accepted by the baseline"),
        )
        names = (
            (failed, self.failed),
            ("inconclusive", self.inconclusive),
            ("no evidence of", self.missing),
        )
        sentences = [first_names(what, some) for what, some in names if some]
        if self.missing:
            sentences.append(f"`audit gate` runs what is missing{' where there is a GPU' if device == 'cuda' else ''}")
        return Condition(
            name=name,
            required=f"{required} {good}",
            measured=", ".join(f"{count} {what}" for count, what in counts if count or what == good),
            verdict=self._standing(required),
            detail="; ".join(sentences),
            path=path,
        )

    def _standing(self, required: int) -> Standing:
        if self.failed:
            return "fail"
        if self.inconclusive or self.missing or not required:
            return "inconclusive"
        return "warn" if self.accepted else "pass"


def witnesses_of(coverage: Coverage[AnyWitness]) -> list[AnyWitness]:
    """All that speaks for a plan."""
    return [witness for witness in coverage.values() if witness is not None]


def page_of(evaluation: Evaluation, witnesses: Witnesses) -> str:
    """The page of the first of them; its folder where it keeps no page."""
    if not witnesses:
        return ""
    folder = witnesses[0].by.path
    page = folder / REPORT
    return evaluation.relative(page if page.is_file() else folder)


def enough_cases(name: str, minimum: int, cases: int, path: str) -> Condition:
    """At least as many cases as the rule asks for, and never none."""
    least = max(minimum, 1)
    return Condition(
        name=name,
        required=f"at least {least}",
        measured=str(cases),
        verdict="pass" if cases >= least else "inconclusive",
        path=path,
    )


def current_sources(evaluation: Evaluation, name: str, device: Backend, witnesses: Witnesses) -> Condition:
    """Whether evidence is of today's sources. What ran on a host can be run again, so a policy may let only a device's
    evidence be stale."""
    variants = {one.result.variant for one in witnesses}
    stale = [one for one in witnesses if not one.current]
    changed = sorted({one.result.variant for one in stale})
    sentences = dict.fromkeys(sentence for one in stale for sentence in one.by.stale.describe())
    standing: Standing = evaluation.policy.stale if device == "cuda" else "inconclusive"
    return Condition(
        name=name,
        required="those of the project now",
        measured=f"{len(changed)} of {len(variants)} variants stale" if changed else "the same",
        verdict=standing if changed else "pass",
        detail=f"{', '.join(changed)}: {first_names('changed since:', [*sentences])}; run them again"
        if changed
        else "",
        path=page_of(evaluation, witnesses),
    )


def first_names(what: str, names: Sequence[str]) -> str:
    """`no evidence of a, b, c and 4 more`."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{what} {', '.join(names[:_NAMED])}{more}"
