"""Evidence of schema 1 is read by today's code, and neither version admits what it does not know."""

from __future__ import annotations

import json

import pytest

from audit.errors import EvidenceError
from audit.evidence import store
from audit.evidence.schema import SCHEMA

from ..conftest import ROOT

OLD = sorted((ROOT / "reports/h200").glob("*/evidence.json"))
FIRST = next(path for path in OLD if json.loads(path.read_bytes())["schema"] == 1)


def test_what_schema_1_did_not_record_is_not_there() -> None:
    evidence = store.load(FIRST)
    assert evidence.schema == 1
    assert all(build.code is None for build in evidence.builds.values())
    assert all(audit.dynamic_shared == {} for audit in evidence.audits)


@pytest.mark.parametrize("schema", [1, SCHEMA])
@pytest.mark.parametrize("place", ["", "machine", "builds", "audits"])
def test_unknown_fields_are_refused_in_every_version(schema: int, place: str) -> None:
    record = json.loads(FIRST.read_bytes())
    record["schema"] = schema
    store.decode(json.dumps(record).encode(), FIRST)
    inside = record[place] if place else record
    inside = next(iter(inside.values())) if place == "builds" else inside[0] if place == "audits" else inside
    inside["colour"] = "green"
    with pytest.raises(EvidenceError, match="unknown field `colour`"):
        store.decode(json.dumps(record).encode(), FIRST)


@pytest.mark.parametrize("schema", [0, SCHEMA + 1])
def test_other_versions_are_refused(schema: int) -> None:
    record = {**json.loads(FIRST.read_bytes()), "schema": schema}
    with pytest.raises(EvidenceError, match=f"expected schema {SCHEMA}, but got {schema}"):
        store.decode(json.dumps(record).encode(), FIRST)
