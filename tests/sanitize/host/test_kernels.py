"""The controls under the host tools: clean as they are, and every barrier that is taken out is missed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from audit import bundle
from audit.backends import Completed
from audit.compile.host import build_host
from audit.compile.sources import project_sources
from audit.project import find_project
from audit.records.sanitize import TOOLS, Tool
from audit.sanitize.host import tools as host
from audit.sanitize.host.output import observe_host_run
from audit.sanitize.host.tools import BUILT_FOR, HostRun

from ...conftest import ROOT, full_run

PROJECT = find_project(ROOT)
SMALL = {"context": 65, "heads": 3, "dim": 64}  # three tiles of one split; one partition


def run(tool: Tool, shape: str, folder: Path, root: Path = ROOT, name: str = "control") -> HostRun:
    """A variant in its first step, with its source as it stands in `root`."""
    operator, declared = PROJECT.shape(shape)
    case = operator.case(declared, SMALL, seed=1)
    variant = operator.variant(name)
    inputs = operator.inputs(case, case.rng())
    folder.mkdir()
    written = bundle.write_bundle(folder, operator, variant, case, inputs, {"live": {}}, policy="exact")
    program = build_host(root, root / variant.code.path, written.entries, sanitizer=BUILT_FOR[tool])
    return host.run_host_tool(tool, folder, written, program, 120)


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("shape", ["q1", "q6"])
def test_a_control_is_clean(tool: Tool, shape: str, tmp_path: Path) -> None:
    ran = run(tool, shape, tmp_path / "case")
    assert isinstance(ran.outcome, Completed), ran.log + "\n".join(ran.report)
    assert len(ran.outcome.launches) == 2
    assert "<error>" not in ran.log
    assert tool == "initcheck" or ran.log == ""


def kernels_in(root: Path) -> Path:
    """The project's kernels in a folder of their own, free to be damaged."""
    shutil.copytree(ROOT / "kernels", root / "kernels", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    return root


@pytest.mark.parametrize(
    ("shape", "name", "path", "written"),
    [
        ("q1", "token_groups", "kernels/scalar/streamed/token_weights.cuh", "m.score[threadIdx.x / Behind][i] = 0.0f;"),
        pytest.param(
            *("q6", "rolled_steps", "kernels/grouped/direct/row_sums.cuh", "weights.tile_sum[slot][warp] = 0.0f;"),
            marks=pytest.mark.full,
        ),
    ],
)
def test_what_a_vector_takes_along_has_been_written(
    shape: str, name: str, path: str, written: str, tmp_path: Path
) -> None:
    """Weights of tokens that are not there, sums of tiles that are not there: no result shows them."""
    clean = run("initcheck", shape, tmp_path / "clean", name=name)
    assert "<error>" not in clean.log
    root = kernels_in(tmp_path / "project")
    text = (root / path).read_text()
    assert text.count(written) == 1
    (root / path).write_text(text.replace(written, ";"))
    damaged = run("initcheck", shape, tmp_path / "damaged", root, name)
    assert "<error>" in damaged.log


BARRIER = r"(?:__sync(?:threads|warp)\(\)|audit::barrier_sync\([^()]*\)|[\w.\[\]]+\.sync\(\));"
TEXTS = {str(path.relative_to(ROOT)): path.read_text() for path in sorted((ROOT / "kernels").rglob("*.cu*"))}
ALONE = re.compile(rf"\bvoid (\w+)\([^()]*\) {{\s*{BARRIER}\s*}}")
NAMED = {name for text in TEXTS.values() for name in ALONE.findall(text)}
"""Functions that are nothing but a barrier."""
ANY = "|".join([BARRIER, *(rf"\b{name}\([^()]*\);" for name in sorted(NAMED))])


def barriers() -> list[tuple[str, int]]:
    """Every line of the kernels with a barrier, or with a call of a function that is nothing but one."""
    return [
        (path, number)
        for path, text in TEXTS.items()
        for number, line in enumerate(text.splitlines(), 1)
        if without_barrier(line) != line
    ]


def without_barrier(line: str) -> str:
    """A line without the barrier that it holds, if any; what stands before it may need a statement."""
    code, comment, rest = line.partition("//")
    return re.sub(ANY, ";", code, count=1) + comment + rest


CASES = (
    {"context": 65, "heads": 3, "dim": 64},
    {"context": 300, "page": 1648},
    {"context": 24_577, "heads": 3, "dim": 64},
)
FEW = ("kernels/grouped/control.cu", "kernels/scalar/bytewise/reduce.cuh")  # the first barrier of each
TAKEN_OUT = barriers() if full_run() else [next(one for one in barriers() if one[0] == path) for path in FEW]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("path", "line"), TAKEN_OUT)
def test_a_barrier_taken_out_is_a_race_with_both_lines(path: str, line: int, tmp_path: Path) -> None:
    """In the first variant and case, the smallest first, in which the barrier is needed at all.

    Or in none, where others are left waiting for a barrier that counts whom it expects (the last one of a role) or come
    to one that nobody has started.
    """
    root = kernels_in(tmp_path / "project")
    lines = TEXTS[path].splitlines()
    lines[line - 1] = without_barrier(lines[line - 1])
    (root / path).write_text("\n".join(lines))
    shape = "q1" if "/scalar/" in path else "q6"
    operator, declared = PROJECT.shape(shape)
    users = [variant for variant in operator.variants if path in project_sources(ROOT, ROOT / variant.code.path)]
    assert users, f"{path} belongs to no variant"
    told = False
    for index, axes in enumerate(CASES):
        for variant in users:
            case = operator.case(declared, axes, seed=1)
            folder = tmp_path / f"{variant.name}{index}"
            folder.mkdir()
            inputs = operator.inputs(case, case.rng())
            written = bundle.write_bundle(folder, operator, variant, case, inputs, {"live": {}}, policy="exact")
            program = build_host(root, root / variant.code.path, written.entries, sanitizer="thread")
            ran = host.run_host_tool("racecheck", folder, written, program, 300)
            seen = observe_host_run(ran, written, tuple(program.identity.sources))
            told |= any(finding.kind in ("divergent-barrier", "invalid-barrier") for finding in seen.findings)
            races = [finding for finding in seen.findings if finding.kind == "race"]
            if races:
                for race in races:
                    assert len(race.sides) == 2, race
                    assert all(side.file.startswith("kernels/") and side.line for side in race.sides), race
                return
    assert told, f"{path}:{line} is needed in none of {len(CASES)} cases"
