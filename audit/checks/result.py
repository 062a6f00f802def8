"""What a check says."""

from __future__ import annotations

import struct
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


class Result(msgspec.Struct, frozen=True):
    """One check's word on one variant in one case; `step` is empty where the check regards the whole case.

    `measured <= limit` is what a pass means, where both are there. `where` names the worst or first element,
    `detail` is a sentence for people. `differences` say where bytes differ, once a check: in its first step that fails.
    """

    check: str
    verdict: Verdict
    detail: str
    step: str = ""
    where: str = ""
    measured: Figure | None = None
    limit: Figure | None = None
    differences: tuple[Tally, ...] = ()


def worst(verdicts: list[Verdict]) -> Verdict:
    """The verdict over several: a finding outweighs inconclusive, which outweighs pass; nothing is inconclusive."""
    if "fail" in verdicts:
        return "fail"
    return "pass" if verdicts and "inconclusive" not in verdicts else "inconclusive"
