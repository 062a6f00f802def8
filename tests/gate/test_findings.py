"""Fingerprints stay when lines move and other threads take part, and differ where the finding does."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from audit.compile.identity import BuildIdentity, sha256
from audit.gate.findings import fingerprint, of_session
from audit.records.sanitize import Side, ToolCheck, ToolFinding

SOURCE = "// a\nvoid k() {\n  x[i] = 1;\n  y = x[j];\n  x[i] = 1;\n}\n"
RACE = ToolFinding(
    tool="racecheck",
    kind="race",
    severity="error",
    kernel="k<6>",
    message="write of 4 bytes by thread 5",
    sides=(Side("write by thread 5", "k", "k.cu", 3, "(5,0,0)"), Side("read of 4 bytes", "k", "k.cu", 4, "(6,0,0)")),
    count=1,
    raw="",
)


def built(root: Path, text: str) -> BuildIdentity:
    (root / "k.cu").write_text(text)
    return BuildIdentity(
        backend="host",
        arch="sm_90",
        key="k",
        source="k.cu",
        sources={"k.cu": sha256(text.encode())},
        entries=("k",),
        compiler="c",
        flags=(),
        binary_sha256="b",
        binary_fnv="f",
    )


def moved(finding: ToolFinding, by: int) -> ToolFinding:
    sides = [
        msgspec.structs.replace(
            side, line=side.line + by, threads="(9,0,0)", blocks="(1,0,0)", what=side.what.replace("5", "9")
        )
        for side in finding.sides
    ]
    return msgspec.structs.replace(finding, sides=tuple(sides), message="by thread 77", count=900, raw="other")


def test_it_is_stable_under_moved_lines_and_other_threads(tmp_path: Path) -> None:
    (tmp_path / "then").mkdir()
    (tmp_path / "now").mkdir()
    then = fingerprint(RACE, built(tmp_path / "then", SOURCE), tmp_path / "then")
    text = "#include <x>\n\n" + SOURCE.replace("  y =", "\ty  =")
    now = fingerprint(moved(RACE, 2), built(tmp_path / "now", text), tmp_path / "now")
    assert then == now
    assert len(then) == 16


@pytest.mark.parametrize(
    "other",
    [
        msgspec.structs.replace(RACE, kind="hazard"),
        msgspec.structs.replace(RACE, tool="memcheck"),
        msgspec.structs.replace(RACE, kernel="k<7>"),
        msgspec.structs.replace(RACE, sides=RACE.sides[:1]),
        msgspec.structs.replace(RACE, sides=(RACE.sides[0], msgspec.structs.replace(RACE.sides[1], line=2))),
    ],
)
def test_other_findings_have_others(tmp_path: Path, other: ToolFinding) -> None:
    build = built(tmp_path, SOURCE)
    assert fingerprint(other, build, tmp_path) != fingerprint(RACE, build, tmp_path)


def test_two_of_equal_text_are_told_apart(tmp_path: Path) -> None:
    twin = msgspec.structs.replace(RACE, sides=(msgspec.structs.replace(RACE.sides[0], line=5), RACE.sides[1]))
    checked = ToolCheck("racecheck", "fast", "case", "fail", "", (twin, RACE), 1, 1, 0.1, "b")
    found = of_session(checked, checked.findings, {"b": built(tmp_path, SOURCE)}, tmp_path, "runs/x")
    assert [one.lines[0].line for one in found] == [3, 5]
    assert len({one.fingerprint for one in found}) == 2
    assert found[0].rule == "racecheck/race"
