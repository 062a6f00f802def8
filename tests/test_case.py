"""What a case tells the project's references, and what its record tells of them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from audit import case as cases
from audit.errors import ToolMissing
from audit.plan import Backend, Plan, Selection, make
from audit.project import Project, find
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
    project = find(folder)
    selection = Selection(axes={"n": (33,)}, variants=("control",))
    return project, make(project, "softmax", selection, arch="sm_90", time_limit=60, backend=backend)


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

    monkeypatch.setattr(cases, "execute", executed)
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
