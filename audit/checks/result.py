"""What a check says."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Literal

import msgspec

from audit.checks.tally import Tally

Verdict = Literal["pass", "fail", "inconclusive"]


class Figure(msgspec.Struct, frozen=True):
    """A float that survives JSON: the bits of its binary64 beside a readable text (NaN and infinity too)."""

    bits: str
    text: str

    @classmethod
    def of(cls, value: float) -> Figure:
        """The figure of a float."""
        return cls(struct.pack(">d", float(value)).hex(), f"{float(value):.6g}")

    @property
    def value(self) -> float:
        """The float, from its bits."""
        return float(struct.unpack(">d", bytes.fromhex(self.bits))[0])


class LargestDifference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far one buffer is from what it must equal, over the elements that differ.

    `absolute_at` and `ulp_at` name an element: `y[rows=3, n=12]`. `absolute` is None where no differing element has a
    number on both sides, `ulp` also where the elements are integers.
    """

    buffer: str
    differing: int  # elements
    absolute: Figure | None
    absolute_at: str
    ulp: int | None
    ulp_at: str
    nan_on_one_side: int  # elements
    nan_on_both_sides: int  # elements: NaNs of other bits


class ReferenceErrors(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The relative L2 errors of one buffer against a reference, over the elements that must be written.

    `roundoff` is the unit roundoff of the buffer's dtype; 0 for integers.
    """

    buffer: str
    reference: str
    mine: Figure
    parents: Figure
    roundoff: Figure

    @property
    def as_accurate(self) -> bool:
        """Whether the error is at most 5 % above the parent's, or above the rounding of the result."""
        return self.mine.value <= 1.05 * max(self.parents.value, self.roundoff.value)


class Result(msgspec.Struct, frozen=True):
    """One check's word on one variant in one case; `step` is empty where the check regards the whole case.

    `measured <= limit` is what a pass means, where both are there. `where` names the worst or first element,
    `detail` is a sentence for people. `largest` says how far each buffer with other bytes is off. `differences` say
    where bytes differ, once a check: in its first step that fails.
    """

    check: str
    verdict: Verdict
    detail: str
    step: str = ""
    where: str = ""
    measured: Figure | None = None
    limit: Figure | None = None
    differences: tuple[Tally, ...] = ()
    largest: tuple[LargestDifference, ...] = ()
    errors: tuple[ReferenceErrors, ...] = ()  # of both kernels, where they are compared


class Note(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was observed of one variant in one case and is not judged; `check` says which check would judge it."""

    check: str
    detail: str
    step: str = ""
    largest: tuple[LargestDifference, ...] = ()
    errors: tuple[ReferenceErrors, ...] = ()


def nothing(check: str, step: str, what: str) -> Result:
    """The result of a step in which a check has nothing to compare; `settled` decides what becomes of it."""
    return Result(check, "inconclusive", what, step)


def settled(results: Iterable[Result]) -> list[Result]:
    """One check's results of a case, of which the inconclusive ones compared nothing. They pass beside a step that
    compared something; otherwise the check compared nothing in the whole case and stays inconclusive."""
    found = list(results)
    if all(result.verdict == "inconclusive" for result in found):
        return found
    return [msgspec.structs.replace(one, verdict="pass") if one.verdict == "inconclusive" else one for one in found]


def worst(verdicts: list[Verdict]) -> Verdict:
    """The verdict over several: a finding outweighs inconclusive, which outweighs pass; nothing is inconclusive."""
    if "fail" in verdicts:
        return "fail"
    return "pass" if verdicts and "inconclusive" not in verdicts else "inconclusive"
