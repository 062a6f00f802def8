"""The controls under the host tools: clean as they are, and every barrier that is taken out is missed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from audit import bundle
from audit.backends import Completed
from audit.build.host import build_host
from audit.project import find
from audit.sanitize import host
from audit.sanitize.host import BUILT_FOR, HostRun
from audit.sanitize.schema import TOOLS, Tool

from ..conftest import ROOT, full_run

PROJECT = find(ROOT)
SMALL = {"context": 65, "heads": 3, "dim": 64}  # three tiles of one split; one partition


def run(tool: Tool, shape: str, folder: Path, root: Path = ROOT) -> HostRun:
    """`control` in its first step, with its source as it stands in `root`."""
    operator, declared = PROJECT.shape(shape)
    case = operator.case(declared, SMALL, seed=1)
    variant = operator.variant("control")
    inputs = operator.inputs(case, case.rng())
    folder.mkdir()
    written = bundle.write(folder, operator, variant, case, inputs, {"live": {}}, policy="exact")
    program = build_host(root, root / variant.code.path, written.entries, sanitizer=BUILT_FOR[tool])
    return host.run(tool, folder, written, program, 120)


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("shape", ["q1", "q6"])
def test_a_control_is_clean(tool: Tool, shape: str, tmp_path: Path) -> None:
    ran = run(tool, shape, tmp_path / "case")
    assert isinstance(ran.outcome, Completed), ran.log + "\n".join(ran.report)
    assert len(ran.outcome.launches) == 2
    assert "<error>" not in ran.log
    assert tool == "initcheck" or ran.log == ""


def barriers(path: str) -> list[int]:
    """The lines of a source that hold a barrier and nothing else."""
    text = (ROOT / path).read_text().splitlines()
    return [number for number, line in enumerate(text, 1) if re.match(r"\s*__sync(threads|warp)\(\);", line)]


SCALAR, GROUPED = "kernels/scalar/control.cu", "kernels/grouped/control.cu"
ALL = [(shape, path, line) for shape, path in (("q1", SCALAR), ("q6", GROUPED)) for line in barriers(path)]
TAKEN_OUT = ALL if full_run() else [ALL[0], ALL[-1]]


@pytest.mark.parametrize(("shape", "path", "line"), TAKEN_OUT)
def test_a_barrier_taken_out_is_a_race_with_both_lines(shape: str, path: str, line: int, tmp_path: Path) -> None:
    text = (ROOT / path).read_text().splitlines()
    text[line - 1] = ""
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text("\n".join(text))
    ran = run("racecheck", shape, tmp_path / "case", tmp_path)
    assert ran.ended
    assert not isinstance(ran.outcome, Completed)
    reports = ran.log.split("WARNING: ThreadSanitizer: data race")[1:]
    assert reports
    for report in reports:
        sides = re.findall(r"(?:[Rr]ead|[Ww]rite) of size .*\n((?:    #\d.*\n)+)", report)
        assert len(sides) == 2
        assert all(f"{path}:" in side for side in sides), report
