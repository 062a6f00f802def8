"""Every format against a parser that is not ours: JUnit's, SARIF's published schema, JSON, and the rules of GitHub."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
import pytest
from junitparser import Error, Failure, JUnitXml, TestSuite

from audit.gate.formats import FORMATS
from audit.gate.formats.github import ANNOTATIONS, LIMIT, commands, summary
from audit.gate.formats.text import text
from audit.gate.verdict import SCHEMA, Condition, Gate, GateFinding, SourceLine, overall

from ..schemas import SARIF, errors, schema

HOSTILE = "<script>\x00\x1b|`*\u202eabc, 100%: \r\n\ud7ff'\"&]]>"
CONDITIONS = (
    Condition("audits q6 on host", "21 passed", "21 passed", "pass", path="runs/x/report.html"),
    Condition("sources q6 on cuda", "those of the project now", "5 of 6 variants stale", "warn", "k.cu has changed"),
    Condition("audits q1 on host", "21 passed", "20 passed, 1 failed", "fail", HOSTILE, "runs/y/report.html"),
    Condition("canaries memcheck q6 on host", "all 3 found", "2", "inconclusive", "one was not found"),
)
FOUND = (
    GateFinding(
        "check/bytes", "error", f"fast: 3 of 7 differ {HOSTILE}", "fast", "q1/seed1",
        (SourceLine("kernels/a b.cu"),), "0" * 16, "r",
    ),
    GateFinding(
        "racecheck/race", "error", "race in k", "fast", "q1/seed1",
        (SourceLine("kernels/k.cu", 12, "write"), SourceLine("kernels/k.cu", 14, "read")), "1" * 16, "r",
    ),
    GateFinding("memcheck/leak", "warning", "leak", "fast", "q1/seed1", (), "2" * 16, "r", "known until summer"),
)  # fmt: skip


def gate(conditions: tuple[Condition, ...] = CONDITIONS, found: tuple[GateFinding, ...] = FOUND) -> Gate:
    return Gate(
        schema=SCHEMA,
        kind="gate",
        tool="0.1.0",
        policy="everyday",
        started="2026-11-01T10:00:00+00:00",
        commit="c" * 40,
        verdict=overall(conditions),
        conditions=conditions,
        found=found,
        evidence=("runs/x",),
    )


def test_text_tells_the_worst_first_and_the_verdict_last() -> None:
    lines = FORMATS["text"](gate()).splitlines()
    assert lines[0].startswith("fail         audits q1 on host: 20 passed, 1 failed (required: 21 passed)")
    assert lines[-1] == "fail: of 4 conditions 1 failed, 1 inconclusive, 1 with a warning (policy everyday)"
    assert any("kernels/k.cu:12 fingerprint 1111111111111111" in line for line in lines)
    assert not any("2" * 16 in line for line in lines)
    assert not {"\x1b", "\x00", "\u202e", "\r"} & set("".join(lines))


def test_text_counts_what_holds_and_lists_it_on_demand() -> None:
    brief, whole = text(gate()), text(gate(), verbose=True)
    assert "audits q6 on host" not in brief
    assert "1 condition holds; --verbose shows it" in brief
    assert "2 conditions hold; --verbose lists them" in text(gate((*CONDITIONS, CONDITIONS[0])))
    assert "pass         audits q6 on host: 21 passed (required: 21 passed)" in whole
    assert "--verbose" not in whole
    assert "warn         sources q6 on cuda" in brief  # a warning lets pass, and is still shown
    assert brief.splitlines()[-1] == whole.splitlines()[-1]


def test_text_of_a_pass_is_two_lines() -> None:
    assert text(gate(CONDITIONS[:1], ())).splitlines() == [
        "1 condition holds; --verbose shows it",
        "pass: of 1 conditions 1 hold (policy everyday)",
    ]


def test_json_is_the_whole_verdict() -> None:
    assert msgspec.json.decode(FORMATS["json"](gate()), type=Gate) == gate()


def test_junit_is_read_by_junitparser() -> None:
    suites = JUnitXml.fromstring(FORMATS["junit"](gate()).encode())
    (suite,) = suites
    assert isinstance(suite, TestSuite)
    assert (suite.tests, suite.failures, suite.errors, suite.name) == (4, 1, 1, "gate everyday")
    by_name = {case.name: case for case in suite}
    (failure,) = by_name["audits q1 on host"].result
    assert isinstance(failure, Failure)
    assert failure.message == "measured 20 passed, 1 failed; required 21 passed"
    assert "<script>" in failure.text
    (error,) = by_name["canaries memcheck q6 on host"].result
    assert isinstance(error, Error)
    assert by_name["audits q6 on host"].is_passed
    assert by_name["sources q6 on cuda"].is_passed


def test_junit_keeps_to_the_schema() -> None:
    """The elements, and the attributes that each must have, of the schema that Jenkins and GitLab read."""
    root = ET.fromstring(FORMATS["junit"](gate()))
    needed = {
        "testsuites": {"name", "tests", "failures", "errors"},
        "testsuite": {"name", "tests", "failures", "errors", "skipped", "time", "timestamp"},
        "testcase": {"name", "classname", "time"},
        "failure": {"message", "type"},
        "error": {"message", "type"},
        "system-out": set[str](),
    }
    inside = {
        "testsuites": {"testsuite"},
        "testsuite": {"testcase"},
        "testcase": {"failure", "error", "system-out"},
    }
    for element in root.iter():
        assert needed[element.tag] <= set(element.attrib)
        assert {child.tag for child in element} <= inside.get(element.tag, set())


def test_junit_without_conditions_is_an_error() -> None:
    (suite,) = JUnitXml.fromstring(FORMATS["junit"](gate((), ())).encode())
    assert (suite.tests, suite.errors) == (1, 1)


def test_sarif_is_valid_by_its_published_schema() -> None:
    assert schema(SARIF)["$id"].endswith("oasis-tcs/sarif-spec/master/Schemata/sarif-schema-2.1.0.json")
    for verdict in (gate(), gate((), ()), gate(CONDITIONS[:1]), gate(CONDITIONS[3:], ())):
        assert errors(SARIF, json.loads(FORMATS["sarif"](verdict))) == []
    log = json.loads(FORMATS["sarif"](gate()))
    assert log["$schema"].endswith("sarif-schema-2.1.0.json")
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(rules) == len(set(rules))
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["message"]["text"]
        assert result["level"] in ("error", "warning")
        for location in result["locations"]:
            physical = location["physicalLocation"]
            assert physical["region"]["startLine"] >= 1
            assert re.fullmatch(r"[A-Za-z0-9._~/%-]+", physical["artifactLocation"]["uri"])
            assert physical["artifactLocation"]["uriBaseId"] in run["originalUriBaseIds"]
        assert all(isinstance(value, str) for value in result["partialFingerprints"].values())


@pytest.mark.parametrize(
    "damage",
    [
        lambda run: run["results"][0].pop("message"),
        lambda run: run["results"][0].update(colour="green"),
        lambda run: run["results"][0].update(level="fatal"),
        lambda run: run["results"][0]["locations"][0]["physicalLocation"]["region"].update(startLine=0),
        lambda run: run["tool"]["driver"].pop("name"),
        lambda run: run["invocations"][0].update(executionSuccessful="yes"),
    ],
)
def test_the_schema_refuses_what_is_not_sarif(damage: Callable[[dict[str, Any]], object]) -> None:
    log = json.loads(FORMATS["sarif"](gate()))
    damage(log["runs"][0])
    assert errors(SARIF, log)


def test_sarif_has_places_fingerprints_and_what_is_accepted() -> None:
    (run,) = json.loads(FORMATS["sarif"](gate()))["runs"]
    by_rule = {result["ruleId"]: result for result in run["results"]}
    assert set(by_rule) == {
        "check/bytes", "racecheck/race", "memcheck/leak", "gate/audits", "gate/sources", "gate/canaries"
    }  # fmt: skip
    race = by_rule["racecheck/race"]
    assert race["locations"][0]["physicalLocation"]["region"]["startLine"] == 12
    assert race["relatedLocations"][0]["physicalLocation"]["region"]["startLine"] == 14
    assert race["partialFingerprints"]["kernelAudit/v1"] == "1" * 16
    uri = by_rule["check/bytes"]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "kernels/a%20b.cu"
    assert by_rule["memcheck/leak"]["suppressions"][0]["justification"] == "known until summer"
    assert run["invocations"][0]["executionSuccessful"] is True


def test_sarif_of_what_is_inconclusive_did_not_succeed() -> None:
    (run,) = json.loads(FORMATS["sarif"](gate((CONDITIONS[3],), ())))["runs"]
    assert run["invocations"][0]["executionSuccessful"] is False
    assert run["results"]


def test_a_summary_has_a_row_for_each_condition() -> None:
    rows = [line for line in summary(gate()).splitlines() if line.startswith("| ")][2:]
    assert len(rows) == len(CONDITIONS)
    assert rows[0].startswith("| ❌ | audits q1 on host |")
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 7 for row in rows)
    assert "<script>" not in summary(gate())


def test_a_summary_stays_below_its_limit_and_says_so() -> None:
    many = tuple(Condition(f"c{n}", "1", "0", "fail", "\N{SNOWMAN}" * 10_000) for n in range(2000))
    page = summary(gate(many, ()))
    assert 500_000 < len(page.encode()) < LIMIT == 2**20
    shown = sum(line.startswith("| ❌") for line in page.splitlines())
    assert f"and {2000 - shown} more lines" in page


def test_annotations_are_at_most_ten_commands_of_one_line() -> None:
    told = commands(gate())
    assert told[1] == "::error file=kernels/k.cu,line=12,title=racecheck/race::race in k"
    assert not any("\n" in line or "\r" in line for line in told)
    assert all(re.fullmatch(r"::error (file=[^:,]+,line=\d+,)?title=[^:,]+::.+", line) for line in told)
    assert "100%25" in told[0]
    many = tuple(msgspec.structs.replace(FOUND[1], fingerprint=f"{n:016x}", message=str(n)) for n in range(50))
    assert len(commands(gate(found=many))) == ANNOTATIONS == 10
