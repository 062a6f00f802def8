"""Consistent forgeries: a record that was edited, and sealed again so that every digest and count agrees.

What can be derived from the rest of a record is derived, and a forgery of it is contradictory. What cannot is listed in
`NOT_DERIVABLE`: a signature is what protects it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from audit.checks.result import Figure, Result
from audit.launch_record import LaunchRecord
from audit.project import Project, find_project
from audit.records.run import Audit, CaseRecord, RunRecord
from audit.records.verify import verify

from ..gate import made

Forge = Callable[[RunRecord], RunRecord]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return made.project(tmp_path_factory.mktemp("forgeries"))


@pytest.fixture
def project(whole: Project, tmp_path: Path) -> Project:
    return find_project(Path(shutil.copytree(whole.root, tmp_path / "softmax")))


def forged(project: Project, below: str, forge: Forge) -> tuple[str, str]:
    """The verdict on a forged record, and what is wrong with it."""
    (folder,) = [each for each in (project.root / below).iterdir() if (each / "evidence.json").is_file()]
    made.rewrite(folder, forge)
    found = verify(folder, project)
    return found.verdict, found.describe()


def each_audit(change: Callable[[Audit], Audit]) -> Forge:
    """Change every audit, its verdict kept."""
    return lambda record: msgspec.structs.replace(record, audits=tuple(map(change, record.audits)))


def each_result(check: str, change: Callable[[Result], Result | None]) -> Forge:
    """Change every result of a check, or leave it out."""

    def results(audit: Audit) -> Audit:
        changed = [change(one) if one.check.partition(":")[0] == check else one for one in audit.results]
        return msgspec.structs.replace(audit, results=tuple(one for one in changed if one is not None))

    return each_audit(results)


def measured(value: float, limit: float | None = None) -> Callable[[Result], Result]:
    """Another measured value, and another limit if one is given."""
    changes = {"measured": Figure.of(value)} | ({} if limit is None else {"limit": Figure.of(limit)})
    return lambda one: msgspec.structs.replace(one, **changes)


def last_step_left_out(one: Result) -> Result | None:
    return None if one.step == "restore" else one


def builds(**changes: object) -> Forge:
    """Change every build."""
    return lambda record: msgspec.structs.replace(
        record, builds={key: msgspec.structs.replace(build, **changes) for key, build in record.builds.items()}
    )


def planned(**changes: object) -> Forge:
    """Change every planned variant, in the record and in its plan file."""

    def change(record: RunRecord) -> RunRecord:
        variants = tuple(msgspec.structs.replace(one, **changes) for one in record.plan.variants)
        return msgspec.structs.replace(record, plan=msgspec.structs.replace(record.plan, variants=variants))

    return change


def same_launches(record: RunRecord) -> RunRecord:
    first = record.audits[0].launched_code
    sources = next(iter(record.builds.values())).sources
    alike = each_audit(lambda audit: msgspec.structs.replace(audit, launched_code=first))(record)
    return builds(sources=sources)(alike)


def a_parent_that_is_gone(record: RunRecord) -> RunRecord:
    """The parent's own line of the plan has another name; its audits are still there."""
    first, *others = record.plan.variants
    plan = msgspec.structs.replace(record.plan, variants=(msgspec.structs.replace(first, name="gone"), *others))
    return msgspec.structs.replace(record, plan=plan)


def launches(change: Callable[[LaunchRecord], LaunchRecord | None]) -> Forge:
    """Change every launch of every case, or leave it out."""

    def of_case(case: CaseRecord) -> CaseRecord:
        changed = {
            label: tuple(one for one in map(change, each) if one is not None) for label, each in case.launches.items()
        }
        return msgspec.structs.replace(case, launches=changed)

    return lambda record: msgspec.structs.replace(record, cases=tuple(map(of_case, record.cases)))


def argument(last: str) -> Forge:
    """Another last argument of every launch."""
    return launches(lambda one: msgspec.structs.replace(one, args=(*one.args[:-1], last)))


ONE_HALF = Figure.of(0.5).bits

DERIVABLE: dict[str, Forge] = {
    "bytes that differ pass": each_result("bytes", measured(3)),
    "bytes that are not a number pass": each_result("bytes", measured(float("nan"))),
    "an error over its limit passes": each_result("error", measured(1.0)),
    "an error that is not a number passes": each_result("error", measured(float("nan"))),
    "a limit that is not a number": each_result(
        "error", lambda one: msgspec.structs.replace(one, limit=Figure.of(float("nan")))
    ),
    "broken guards pass": each_result("guards", measured(1, 9)),
    "changed inputs pass": each_result("inputs", measured(1, 1)),
    "not finite passes": each_result("finite", measured(1)),
    "unwritten workspace passes": each_result("workspace", measured(1)),
    "fewer launches than planned": each_result("completion", measured(0)),
    "no launch at all": each_result(
        "completion", lambda one: msgspec.structs.replace(one, measured=Figure.of(0), limit=Figure.of(0))
    ),
    "a text that is not its bits": each_result(
        "error", lambda one: msgspec.structs.replace(one, measured=Figure(ONE_HALF, "1e-09"), limit=Figure.of(1))
    ),
    "no comparison with the parent": each_result("bytes", lambda _: None),
    "no comparison in the last step": each_result("bytes", last_step_left_out),
    "no check of the workspace": each_result("workspace", lambda _: None),
    "no check of the workspace in the last step": each_result("workspace", last_step_left_out),
    "no guards": each_result("guards", lambda _: None),
    "no inputs": each_result("inputs", lambda _: None),
    "no finite": each_result("finite", lambda _: None),
    "no repeat": each_result("repeat", lambda _: None),
    "no identity": each_result("identity", lambda _: None),
    "no completion": each_result("completion", lambda _: None),
    "no result at all": each_audit(lambda audit: msgspec.structs.replace(audit, results=())),
    "parent and child launch the same": same_launches,
    "builds without sources": builds(sources={}, binary_sha256=""),
    "builds of another source": builds(source="kernels/other.cu"),
    "builds of another backend": builds(backend="frozen"),
    "no builds": lambda record: msgspec.structs.replace(
        each_audit(lambda audit: msgspec.structs.replace(audit, build=None))(record), builds={}
    ),
    "a plan of another source": planned(source="kernels/other.cu"),
    "another grid": launches(lambda one: msgspec.structs.replace(one, grid=(2, 1, 1))),
    "another argument": argument("i32 ffffff7f"),
    "an argument that is none": argument("i32"),
    "no launches": launches(lambda _: None),
    "launches of nobody": lambda record: msgspec.structs.replace(
        record, cases=tuple(msgspec.structs.replace(one, launches={}) for one in record.cases)
    ),
    "a parent that was not planned": a_parent_that_is_gone,
    "no cases": lambda record: msgspec.structs.replace(record, cases=()),
    "steps that were never planned": lambda record: msgspec.structs.replace(
        record,
        cases=tuple(msgspec.structs.replace(one, steps=("live", "restore", "more")) for one in record.cases),
    ),
}  # fmt: skip

DERIVABLE_ON_A_GPU: dict[str, Forge] = {
    "no graph": each_result("graph", lambda _: None),
    "no comparison with the CPU": each_result("host", lambda _: None),
    "a graph that differs passes": each_result("graph", measured(1)),
    "a CPU that differs passes": each_result("host", measured(1)),
    "run on a CPU": lambda record: msgspec.structs.replace(
        record, plan=msgspec.structs.replace(record.plan, backend="host")
    ),
}  # fmt: skip

NOT_DERIVABLE: dict[str, Forge] = {
    "a smaller error": each_result("error", measured(0.0)),
    "another machine": lambda record: msgspec.structs.replace(
        record, machine=msgspec.structs.replace(record.machine, device="NVIDIA H200")
    ),
    "another time": lambda record: msgspec.structs.replace(record, started="2020-01-01T00:00:00+00:00"),
    "another command": lambda record: msgspec.structs.replace(record, command="audit run --shape other"),
    "another compiler": builds(compiler="nvcc 99"),
}


@pytest.mark.parametrize("name", DERIVABLE)
def test_a_forgery_that_can_be_derived_is_refused(project: Project, name: str) -> None:
    verdict, flaws = forged(project, "given", DERIVABLE[name])
    assert verdict == "fail", flaws
    assert "contradictory" in flaws


@pytest.mark.parametrize("name", DERIVABLE_ON_A_GPU)
def test_a_forgery_of_a_gpus_record_is_refused(project: Project, name: str) -> None:
    verdict, flaws = forged(project, "reports", DERIVABLE_ON_A_GPU[name])
    assert verdict == "fail", flaws


@pytest.mark.parametrize("name", NOT_DERIVABLE)
def test_what_only_a_signature_protects(project: Project, name: str) -> None:
    """Nothing in the record contradicts these: the list is kept true, so that nobody claims more."""
    verdict, flaws = forged(project, "given", NOT_DERIVABLE[name])
    assert verdict == "pass", flaws


def test_the_record_itself_is_whole(project: Project) -> None:
    assert forged(project, "given", lambda record: record)[0] == "pass"
    assert forged(project, "reports", lambda record: record)[0] == "pass"
