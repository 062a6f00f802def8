"""The verdict as SARIF 2.1.0: findings with their lines, and every condition that does not hold.

Fingerprints are those of `audit.gate.findings`, under a name of our own and under the one that GitHub reads. A finding
that a suppression or the baseline accepts is listed as suppressed.
"""

from __future__ import annotations

import hashlib
from typing import Any
from urllib.parse import quote

import msgspec

from audit.gate.verdict import Condition, Gate, GateFinding, SourceLine, worst_first
from audit.printable import printable, printable_json

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "%SRCROOT%"
_MOST_RESULTS = 5000
"""Of a run; GitHub shows no more."""


def sarif(gate: Gate) -> str:
    """One log with one run; an inconclusive verdict is a run that did not succeed."""
    results = [_of_finding(found) for found in sorted(gate.found, key=lambda found: bool(found.accepted))]
    results = [_of_condition(one) for one in worst_first(gate.conditions) if one.verdict != "pass"] + results
    results = results[:_MOST_RESULTS]
    rules = sorted({result["ruleId"] for result in results})
    for result in results:
        result["ruleIndex"] = rules.index(result["ruleId"])
    run = {
        "tool": {
            "driver": {
                "name": "kernel-audit",
                "version": gate.tool,
                "rules": [{"id": rule, "shortDescription": {"text": _about(rule)}} for rule in rules],
            }
        },
        "automationDetails": {"id": f"kernel-audit/{gate.policy}/"},
        "invocations": [
            {
                "executionSuccessful": gate.verdict != "inconclusive",
                "exitCodeDescription": gate.headline,
                "startTimeUtc": gate.started.replace("+00:00", "Z"),
            }
        ],
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The project's folder."}}},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return printable_json(msgspec.json.format(msgspec.json.encode(log), indent=1))


def _of_finding(found: GateFinding) -> dict[str, Any]:
    first, *others = found.lines or (SourceLine("pyproject.toml"),)
    result: dict[str, Any] = {
        "ruleId": found.rule,
        "kind": "fail",
        "level": found.level,
        "message": {"text": printable(found.message)},
        "locations": [_location(first)],
        "partialFingerprints": _fingerprints(found.fingerprint),
        "properties": {"variant": found.variant, "case": found.case, "evidence": found.evidence},
    }
    if others:
        result["relatedLocations"] = [
            {**_location(line), "id": number, "message": {"text": printable(line.what or line.file)}}
            for number, line in enumerate(others, start=1)
        ]
    if found.accepted:
        result["suppressions"] = [{"kind": "external", "justification": found.accepted}]
    return result


def _of_condition(condition: Condition) -> dict[str, Any]:
    about = f"{condition.name}: {condition.measured}; required: {condition.required}"
    return {
        "ruleId": f"gate/{condition.name.split()[0]}",
        "kind": "fail",
        "level": "error" if condition.verdict == "fail" else "warning",
        "message": {
            "text": printable(f"{condition.verdict}: {about}{f'. {condition.detail}' if condition.detail else ''}")
        },
        "locations": [_location(SourceLine("pyproject.toml"))],
        "partialFingerprints": _fingerprints(hashlib.sha256(condition.name.encode()).hexdigest()[:16]),
        "properties": {"path": condition.path},
    }


def _location(line: SourceLine) -> dict[str, Any]:
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": quote(line.file), "uriBaseId": _ROOT},
            "region": {"startLine": max(line.line, 1)},
        }
    }


def _fingerprints(digest: str) -> dict[str, str]:
    return {"kernelAudit/v1": digest, "primaryLocationLineHash": f"{digest}:1"}


def _about(rule: str) -> str:
    family, _, name = rule.partition("/")
    if family == "gate":
        return f"A condition of the gate about {name} does not hold."
    if family == "check":
        return f"The check {name} of an audited variant did not pass."
    return f"{family} reports: {name}."
