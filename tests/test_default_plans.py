"""The default plans pass: all of q6, three contexts of every other shape (`--full`: all of all)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import ROOT, Ran, full_run

Audit = Callable[..., Ran]
OTHERS = [f"q{rows}" for rows in (1, 2, 3, 4, 5, 7, 8)]


def passed(ran: Ran) -> Ran:
    assert ran.code == 0, ran.out + ran.err[-2000:]
    assert ran.json["verdict"] == "pass"
    assert ran.json["planned"] == ran.json["ran"] == ran.json["passed"]
    return ran


@pytest.mark.timeout(900)
def test_q6_whole(tmp_path: Path, audit: Audit) -> None:
    ran = passed(audit(ROOT, "run", "--shape", "q6", "--out", str(tmp_path), "--json"))
    captured = {result["case"] for result in ran.results() if "/smollm2-135m/" in result["case"]}
    assert len(captured) == 9
    assert {result["check"].partition(":")[0] for result in ran.results()} >= {"bytes", "repeat", "error", "probe"}
    if not os.environ.get("PYTEST_XDIST_WORKER"):  # beside other tests the time says nothing
        assert ran.json["seconds"] <= 90


@pytest.mark.timeout(900)
@pytest.mark.parametrize("shape", OTHERS)
def test_other_shapes(shape: str, tmp_path: Path, audit: Audit) -> None:
    narrowed = [] if full_run() else ["--context", "33", "--context", "128", "--context", "1649"]
    passed(audit(ROOT, "run", "--shape", shape, *narrowed, "--out", str(tmp_path), "--json"))
