"""Named suppressions: what is refused, what they match, and when one fails the session."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import msgspec
import pytest

from audit.errors import ProjectError
from audit.plan import Backend
from audit.project import find_project
from audit.records.sanitize import Side, Suppression, ToolFinding, complaints, counted
from audit.sanitize.suppressions import apply, concerning, declared, matches

from ..conftest import ROOT

TODAY = date(2026, 6, 1)
RULE = Suppression("known", "racecheck", "race", "k.cu:6", "ordered by its own barrier", "2026-12-31")
FINDING = ToolFinding(
    tool="racecheck",
    kind="race",
    severity="error",
    kernel="grouped_splits<6, 64>",
    message="m",
    sides=(Side("read", "f", "k.cu", 7), Side("write", "f", "k.cu", 6)),
    count=3,
    raw="",
)
TABLE = """
[tool.kernel-audit]

[[tool.kernel-audit.suppressions]]
name = "known"
tool = "racecheck"
kind = "race"
where = "k.cu:6"
reason = "ordered by its own barrier"
expires = 2026-12-31
"""


def test_a_table_is_read(softmax_project: Path) -> None:
    (softmax_project / "pyproject.toml").write_text(TABLE)
    assert declared(find_project(softmax_project)) == (RULE,)
    (softmax_project / "pyproject.toml").write_text(TABLE.replace("2026-12-31", '"2026-12-31"'))
    assert declared(find_project(softmax_project)) == (RULE,)


def test_none_is_declared_where_there_is_no_table(softmax_project: Path) -> None:
    assert declared(find_project(softmax_project)) == ()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('reason = "ordered by its own barrier"', "", r"suppressions\[0\] reason: expected a non-empty text"),
        ('"ordered by its own barrier"', '"  "', "reason: expected a non-empty text"),
        ('tool = "racecheck"', 'device = "gpu"\ntool = "racecheck"', "device: expected host or cuda, but got 'gpu'"),
        ('"racecheck"', '"helgrind"', "tool: expected one of memcheck, racecheck, synccheck, initcheck, but got"),
        ("2026-12-31", '"soon"', "expires: expected a date such as 2027-01-31, but got 'soon'"),
        ("2026-12-31", "3", "expires: expected a non-empty text"),
        ("expires", "until", "unknown field 'until'; known fields: name, tool"),
        ('kind = "race"', "kind = 3", "kind: expected a non-empty text"),
        ("[[tool.kernel-audit.suppressions]]", "[tool.kernel-audit.suppressions]", "Expected `array`"),
    ],
)
def test_a_malformed_table_is_refused(softmax_project: Path, old: str, new: str, words: str) -> None:
    assert old in TABLE
    (softmax_project / "pyproject.toml").write_text(TABLE.replace(old, new))
    with pytest.raises(ProjectError, match=words):
        declared(find_project(softmax_project))


def test_two_of_one_name_are_refused(softmax_project: Path) -> None:
    rule = TABLE.split("\n\n")[1]
    (softmax_project / "pyproject.toml").write_text(f"{TABLE}\n{rule}")
    with pytest.raises(ProjectError, match="two are named 'known'; rename one"):
        declared(find_project(softmax_project))


@pytest.mark.parametrize(
    ("changes", "matching"),
    [
        ({}, True),
        ({"where": "k.cu:7"}, True),
        ({"where": "k.cu:8"}, False),
        ({"where": "other/k.cu:6"}, False),
        ({"where": "grouped_splits"}, True),
        ({"where": "grouped_splits<6, 64>"}, True),
        ({"where": "grouped"}, False),
        ({"where": "grouped_splits<3, 64>"}, False),
        ({"tool": "memcheck"}, False),
        ({"kind": "crash"}, False),
    ],
)
def test_a_rule_matches_its_tool_kind_and_line(changes: dict[str, str], matching: bool) -> None:
    rule = msgspec.structs.replace(RULE, **changes)
    assert matches(rule, FINDING) == matching
    (applied,) = apply([rule], [FINDING], TODAY)
    assert applied.suppressed == ("known" if matching else "")


def test_a_rule_holds_through_its_last_day() -> None:
    for day, holds in (("2026-05-31", False), ("2026-06-01", True)):
        rule = msgspec.structs.replace(RULE, expires=day)
        (applied,) = apply([rule], [FINDING], TODAY)
        assert bool(applied.suppressed) == holds
        (used,) = counted([rule], [applied])
        assert used.used == int(holds)
        assert bool(complaints([used], TODAY, ["racecheck"])) != holds


def test_an_unused_rule_is_a_complaint_where_it_could_have_been_used() -> None:
    (complaint,) = complaints([RULE], TODAY, ["racecheck"])
    assert "matched nothing (racecheck, race, k.cu:6): remove it" in complaint
    assert complaints([RULE], TODAY, ["memcheck"]) == ()
    assert complaints([RULE], TODAY, ["racecheck"], narrowed=True) == ()
    assert complaints([msgspec.structs.replace(RULE, used=1)], TODAY, ["racecheck"]) == ()


@pytest.mark.parametrize(
    ("changes", "sessions"),
    [
        ({"where": "kernels/scalar/bytewise/pages.cuh:3"}, {("scalar", "host"), ("scalar", "cuda")}),
        ({"where": "kernels/grouped/staged/splits.cuh:3", "device": "host"}, {("grouped", "host")}),
        ({"where": "scalar_control_partitions", "device": "cuda"}, {("scalar", "cuda")}),
        ({"where": "scalar_control_partitions<6, 256>", "device": "cuda"}, {("scalar", "cuda")}),
        ({"where": "kernels/nowhere.cuh:3", "device": "cuda"}, {("scalar", "cuda"), ("grouped", "cuda")}),
        ({"where": "nothing", "device": "cuda"}, {("scalar", "cuda"), ("grouped", "cuda")}),
    ],
)
def test_a_session_answers_for_the_rules_of_its_own_kernels(
    changes: dict[str, str], sessions: set[tuple[str, str]]
) -> None:
    project, rule = find_project(ROOT), msgspec.structs.replace(RULE, **changes)
    backends: tuple[Backend, ...] = ("host", "cuda")
    asked = {(operator, backend) for operator in project.operators for backend in backends}
    assert {one for one in asked if concerning(project, [rule], *one)} == sessions


def test_an_expired_rule_is_a_complaint_wherever_it_is() -> None:
    expired = msgspec.structs.replace(RULE, expires="2025-01-01")
    (complaint,) = complaints([expired], TODAY, [], narrowed=True)
    assert "expired on 2025-01-01" in complaint
