"""The folders of closed variants can be deleted: all other variants stay, unedited, and the default audits run."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from audit.project import Project, find_project

ROOT = Path(__file__).resolve().parents[2]
SMALL = ("--context", "33", "--axis", "heads=3", "--axis", "dim=64", "--capture", "none", "--probe", "none")


def variants(project: Project) -> dict[str, list[tuple[str, str]]]:
    """Name and status of each operator's variants."""
    return {name: [(v.name, v.status) for v in operator.variants] for name, operator in project.operators.items()}


@pytest.fixture
def without_closed(own_project: Path) -> Path:
    """A copy of the project after its `closed` folders were deleted; nothing else is edited."""
    folders = [path for path in own_project.rglob("closed") if path.is_dir()]
    assert {path.parent.name for path in folders} == {"grouped", "scalar"}
    for folder in folders:
        shutil.rmtree(folder)
    return own_project


def test_every_other_variant_stays(without_closed: Path) -> None:
    whole = variants(find_project(ROOT))
    kept = {name: [v for v in found if v[1] != "closed"] for name, found in whole.items()}
    assert kept != whole
    assert variants(find_project(without_closed)) == kept


@pytest.mark.parametrize(("shape", "default"), [("q2", "piped_roles"), ("q1", "token_ahead")])
def test_the_default_is_audited(audit: Callable, without_closed: Path, shape: str, default: str) -> None:
    assert find_project(ROOT).shape(shape)[0].default == default
    ran = audit(without_closed, "run", "--shape", shape, "--variant", default, *SMALL, "--json")
    assert ran.code == 0, ran.out + ran.err
    assert default in {result["variant"] for result in ran.results() if result["check"] == "bytes"}
