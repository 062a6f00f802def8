"""The default plans pass: all of q6, three contexts of one row and of 2, 4 and 8, which fill one, two and three tiles
of rows, and one of each other shape (`--full`: all of all)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import ROOT, Ran, full_run

Audit = Callable[..., Ran]
CONTEXTS = ("33", "128", "1649")
OTHERS = {
    "q2": CONTEXTS,
    "q3": ("33",),
    "q4": CONTEXTS,
    "q5": ("128",),
    "q7": ("1649",),
    "q8": CONTEXTS,
}


def passed(ran: Ran) -> Ran:
    assert ran.code == 0, ran.out + ran.err[-2000:]
    assert ran.json["verdict"] == "pass"
    assert ran.json["planned"] == ran.json["ran"] == ran.json["passed"]
    return ran


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_q6_whole(tmp_path: Path, audit: Audit) -> None:
    ran = passed(audit(ROOT, "run", "--shape", "q6", "--out", str(tmp_path), "--json"))
    captured = {result["case"] for result in ran.results() if "/smollm2-135m/" in result["case"]}
    assert len(captured) == 9
    assert {result["check"].partition(":")[0] for result in ran.results()} >= {"bytes", "repeat", "error", "probe"}
    if not os.environ.get("PYTEST_XDIST_WORKER"):  # beside other tests the time says nothing
        assert ran.json["seconds"] <= 90


@pytest.mark.timeout(900)
def test_q1(tmp_path: Path, audit: Audit) -> None:
    """By the command, so that the checks of its operator must tell wrong results as those of q6 must."""
    passed(audit(ROOT, "run", "--shape", "q1", *narrowed(*CONTEXTS), "--out", str(tmp_path), "--json"))


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("shape", "contexts"), OTHERS.items(), ids=OTHERS)
def test_other_shapes(shape: str, contexts: tuple[str, ...], tmp_path: Path, audit: Audit, audit_here: Audit) -> None:
    call = audit if full_run() else audit_here
    passed(call(ROOT, "run", "--shape", shape, *narrowed(*contexts), "--out", str(tmp_path), "--json"))


def narrowed(*contexts: str) -> list[str]:
    return [] if full_run() else [word for context in contexts for word in ("--context", context)]
