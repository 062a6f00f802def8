"""Every planted fault of fixtures/faults is caught, by the check that is named there."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import ROOT, Ran

FAULTS = sorted((ROOT / "fixtures/faults").glob("*.toml"))


def test_there_are_faults() -> None:
    assert len(FAULTS) >= 8


@pytest.mark.parametrize("path", FAULTS, ids=lambda path: path.stem)
def test_fault_is_caught(path: Path, own_project: Path, audit: Callable[..., Ran]) -> None:
    fault = tomllib.loads(path.read_text())
    source = own_project / fault["file"]
    text = source.read_text()
    assert text.count(fault["find"]) == 1
    source.write_text(text.replace(fault["find"], fault["replace"]))
    ran = audit(own_project, "run", "--shape", "q6", "--json", *fault["options"])
    assert ran.code == 1, ran.err
    assert fault["check"] in ran.failed()
    if "detail" in fault:
        assert any(fault["detail"] in result["detail"] for result in ran.results() if result["verdict"] == "fail")


def test_the_clean_copy_passes(own_project: Path, audit: Callable[..., Ran]) -> None:
    """The control twin of all faults: the same copy, the same options, nothing planted."""
    ran = audit(own_project, "run", "--shape", "q6", "--json", "--context", "33", "--context", "129")
    assert ran.code == 0, ran.out + ran.err
    assert ran.json["planned"] == ran.json["ran"] == ran.json["passed"] == 4
