"""A survey keeps what every shape of a project came to, and what could not be run is inconclusive in it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from audit.project import find_project
from audit.records.kinds import load_record
from audit.records.survey import KIND, SurveyRecord
from audit.records.verify import verify

from .conftest import ROOT, Ran

BROKEN = """
from audit import Axis, Buffer, Launch, Operator, Source, Variant

broken = Operator(
    "broken", axes=[Axis("n", 4)], buffers=lambda c: [Buffer("y", "f32", "n", "out")],
    inputs=lambda c, rng: {"y": [1.0]},
    variants=[Variant("control", Source("kernels/ordinary.cu"), launches=lambda c: [])],
)
"""


@pytest.fixture(scope="module")
def surveyed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, int]:
    """The project, its survey's folder, and the exit code."""
    project = tmp_path_factory.mktemp("surveyed") / "ordinary"
    shutil.copytree(ROOT / "tests/projects/ordinary", project, ignore=shutil.ignore_patterns("runs", "__pycache__"))
    (project / "kernels/broken.py").write_text(BROKEN)
    done = subprocess.run(
        [sys.executable, "-m", "audit", "survey", "--jobs", "2"],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    (home,) = [path for path in (project / "runs").iterdir() if path.is_dir()]
    return project, home, done.returncode


def test_every_shape_has_a_line(surveyed: tuple[Path, Path, int]) -> None:
    project, home, code = surveyed
    record = load_record(home)
    assert isinstance(record, SurveyRecord)
    found = {shape.shape: shape for shape in record.shapes}
    assert list(record.planned) == list(found)
    assert {name: shape.verdict for name, shape in found.items()} == {
        "quantise": "fail", "accumulate": "fail", "mask": "fail", "total": "pass", "broken": "inconclusive",
    }  # fmt: skip
    assert "what inputs returned" in found["broken"].refusal
    assert {one.name: [each.source for each in one.objections] for one in found["mask"].variants} == {
        "control": [],
        "too_many": ["bytes", "finite", "error:unmasked"],
    }
    assert (code, record.summary.verdict, record.summary.planned) == (1, "fail", 5)
    assert verify(home, find_project(project)).describe().startswith("complete, unaltered")
    assert "<title>fail: survey" in (home / "report.html").read_text()


def test_a_survey_is_stale_where_one_of_its_files_changed(surveyed: tuple[Path, Path, int], tmp_path: Path) -> None:
    project, home, _ = surveyed
    copy = Path(shutil.copytree(project, tmp_path / "ordinary"))
    with (copy / "kernels/ordinary.cu").open("a") as source:
        source.write("// more\n")
    found = verify(copy / "runs" / home.name, find_project(copy))
    assert (found.verdict, found.flaws[0].what) == ("inconclusive", "kernels/ordinary.cu has changed")


def test_a_survey_that_says_more_than_its_lines_contradicts_itself(surveyed: tuple[Path, Path, int]) -> None:
    record = KIND.load(surveyed[1])
    assert list(KIND.contradictions(record, {})) == []
    better = msgspec.structs.replace(record.summary, verdict="pass", failed=0, passed=5)
    assert list(KIND.contradictions(msgspec.structs.replace(record, summary=better), {}))
    first = msgspec.structs.replace(record.shapes[0], verdict="pass")
    changed = msgspec.structs.replace(record, shapes=(first, *record.shapes[1:]))
    assert any("quantise" in what or record.shapes[0].shape in what for what in KIND.contradictions(changed, {}))
    assert list(KIND.gaps(msgspec.structs.replace(record, shapes=record.shapes[1:]))) == [
        f"shape {record.shapes[0].shape} has no result"
    ]


def test_help_names_what_it_runs(audit: Callable[..., Ran]) -> None:
    assert "Run every shape of a project and keep one record of all" in audit(ROOT, "survey", "--help").out
