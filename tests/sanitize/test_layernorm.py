"""A kernel from elsewhere: `audit run` sees wrong numbers, the host's tools see the two lines that race."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from audit import bundle
from audit.backends import Completed
from audit.compile.cuda import compile_cubin
from audit.compile.host import build_host
from audit.errors import ToolMissing
from audit.project import find_project
from audit.records.sanitize import TOOLS, Tool
from audit.sanitize.host import tools as host
from audit.sanitize.host.tools import BUILT_FOR, HostRun

from ..conftest import ROOT, Ran

FOLDER = ROOT / "tests/projects/pages"
SOURCE = "kernels/layernorm.cu"
PROJECT = find_project(FOLDER)


def line(words: str) -> int:
    """The one line of the source that holds these words."""
    text = (FOLDER / SOURCE).read_text().splitlines()
    (number,) = [number for number, written in enumerate(text, 1) if words in written]
    return number


WRITE, READ = line("partial[warp.meta_group_rank()] = value;"), line("? partial[warp.thread_rank()] : 0.0f;")


def run(tool: Tool, name: str, folder: Path) -> HostRun:
    """A variant in its first step, two rows."""
    operator, declared = PROJECT.shape("layernorm")
    case = operator.case(declared, {"rows": 2, "n": 200}, seed=1)
    variant = operator.variant(name)
    folder.mkdir()
    inputs = operator.inputs(case, case.rng())
    written = bundle.write_bundle(folder, operator, variant, case, inputs, {"live": {}}, policy="exact")
    program = build_host(FOLDER, FOLDER / variant.code.path, written.entries, sanitizer=BUILT_FOR[tool])
    return host.run_host_tool(tool, folder, written, program, 120)


@pytest.mark.parametrize("tool", TOOLS)
def test_the_control_is_clean(tool: Tool, tmp_path: Path) -> None:
    ran = run(tool, "control", tmp_path / "case")
    assert isinstance(ran.outcome, Completed), ran.log + "\n".join(ran.report)
    assert len(ran.outcome.launches) == 1
    assert "<error>" not in ran.log
    assert tool == "initcheck" or ran.log == ""


def test_the_race_is_found_with_both_lines(tmp_path: Path) -> None:
    ran = run("racecheck", "hasty", tmp_path / "case")
    assert ran.ended
    assert not isinstance(ran.outcome, Completed)
    reports = ran.log.split("WARNING: ThreadSanitizer: data race")[1:]
    assert reports
    for report in reports:
        sides = re.findall(r"(?:[Rr]ead|[Ww]rite) of size .*\n((?:    #\d.*\n)+)", report)
        lines = {int(number) for side in sides for number in re.findall(rf"#0 .*{SOURCE}:(\d+)", side)}
        assert lines == {WRITE, READ}, report


def test_audit_run_tells_the_wrong_numbers(tmp_path: Path, audit: Callable[..., Ran]) -> None:
    project = Path(shutil.copytree(FOLDER, tmp_path / "layernorm"))
    ran = audit(project, "run", "--shape", "layernorm", "--json")
    assert ran.code == 1
    assert (ran.json["passed"], ran.json["failed"], ran.json["inconclusive"]) == (1, 1, 0)
    wrong = [result for result in ran.results() if result["verdict"] == "fail"]
    assert {result["variant"] for result in wrong} == {"hasty"}
    assert ran.failed() == {"bytes", "repeat", "error"}
    assert audit(project, "run", "--shape", "layernorm", "--variant", "control").code == 0


@pytest.mark.parametrize("nvcc", ["", "none"])
def test_nvidias_compilers_take_it(monkeypatch: pytest.MonkeyPatch, nvcc: str) -> None:
    monkeypatch.setenv("KERNEL_AUDIT_NVCC", nvcc)
    entries = ["layernorm_control", "layernorm_hasty"]
    try:
        assert list(compile_cubin(FOLDER, FOLDER / SOURCE, entries).symbols) == entries
    except ToolMissing as missing:
        pytest.skip(str(missing))
