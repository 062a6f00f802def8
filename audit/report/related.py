"""Variants that need not leave their parent's bytes: how far they are from them, and how far both are from FP64."""

from __future__ import annotations

import msgspec

from audit.checks.difference import amount
from audit.checks.relation import LESS, SAME
from audit.checks.result import LargestDifference, Note, ReferenceErrors, Result
from audit.plan import PlannedVariant
from audit.records.run import RunRecord
from audit.relations import Bitwise, relation_text


class RelatedVariant(msgspec.Struct, frozen=True):
    """One variant beside its parent, over all cases and steps. `errors` are the worst of the variant's."""

    variant: str
    parent: str
    relation: str
    verdict: str
    words: str  # `as accurate as its parent, not the same`
    differing: int  # cases
    cases: int
    amount: str
    errors: ReferenceErrors | None

    @property
    def sentence(self) -> str:
        """All of it in a line."""
        if not self.differing:
            return (
                f"{self.variant} ({self.relation}): every element equals that of {self.parent}, in {self.cases} cases"
            )
        errors = ""
        if self.errors:
            errors = (
                f"; relative L2 error {self.errors.mine.text} against {self.errors.reference}, "
                f"parent's {self.errors.parents.text}"
            )
        return (
            f"{self.variant} ({self.relation}): {self.words}: differs from {self.parent} in {self.differing} of "
            f"{self.cases} cases, {self.amount}{errors}"
        )


def related_variants(record: RunRecord) -> list[RelatedVariant]:
    """The variants of a record with a relation other than bitwise that were compared with their parent."""
    bitwise = relation_text(Bitwise())
    return [
        found
        for variant in record.plan.variants
        if variant.parent and variant.relation != bitwise and (found := _related(record, variant))
    ]


def _related(record: RunRecord, variant: PlannedVariant) -> RelatedVariant | None:
    audits = [audit for audit in record.audits if audit.variant == variant.label]
    largest: list[LargestDifference] = []
    errors: list[ReferenceErrors] = []
    differing = compared = 0
    verdict = "not judged"
    for audit in audits:
        judged = [result for result in audit.results if result.check in ("relation", "bytes") and result.limit]
        shown: list[Result | Note] = [*judged, *(note for note in audit.notes if note.check == "relation")]
        compared += bool(shown)
        differing += any(one.largest for one in shown)
        largest += [one for each in shown for one in each.largest]
        errors += [one for each in shown for one in each.errors]
        if judged:
            verdict = "fail" if verdict == "fail" or any(one.verdict == "fail" for one in judged) else "pass"
    if not compared:
        return None
    less = [one for one in errors if not one.as_accurate]
    words = "not the same" if not errors else LESS if less else SAME
    worst = max(less or errors, key=lambda one: (one.mine.value != one.mine.value, one.mine.value), default=None)
    return RelatedVariant(
        variant.label,
        variant.parent or "",
        variant.relation,
        verdict,
        words,
        differing,
        len(audits),
        amount(largest),
        worst,
    )
