"""The gate over evidence that a GPU left, in a copy of this very project, beside a fresh run of its kernels here."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from audit.gate.run import gate
from audit.gate.verdict import Gate
from audit.project import Project, find_project
from audit.records.verify import verify

from ..conftest import ROOT, Ran
from .made import condition, rewrite, wrong
from .retained import HOST, add, copy, newest
from .test_decision import without_case


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy(tmp_path_factory.mktemp("retained") / "project")


@pytest.fixture
def retained(whole: Path, tmp_path: Path) -> Project:
    return find_project(Path(shutil.copytree(whole, tmp_path / "project")))


def folder_of(project: Project) -> Path:
    return project.root / newest().relative_to(ROOT)


def judged(project: Project, policy: str = "everyday") -> Gate:
    return gate(find_project(project.root), policy, may_run=False)


def stale(project: Project) -> bool:
    """Whether the retained evidence is of sources that have changed since, for a reason of the project's own."""
    return verify(folder_of(project), project).verdict == "inconclusive"


def test_it_passes_and_a_release_asks_for_todays_sources(retained: Project) -> None:
    everyday = judged(retained)
    assert everyday.verdict == "pass"
    assert set(wrong(everyday).values()) <= {"warn"}
    assert bool(wrong(everyday)) <= stale(retained)
    source = retained.root / "kernels/scalar/control.cu"
    assert (judged(retained, "release").verdict == "pass") or stale(retained)
    source.write_text(source.read_text() + "// one line more\n")
    assert judged(retained).verdict == "pass"
    release = judged(retained, "release")
    assert release.verdict == "fail"
    sources = condition(release, "sources q1 on cuda")
    assert condition(release, "sources q1 on cuda (2)").verdict == "fail"
    assert "control, lookup" in sources.detail  # the first files named are those that moved


@pytest.mark.parametrize("file", ["evidence.json", "plan.json", "statement.json"])
def test_one_altered_byte_fails(retained: Project, file: str) -> None:
    (path,) = folder_of(retained).glob(f"{file}*")
    content = bytearray(path.read_bytes())
    content[2 * len(content) // 3] ^= 4
    path.write_bytes(content)
    found = judged(retained)
    assert found.verdict == "fail"
    assert condition(found, f"evidence {path.parent.name}").measured == "altered"


def test_one_planned_case_missing_is_inconclusive(retained: Project) -> None:
    rewrite(folder_of(retained), without_case(lambda case: case.context == 129 and case.layout == "padded"))
    found = judged(retained)
    assert found.verdict == "inconclusive", wrong(found)
    assert "layout=padded" in next(one.detail for one in found.conditions if one.verdict == "inconclusive")


def test_one_capture_layer_missing_in_the_evidence_is_inconclusive(retained: Project) -> None:
    rewrite(folder_of(retained), without_case(lambda case: "layer28" in (case.capture or "")))
    found = judged(retained)
    assert found.verdict == "inconclusive", wrong(found)
    captures = condition(found, "captures q1 on cuda")
    assert (captures.measured, captures.required) == ("6", "9 layers x ranks")
    assert "layer28/rank0" in captures.detail


def test_one_capture_layer_missing_in_the_set_is_inconclusive(retained: Project) -> None:
    file = retained.root / "fixtures/captures/smollm2-135m/manifest.json"
    manifest = json.loads(file.read_bytes())
    manifest["records"] = [record for record in manifest["records"] if record["layer"] != 28]
    file.write_text(json.dumps(manifest))
    found = judged(retained)
    assert found.verdict == "inconclusive", wrong(found)
    captured = condition(found, "capture set smollm2-135m")
    assert (captured.measured, captured.required) == ("6", "9 layers x ranks")
    assert "lacks layer28/rank0" in captured.detail


def test_beside_a_fresh_run_of_the_kernels_here(retained: Project, audit: Callable[..., Ran]) -> None:
    add(retained.root, HOST)
    ran = audit(retained.root, "gate", "--format", "json")
    assert ran.code == 0, ran.out
    by_name = {one["name"]: one for one in ran.json["conditions"]}
    assert by_name["audits q1 on host"]["measured"] == "2 passed"
    assert by_name["audits q1 on host"]["path"].startswith("runs/")
