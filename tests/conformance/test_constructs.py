"""One small kernel for one construct of CUDA: on the CPU the result is right, or the construct is refused by name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.conformance.projects import commanded, verdicts

HERE = Path(__file__).parent
CONSTRUCTS = [one["name"] for one in json.loads((HERE / "constructs/constructs.json").read_text())]
# What a GPU refuses, or CUDA leaves open, and a run therefore does not pass.
FOUND = {
    "q_assert_fails": "assertion `n < 0` failed",
    "q_launch_bounds_exceeded": "a GPU refuses it",
    "w_activemask": "repeat: ",  # it takes __activemask() for the mask of its branch
}
LEAST_THAT_PASS = 114


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str]]:
    folder = tmp_path_factory.mktemp("constructs") / "project"
    shutil.copytree(HERE / "constructs", folder, ignore=shutil.ignore_patterns("runs", "__pycache__"))
    commanded(folder, "run", "--shape", "all", "--time-limit", "20")
    return {name: verdicts(folder, name)["control"] for name in CONSTRUCTS}


@pytest.mark.full
@pytest.mark.parametrize("name", CONSTRUCTS)
def test_it_passes_or_is_refused_by_name(name: str, found: dict[str, tuple[str, str]]) -> None:
    verdict, details = found[name]
    if name in FOUND:
        assert verdict == "fail"
        assert FOUND[name] in details
    elif verdict != "pass":
        assert verdict == "inconclusive"
        assert details.startswith("completion: not supported here: ")
        assert f"kernels/{name}.cu:" in details or "a kernel parameter must be" in details


@pytest.mark.full
def test_as_many_pass_as_before(found: dict[str, tuple[str, str]]) -> None:
    assert sum(verdict == "pass" for verdict, _ in found.values()) >= LEAST_THAT_PASS
