"""A variant is compared with the parent that it declares, or with a named ancestor, or its result is inconclusive."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from audit.bounds import RelL2
from audit.case import audit_case
from audit.plan import PlannedVariant, Selection, make_plan, planned_variants
from audit.project import find_project
from audit.spec import Operator, Source, Status, Variant

from ..conftest import Ran


def operator(*variants: tuple[str, str | None, Status]) -> Operator:
    """An operator with variants of these names, parents and statuses."""
    declared = [Variant(name, Source("k.cu"), lambda _: [], parent, status) for name, parent, status in variants]
    return Operator("op", [], lambda _: [], lambda *_: {}, declared, bounds=[RelL2("y", 1e-6)])


def planned(declared: Operator, *names: str) -> list[tuple[str, str | None, bool]]:
    return [(one.name, one.parent, one.baseline_only) for one in planned_variants(declared, names)]


def test_one_word_does_not_drop_the_parent() -> None:
    declared = operator(("control", None, "experimental"), ("fast", "control", "admitted"))
    assert planned(declared) == [("control", None, True), ("fast", "control", False)]


@pytest.mark.parametrize("status", ["experimental", "closed"])
def test_a_parent_runs_whatever_its_status(status: Status) -> None:
    declared = operator(("a", None, "control"), ("b", None, status), ("c", "b", "admitted"))
    assert planned(declared) == [("a", None, False), ("b", None, True), ("c", "b", False)]


def test_an_ancestor_that_runs_anyway_is_enough() -> None:
    declared = operator(("a", None, "control"), ("b", "a", "closed"), ("c", "b", "admitted"))
    assert planned(declared) == [("a", None, False), ("c", "a", False)]
    assert planned(declared, "c") == [("b", None, True), ("c", "b", False)]
    assert planned(declared, "a", "c") == [("a", None, False), ("c", "a", False)]


def test_readmes_fast_admitted_by_one_word_still_fails(softmax_project: Path, audit: Callable[..., Ran]) -> None:
    """`wrong` differs from its parent `control`, whose status leaves it out of the default plan."""
    source = softmax_project / "kernels/softmax.py"
    text = source.read_text()
    admitted = text.replace('variant("wrong", "control")', 'replace(variant("wrong", "control"), status="admitted")')
    source.write_text(f"from dataclasses import replace\n{admitted}")
    ran = audit(softmax_project, "run", "--axis", "n=33", "--json")
    assert ran.code == 1
    assert {finding["check"] for finding in ran.json["findings"]} >= {"bytes"}


def test_a_plan_that_lost_the_parent_is_inconclusive(softmax_project: Path) -> None:
    project = find_project(softmax_project)
    plan = make_plan(project, "softmax", Selection({"n": (33,)}, ("fast",)), arch="sm_90", time_limit=60)
    alone = PlannedVariant("fast", None, "experimental", "kernels/fast.cu", declared_parent="control")
    lost = msgspec.structs.replace(plan, variants=(alone,))
    (audited,) = audit_case(project, lost, lost.cases[0], threads=1).audits
    (result,) = [each for each in audited.results if each.check == "bytes"]
    assert (result.verdict, result.detail) == (
        "inconclusive", "declares the parent control, but no ancestor of it ran"
    )  # fmt: skip
