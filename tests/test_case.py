"""What a case tells the project's references, and what its record tells of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from audit import case as cases
from audit.checks import CHECKS, Result, View
from audit.errors import ProjectError, ToolMissing
from audit.plan import Backend, Plan, Selection, make_plan
from audit.project import Project, find_project
from audit.records.run import CaseRecord
from audit.spec import Case


def planned(folder: Path, backend: Backend) -> tuple[Project, Plan]:
    """One case of the control; the reference says what it saw."""
    source = folder / "kernels/softmax.py"
    text = source.read_text().replace('Reference("fp64", softmax64)', 'Reference("fp64", softmax64, "", computer)')
    text = text.replace("def softmax64(case, inputs):\n", "def softmax64(case, inputs):\n    SEEN.append(case.gpu)\n")
    told = 'SEEN = []\n\n\ndef computer(case):\n    return f"gpu={case.gpu}"\n\n\n'
    text = text.replace("def variant(", f"{told}def variant(")
    source.write_text(text)
    project = find_project(folder)
    selection = Selection(axes={"n": (33,)}, variants=("control",))
    return project, make_plan(project, "softmax", selection, arch="sm_90", time_limit=60, backend=backend)


def seen(project: Project) -> list[bool]:
    compute = project.operators["softmax"].references[0].compute
    found = compute.__globals__["SEEN"]  # type: ignore[attr-defined]
    assert isinstance(found, list)
    return found


def test_what_computed_a_reference_is_recorded(softmax_project: Path) -> None:
    project, plan = planned(softmax_project, "host")
    outcome = cases.audit_case(project, plan, plan.cases[0], threads=1)
    assert seen(project) == [False]
    assert outcome.record.computed_by == {"fp64": "gpu=False"}
    assert outcome.record.case == plan.cases[0]


def test_references_learn_that_their_kernels_run_on_a_gpu(
    softmax_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def executed(*_arguments: object) -> None:
        raise ToolMissing("there is no GPU here")

    monkeypatch.setattr(cases, "execute_variant", executed)
    project, plan = planned(softmax_project, "cuda")
    with pytest.raises(ToolMissing):
        cases.audit_case(project, plan, plan.cases[0], threads=1)
    assert seen(project) == [True]
    assert not plan.cases[0].gpu


def test_a_record_without_the_field_is_still_read() -> None:
    older = CaseRecord(Case("q", "op", {}), "00", None, ("live",), None)
    fields = msgspec.to_builtins(older)
    del fields["computed_by"]
    assert msgspec.convert(fields, CaseRecord) == older


def narrow(folder: Path) -> tuple[Project, Plan]:
    """One case of the control."""
    project = find_project(folder)
    selection = Selection({"n": (33,)}, ("control",))
    return project, make_plan(project, "softmax", selection, arch="sm_90", time_limit=60)


def test_what_a_check_raises_is_a_bug_of_the_tool(softmax_project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_view: View) -> Iterator[Result]:
        raise ZeroDivisionError("a bug of the tool")
        yield

    monkeypatch.setitem(CHECKS, "bytes", broken)
    project, plan = narrow(softmax_project)
    with pytest.raises(ZeroDivisionError, match="a bug of the tool"):
        cases.audit_case(project, plan, plan.cases[0], threads=1)


def test_what_a_bound_raises_is_the_projects_to_mend(softmax_project: Path) -> None:
    source = softmax_project / "kernels/softmax.py"
    text = source.read_text().replace("import Axis,", "import Axis, Bound,")
    source.write_text(text.replace("bounds=[", 'bounds=[Bound("ratio", lambda *_: 1 / 0), '))
    project, plan = narrow(softmax_project)
    with pytest.raises(ProjectError, match=r"bound ratio raised ZeroDivisionError.*softmax\.py:\d+"):
        cases.audit_case(project, plan, plan.cases[0], threads=1)
