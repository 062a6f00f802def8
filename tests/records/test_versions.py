"""Evidence of older schemas is read by today's code, and no version admits what it does not know."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from audit.errors import EvidenceError
from audit.records import run as run_record
from audit.records.run import OLDER, SCHEMA, RunRecord

from ..report.rendered import render

OLD = Path(__file__).parent / "old"
"""One case of two variants of a run on an H200, or for schema 5 on a CPU, as each version wrote it."""


def raw(schema: int) -> dict[str, Any]:
    record = json.loads((OLD / f"schema{schema}.json").read_bytes())
    assert isinstance(record, dict)
    return record


def decoded(record: dict[str, Any]) -> RunRecord:
    return run_record.KIND.decode(json.dumps(record).encode(), OLD)


@pytest.mark.parametrize("schema", OLDER)
def test_every_older_version_is_read_and_shown(schema: int) -> None:
    evidence = decoded(raw(schema))
    assert (evidence.schema, len(evidence.audits), evidence.summary.verdict) == (schema, 2, "pass")
    assert evidence.audits[1].variant in render(evidence)


def test_what_older_versions_did_not_record_is_not_there() -> None:
    first, second, third, fourth, fifth = (decoded(raw(schema)) for schema in OLDER)
    assert all(build.code is None for build in first.builds.values())
    assert all(audit.dynamic_shared == {} for audit in first.audits)
    assert any(build.code is not None for build in second.builds.values())
    assert any(audit.dynamic_shared for audit in second.audits)
    for evidence in (first, second):
        assert all(not result.differences for audit in evidence.audits for result in audit.results)
        assert all(not metric.ulp_counts for audit in evidence.audits for metric in audit.metrics)
    assert any(metric.ulp_counts for audit in third.audits for metric in audit.metrics)
    for evidence in (first, second, third):
        assert all(not result.largest for audit in evidence.audits for result in audit.results)
    assert fourth.closure is not None
    assert fourth.closure.resolved is None
    for evidence in (first, second, third, fourth):
        assert all(not case.launches for case in evidence.cases)
    assert all(case.launches for case in fifth.cases)


@pytest.mark.parametrize("schema", [*OLDER, SCHEMA])
@pytest.mark.parametrize("field", ["", "machine", "builds", "audits"])
def test_unknown_fields_are_refused_in_every_version(schema: int, field: str) -> None:
    record = {**raw(min(schema, max(OLDER))), "schema": schema}
    assert decoded(record).schema == schema
    inside = record[field] if field else record
    inside = next(iter(inside.values())) if field == "builds" else inside[0] if field == "audits" else inside
    inside["colour"] = "green"
    with pytest.raises(EvidenceError, match="unknown field `colour`"):
        decoded(record)


@pytest.mark.parametrize("schema", [0, SCHEMA + 1])
def test_other_versions_are_refused(schema: int) -> None:
    with pytest.raises(EvidenceError, match=f"expected schema {SCHEMA}, but got {schema}"):
        decoded({**raw(1), "schema": schema})
