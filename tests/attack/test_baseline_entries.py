"""An entry of the baseline accepts the one finding that it describes, for a year at most."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from datetime import date
from pathlib import Path

import msgspec
import pytest

from audit.checks.result import Figure, LargestDifference, Result
from audit.compile.identity import sha256
from audit.gate.findings import failure, fingerprint
from audit.gate.verdict import Gate, GateFinding
from audit.project import Project
from audit.records.run import RunRecord
from audit.records.sanitize import Side

from ..conftest import Ran
from ..gate.conftest import project, whole
from ..gate.made import TODAY, condition, judge, rewrite
from ..gate.test_baseline import with_baseline
from ..gate.test_decision import only
from ..gate.test_findings import RACE, SOURCE, built

__all__ = ["project", "whole"]  # fixtures
EXPIRES = date(2027, 2, 1)


def ending(*results: Result) -> Callable[[RunRecord], RunRecord]:
    """The first audit of `fast` with these results in the place of its own."""

    def change(record: RunRecord) -> RunRecord:
        at = next(at for at, audit in enumerate(record.audits) if audit.variant == "fast")
        other = msgspec.structs.replace(record.audits[at], verdict="fail", results=results)
        return msgspec.structs.replace(record, audits=(*record.audits[:at], other, *record.audits[at + 1 :]))

    return change


def completion(detail: str) -> Result:
    return Result("completion", "fail", detail)


def bytes_(buffer: str = "y", size: float = 3e-8, ulp: int = 1, nans: int = 0, step: str = "live") -> Result:
    apart = LargestDifference(buffer, 3, Figure.of(size), f"{buffer}[0]", ulp, f"{buffer}[0]", nans, 0)
    return Result("bytes", "fail", "3 of 7 elements differ", step, f"{buffer}[0]", largest=(apart,))


def error(measured: float) -> Result:
    return Result("error:y", "fail", "1 of 7 outside", "live", "n=1", Figure.of(measured), Figure.of(1e-6))


TIMED_OUT = completion("time-out: killed after 120 s; last line reported: step live")
OTHERS = [
    (TIMED_OUT, completion("crashed (assert): kernels/fast.cu:9: n > 0"), "crash"),
    (TIMED_OUT, completion("3 launches seen, 4 planned; seen [], planned []"), "launches"),
    (completion("crashed (assert): a.cu:9: n > 0"), completion("crashed (assert): a.cu:9: m > 0"), "another assertion"),
    (completion("crashed (barrier): x"), completion("crashed (memory): x"), "another crash"),
    (bytes_(), bytes_("z"), "another buffer"),
    (bytes_(), bytes_(ulp=4000, size=1e-4), "thousands of ulp"),
    (bytes_(), bytes_(nans=2), "NaN"),
    (bytes_(), bytes_(step="restore"), "another step"),
    (bytes_(), msgspec.structs.replace(bytes_(), verdict="inconclusive"), "inconclusive"),
    (error(2e-6), error(3e-3), "thousand times the limit"),
    (error(2e-6), error(float("nan")), "NaN for a number"),
]
SAME = [
    (TIMED_OUT, completion("time-out: killed after 60 s; last line reported: step restore")),
    (completion("crashed (memory): /tmp/a1/x.cu:3: 0x7f12"), completion("crashed (memory): /tmp/b2/x.cu:4: 0x7f99")),
    (bytes_(), msgspec.structs.replace(bytes_(size=2e-8), detail="4 of 7 elements differ", where="y[6]")),
    (error(2e-6), error(3e-6)),
]


@pytest.mark.parametrize(("accepted", "other"), [pair[:2] for pair in OTHERS], ids=[pair[2] for pair in OTHERS])
def test_what_was_found_tells_findings_apart(accepted: Result, other: Result) -> None:
    assert failure([accepted], "host") != failure([other], "host")
    assert failure([accepted], "host") != failure([accepted], "cuda")


@pytest.mark.parametrize(("then", "now"), SAME)
def test_what_was_found_stays_the_same_finding(then: Result, now: Result) -> None:
    assert failure([then], "host") == failure([now], "host")


def accept(made: Project, one: GateFinding, **changes: str) -> Gate:
    """The verdict with the entry that the gate prints, some of its lines changed."""
    table = tomllib.loads(one.entry)["accepted"][0] | changes
    lines = "\n".join(f'{name} = "{text}"' for name, text in table.items())
    with_baseline(made, f'[[accepted]]\n{lines}\nreason = "known"\nexpires = {EXPIRES}\n')
    return judge(made)


@pytest.mark.parametrize("other", [pair[1] for pair in OTHERS[:2]], ids=[pair[2] for pair in OTHERS[:2]])
def test_an_accepted_time_out_covers_no_other_end(project: Project, other: Result) -> None:
    home = rewrite(only(project.root / "reports"), ending(TIMED_OUT))
    (found,) = [one for one in judge(project).found if one.rule == "check/completion"]
    accepted = accept(project, found)
    assert {one.accepted for one in accepted.found if one.rule == "check/completion"} == {"known"}
    rewrite(home, ending(other))
    gate = judge(project)
    assert {one.accepted for one in gate.found if one.rule == "check/completion"} == {""}
    assert found.fingerprint not in {one.fingerprint for one in gate.found}
    assert gate.verdict == "fail"


@pytest.mark.parametrize("line", ["check", "variant", "case", "found"])
def test_an_entry_whose_lines_are_of_another_finding_accepts_nothing(project: Project, line: str) -> None:
    rewrite(only(project.root / "reports"), ending(TIMED_OUT))
    (found,) = [one for one in judge(project).found if one.rule == "check/completion"]
    gate = accept(project, found, **{line: "something smaller"})
    assert [one.accepted for one in gate.found if one.rule == "check/completion"] == [""]
    said = condition(gate, "baseline")
    assert said.verdict == "fail"
    assert "something smaller" in said.detail


@pytest.mark.parametrize(
    ("expires", "today", "verdict"),
    [
        (date(2027, 11, 2), TODAY, "pass"),
        (date(2027, 11, 3), TODAY, "fail"),
        (date(9999, 12, 31), TODAY, "fail"),
        (date(2029, 2, 28), date(2028, 2, 29), "pass"),
        (date(2029, 3, 1), date(2028, 2, 29), "fail"),
    ],
)
def test_an_entry_lasts_a_year_at_most(project: Project, expires: date, today: date, verdict: str) -> None:
    rewrite(only(project.root / "reports"), ending(TIMED_OUT))
    (found,) = [one for one in judge(project).found if one.rule == "check/completion"]
    with_baseline(project, f'{found.entry}\nreason = "known"\nexpires = {expires}\n')
    said = condition(judge(project, today=today), "baseline")
    assert said.verdict == verdict
    assert ("expected at most" in said.detail) == (verdict == "fail")


TWINS = "// a\nvoid k() {\n  x[i] = 1;\n  y = x[j];\n  x[i] = 1;\n}\n"


def test_an_accepted_race_covers_no_race_of_an_equal_line(tmp_path: Path) -> None:
    """Not even once the accepted one is gone, which made the second of equal text the first."""
    build = built(tmp_path, TWINS)
    sides = (Side("write", "k", "k.cu", 5), RACE.sides[1])
    assert fingerprint(RACE, build, tmp_path) != fingerprint(
        msgspec.structs.replace(RACE, sides=sides), build, tmp_path
    )


def test_without_the_source_lines_are_told_apart_by_number(tmp_path: Path) -> None:
    build = built(tmp_path, SOURCE)
    (tmp_path / "k.cu").write_text("another")
    assert build.sources["k.cu"] != sha256(b"another")
    other = msgspec.structs.replace(RACE, sides=(RACE.sides[0], msgspec.structs.replace(RACE.sides[1], line=5)))
    assert fingerprint(RACE, build, tmp_path) != fingerprint(other, build, tmp_path)


def test_the_printed_entry_is_toml_whatever_its_names() -> None:
    hostile = 'a"b\\c\n[[accepted]]\x1b\u202e\x7f'
    one = GateFinding("check/bytes", "error", "", hostile, hostile, (), "0" * 16, "r", found=hostile)
    assert tomllib.loads(one.entry)["accepted"] == [
        {"fingerprint": "0" * 16, "check": "check/bytes", "variant": hostile, "case": hostile, "found": hostile}
    ]


def test_the_command_prints_the_entry(project: Project, audit: Callable[..., Ran]) -> None:
    rewrite(only(project.root / "reports"), ending(TIMED_OUT))
    (found,) = [one for one in judge(project).found if one.rule == "check/completion"]
    ran = audit(project.root, "gate", "--no-run", "--evidence", "given", "--verbose")
    assert found.entry in ran.out
    assert "[[accepted]]" not in audit(project.root, "gate", "--no-run", "--evidence", "given").out
