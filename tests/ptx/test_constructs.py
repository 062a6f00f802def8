"""The constructs of tests/conformance through clang: right, or refused by name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from audit.compile.clang import find_clang
from audit.compile.host import FRONT_END
from tests.conformance.projects import commanded, verdicts

HERE = Path(__file__).resolve().parents[1] / "conformance/constructs"
CONSTRUCTS = [one["name"] for one in json.loads((HERE / "constructs.json").read_text())]
# What a GPU refuses, or CUDA leaves open; and __ballot, whose reference is not what it returns.
FOUND = {
    "q_assert_fails": "assertion `n < 0` failed",
    "q_launch_bounds_exceeded": "a GPU refuses it",
    "w_activemask": "repeat: ",
    "w_ballot_legacy": "error:abs: ",
}
LEAST_THAT_PASS = 168
pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(find_clang() is None, reason="needs clang from release 19 on, and CUDA's headers"),
]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str]]:
    folder = tmp_path_factory.mktemp("constructs") / "project"
    shutil.copytree(HERE, folder, ignore=shutil.ignore_patterns("runs", "__pycache__"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FRONT_END, "clang")
        commanded(folder, "run", "--shape", "all", "--time-limit", "20")
    return {name: verdicts(folder, name)["control"] for name in CONSTRUCTS}


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_it_passes_or_is_refused_by_name(name: str, found: dict[str, tuple[str, str]]) -> None:
    verdict, details = found[name]
    if name in FOUND:
        assert verdict == "fail"
        assert FOUND[name] in details
    elif verdict != "pass":
        assert verdict == "inconclusive"
        assert f"kernels/{name}.cu:" in details or "the declaration does not fit" in details


def test_as_many_pass_as_before(found: dict[str, tuple[str, str]]) -> None:
    assert sum(verdict == "pass" for verdict, _ in found.values()) >= LEAST_THAT_PASS
