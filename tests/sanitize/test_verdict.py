"""Clean only if all holds: each condition is taken away in turn."""

from __future__ import annotations

import msgspec
import pytest

from audit.records.sanitize import Canary, Observation, Side, Tool, ToolFinding, describe_finding
from audit.sanitize.verdict import canary, doubts, judge_run

FINDING = ToolFinding(
    tool="racecheck",
    kind="race",
    severity="warning",
    kernel="splits<6, 64>",
    message="Potential RAW hazard",
    sides=(Side("read", "splits", "k.cu", 7), Side("write", "splits", "k.cu", 6)),
    count=1,
    raw="raw",
)
CLEAN = Observation(("tool",), 0, True, 0, (), (), 4, 1.0)
FOUND = Observation(("tool",), 86, True, 1, (FINDING,), (), 4, 1.0)
PROVEN = [Canary("one", "racecheck", True, True, "")]


def test_all_that_holds_is_a_pass() -> None:
    assert judge_run("racecheck", CLEAN, 4, PROVEN) == ("pass", "no finding in 4 launches")
    assert judge_run("racecheck", msgspec.structs.replace(CLEAN, reported=None), 4, PROVEN)[0] == "pass"


@pytest.mark.parametrize(
    ("changes", "planned", "words"),
    [
        ({"exit_code": None}, 4, "killed at its limit of 1 s"),
        (
            {"exit_code": None, "complete": False, "launches": 0},
            4,
            "killed at its limit of 1 s; the report is incomplete",
        ),
        ({"complete": False}, 4, "the report is incomplete"),
        ({"troubles": ("racecheck is disabled",)}, 4, "the tool reports: racecheck is disabled"),
        ({"reported": 1}, 4, "its summary counts 1 report, but it lists 0"),
        ({"exit_code": 86}, 4, "exit status 86 with 0 reports"),
        ({"exit_code": 1}, 4, "exit status 1"),
        ({"launches": 3}, 4, "expected 4 launches, but 3 completed"),
        ({"launches": 5}, 4, "but 5 completed"),
        ({"launches": 0}, 0, "the plan has no launch"),
    ],
)
def test_anything_that_does_not_hold_is_inconclusive(changes: dict[str, object], planned: int, words: str) -> None:
    verdict, reason = judge_run("racecheck", msgspec.structs.replace(CLEAN, **changes), planned, PROVEN)
    assert verdict == "inconclusive"
    assert words in reason


@pytest.mark.parametrize(
    ("canaries", "words"),
    [
        ([], "no canary of racecheck ran"),
        ([Canary("one", "memcheck", True, True, "")], "no canary of racecheck ran"),
        ([*PROVEN, Canary("two", "racecheck", False, True, "nothing")], "did not find the canary two: nothing"),
        ([*PROVEN, Canary("two", "racecheck", True, False, "noise")], "did not pass the clean twin of two: noise"),
        ([Canary(name, "racecheck", False, True, "x") for name in "abc"], "the canary a and 2 more: x"),
    ],
)
def test_a_tool_that_is_not_proven_alive_is_inconclusive(canaries: list[Canary], words: str) -> None:
    verdict, reason = judge_run("racecheck", CLEAN, 4, canaries)
    assert verdict == "inconclusive"
    assert words in reason


@pytest.mark.parametrize(
    "changes", [{}, {"exit_code": None}, {"complete": False}, {"launches": 0}, {"troubles": ("trouble",)}]
)
def test_a_finding_is_a_fail_whatever_else_there_is(changes: dict[str, object]) -> None:
    for canaries in (PROVEN, []):
        verdict, reason = judge_run("racecheck", msgspec.structs.replace(FOUND, **changes), 4, canaries)
        assert verdict == "fail"
        assert "race in splits<6, 64>, k.cu:7 and k.cu:6" in reason
        assert ("killed at its limit of 1 s" in reason) == ("exit_code" in changes)


def test_suppressed_findings_alone_are_a_pass_that_says_so() -> None:
    quiet = msgspec.structs.replace(FOUND, findings=(msgspec.structs.replace(FINDING, suppressed="known"),))
    assert judge_run("racecheck", quiet, 4, PROVEN) == ("pass", "only 1 suppressed finding")
    assert judge_run("racecheck", msgspec.structs.replace(quiet, exit_code=0), 4, PROVEN)[0] == "inconclusive"
    assert judge_run("racecheck", msgspec.structs.replace(quiet, reported=2), 4, PROVEN)[0] == "inconclusive"
    both = msgspec.structs.replace(quiet, findings=(*quiet.findings, FINDING), reported=2)
    assert judge_run("racecheck", both, 4, PROVEN)[0] == "fail"


def test_a_planted_race_must_be_found_at_both_lines_and_its_twin_be_clean() -> None:
    fault, twin = msgspec.structs.replace(FOUND, launches=1), msgspec.structs.replace(CLEAN, launches=1)
    lines = {("k.cu", 6), ("k.cu", 7)}

    def ask(
        fault: Observation, twin: Observation, lines: set[tuple[str, int]], tool: Tool = "racecheck"
    ) -> tuple[bool, bool]:
        made = canary("planted", tool, fault, twin, {"race"}, lines)
        return made.found, made.twin_clean

    assert ask(fault, twin, lines) == (True, True)
    assert ask(fault, twin, {("k.cu", 6), ("k.cu", 8)}) == (False, True)
    assert ask(fault, twin, {("k.cu", 6), ("k.cu", 8)}, "synccheck") == (True, True)
    assert ask(fault, twin, {("k.cu", 8), ("k.cu", 9)}, "synccheck") == (False, True)
    assert ask(twin, twin, lines) == (False, True)
    assert ask(fault, fault, lines) == (True, False)
    assert ask(fault, msgspec.structs.replace(twin, launches=0), lines) == (True, False)
    other = msgspec.structs.replace(fault, findings=(msgspec.structs.replace(FINDING, kind="crash"),))
    assert ask(other, twin, lines) == (False, True)


def test_what_a_canary_lacks_is_told() -> None:
    made = canary("planted", "racecheck", CLEAN, CLEAN, {"race"}, {("k.cu", 6)})
    assert "expected a finding of race, k.cu:6, but got" in made.detail
    assert "the clean twin: expected 1 launch, but 4 completed" in made.detail


def test_a_finding_without_a_place_is_told() -> None:
    assert (
        describe_finding(msgspec.structs.replace(FINDING, sides=(), kernel=""))
        == "race in no kernel: Potential RAW hazard"
    )
    assert doubts(CLEAN, 4) == ()
