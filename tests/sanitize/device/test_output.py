"""What compute-sanitizer wrote on an H200, as findings; and that no damage to it ever makes it clean."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.records.sanitize import ToolFinding
from audit.sanitize.device.output import CONSEQUENCES, Report, parse_tool_output

from .recordings import NAMES, SOURCES, recording

ALL, WARP_0, BLOCK = "(0..63,0,0)", "(0..31,0,0)", "(0,0,0)"
OUT, READ, WRITE = "out-of-bounds", "read of size 4 bytes", "write of size 4 bytes"
BAD = tuple(sorted(CONSEQUENCES))[1]  # Target application returned an error
PROBING = ("api-error", "", 1, ())


def lost(api: str = "") -> tuple[object, ...]:
    """What memcheck adds after a finding: the call that then failed."""
    return ("api-error", api, 1, ())


# name -> whole, the summary's count, (kind, kernel, count, sides) of each finding
EXPECTED: dict[str, tuple[bool, int | None, list[tuple[object, ...]]]] = {
    "memcheck-clean": (True, 0, []),
    "racecheck-clean": (True, 0, []),
    "synccheck-clean": (True, 0, []),
    "initcheck-clean": (True, 0, []),
    "memcheck-no-leak": (True, 0, []),
    "racecheck-level-error": (True, 0, []),
    "memcheck-write": (
        False,
        3,
        [
            PROBING,
            (OUT, "out_of_bounds_write", 1, ((WRITE, "out_of_bounds_write", "memory.cu", 5, "(63,0,0)", BLOCK),)),
            lost(),
        ],
    ),
    "memcheck-read-in-template": (
        False,
        3,
        [
            PROBING,
            (OUT, "out_of_bounds_template<1, float>", 1, ((READ, "inlined", "extra.cu", 33, "(63,0,0)", BLOCK),)),
            lost(),
        ],
    ),
    "memcheck-read-in-function": (
        False,
        3,
        [
            PROBING,
            (OUT, "out_of_bounds_called", 1, ((READ, "called", "extra.cu", 30, "(63,0,0)", BLOCK),)),
            lost(),
        ],
    ),
    "memcheck-misaligned": (
        False,
        17,
        [
            PROBING,
            (
                "misaligned",
                "misaligned_vector",
                15,
                (("read of size 16 bytes", "misaligned_vector", "memory.cu", 57, "(0..14,0,0)", BLOCK),),
            ),
            lost(),
        ],
    ),
    "memcheck-many": (
        False,
        66,
        [PROBING, (OUT, "far_out", 64, ((WRITE, "far_out", "extra.cu", 43, ALL, BLOCK),)), lost()],
    ),
    "memcheck-two-kernels": (
        True,
        4,
        [
            ("api-error", "", 2, ()),
            (OUT, "out_of_bounds_write", 1, ((WRITE, "out_of_bounds_write", "memory.cu", 5, "(63,0,0)", BLOCK),)),
            (OUT, "out_of_bounds_read", 1, ((READ, "out_of_bounds_read", "memory.cu", 13, "(63,0,0)", BLOCK),)),
        ],
    ),
    "memcheck-trap": (
        False,
        3,
        [
            PROBING,
            ("device-exception", "trapped", 1, (("instruction", "trapped", "extra.cu", 86, "(3,0,0)", BLOCK),)),
            lost(),
        ],
    ),
    "memcheck-leak": (True, 1, [("leak", "", 1, ())]),
    "memcheck-api-error": (True, 1, [("api-error", "", 1, ())]),
    "memcheck-api-errors": (True, 2, [("api-error", "", 2, ())]),
    "memcheck-own-probing": (True, 1, [PROBING]),
    "racecheck-one": (
        True,
        5,
        [
            (
                "race",
                "race_one",
                5,
                (
                    ("read", "race_one", "extra.cu", 7, "(40,0,0)", BLOCK),
                    ("write", "race_one", "extra.cu", 6, "(0,0,0)", BLOCK),
                ),
            )
        ],
    ),
    "racecheck-many": (
        True,
        770,
        [
            (
                "race",
                "race_many",
                257,
                (
                    ("read", "race_many", "extra.cu", 13, ALL, BLOCK),
                    ("write", "race_many", "extra.cu", 12, ALL, BLOCK),
                ),
            ),
            (
                "race",
                "race_many",
                257,
                (
                    ("read", "race_many", "extra.cu", 15, ALL, BLOCK),
                    ("write", "race_many", "extra.cu", 14, ALL, BLOCK),
                ),
            ),
            (
                "race",
                "race_many",
                256,
                (
                    ("write", "race_many", "extra.cu", 16, ALL, BLOCK),
                    ("read", "race_many", "extra.cu", 13, ALL, BLOCK),
                ),
            ),
        ],
    ),
    "racecheck-inside-warp": (
        True,
        257,
        [
            (
                "race",
                "race_inside_warp",
                257,
                (
                    ("read", "race_inside_warp", "races.cu", 22, ALL, BLOCK),
                    ("write", "race_inside_warp", "races.cu", 20, ALL, BLOCK),
                ),
            )
        ],
    ),
    "racecheck-analysis-many": (
        True,
        2,
        [
            (
                "race",
                "race_many",
                1,
                (
                    ("read", "race_many", "extra.cu", 13, "", ""),
                    ("write", "race_many", "extra.cu", 12, "", ""),
                    ("write", "race_many", "extra.cu", 16, "", ""),
                ),
            ),
            (
                "race",
                "race_many",
                1,
                (("write", "race_many", "extra.cu", 14, "", ""), ("read", "race_many", "extra.cu", 15, "", "")),
            ),
        ],
    ),
    "synccheck-block": (
        False,
        32,
        [
            (
                "divergent-barrier",
                "divergent_barrier",
                32,
                (("barrier", "divergent_barrier", "barriers.cu", 7, WARP_0, BLOCK),),
            )
        ],
    ),
    "synccheck-mask": (
        False,
        64,
        [("invalid-barrier", "warp_mask_lacks", 64, (("barrier", "warp_mask_lacks", "extra.cu", 78, ALL, BLOCK),))],
    ),
    "initcheck-one": (
        True,
        1,
        [
            (
                "uninitialised",
                "uninitialised_one",
                1,
                ((READ, "uninitialised_one", "extra.cu", 88, "(3,0,0)", BLOCK),),
            )
        ],
    ),
    "initcheck-many": (
        True,
        64,
        [
            (
                "uninitialised",
                "uninitialised_global",
                64,
                ((READ, "uninitialised_global", "uninitialised.cu", 5, ALL, BLOCK),),
            )
        ],
    ),
    "initcheck-host-copy": (True, 32, [("uninitialised", "", 32, ())]),
    "never-launched-racecheck": (True, 0, []),
    "never-launched-memcheck": (True, 0, []),
    "memcheck-truncated": (False, 0, []),
    "target-aborts": (False, 0, []),
    "target-exits-5": (False, 0, []),
    "no-cuda": (False, None, []),
    "no-device": (False, None, []),
    "unknown-option": (False, None, []),
    "no-injection-library": (False, None, []),
    "synccheck-time-out": (False, None, []),
}
NOTHING_FOUND = [name for name, (_, _, findings) in EXPECTED.items() if not findings]
SOMETHING_FOUND = [name for name in NAMES if name not in NOTHING_FOUND and recording(name).left.log]
SMALL = [name for name in NAMES if len(recording(name).left.log or "") < 30_000]


def parsed(name: str) -> Report:
    tool, left = recording(name)
    return parse_tool_output(tool, left.log or "", left.xml, SOURCES)


def clean(report: Report) -> bool:
    return report.complete and report.reported == 0 and not report.findings and not report.troubles


def shown(finding: ToolFinding) -> tuple[object, ...]:
    sides = tuple((s.what, s.function, s.file, s.line, s.threads, s.blocks) for s in finding.sides)
    return finding.kind, finding.kernel, finding.count, sides


@pytest.mark.parametrize("name", EXPECTED)
def test_recorded_outputs(name: str) -> None:
    whole, reported, findings = EXPECTED[name]
    report = parsed(name)
    assert [shown(finding) for finding in report.findings] == findings
    assert (report.complete, report.reported) == (whole, reported)


@pytest.mark.parametrize("name", NAMES)
def test_every_recorded_line_is_understood(name: str) -> None:
    odd = {
        "Error: Target application terminated before first instrumented API call": ("no-cuda", "no-device"),
        "Target application doesn't exist or is not a valid executable": ("target-missing",),
        "Unable to find injection library libsanitizer-collection.so": ("no-injection-library",),
    }
    for trouble in parsed(name).troubles:
        if "print-limit" not in name and name != "racecheck-xml-only":
            assert trouble in CONSEQUENCES or name in odd.get(trouble, ())


def test_a_limit_on_what_is_printed_is_no_whole_report() -> None:
    report = parsed("memcheck-print-limit")
    assert not report.complete
    assert any("errors were not printed" in trouble for trouble in report.troubles)


def test_a_warning_keeps_its_severity_and_an_error_outweighs_it() -> None:
    assert [finding.severity for finding in parsed("racecheck-inside-warp").findings] == ["warning"]
    assert [finding.severity for finding in parsed("racecheck-one").findings] == ["error"]
    assert [finding.severity for finding in parsed("racecheck-many").findings] == ["error", "error", "warning"]


def test_the_same_race_met_the_other_way_round_is_one_finding_with_its_threads_in_place() -> None:
    first, second = (f"at k(int *)+0x{pc}0 in /src/k.cu:{line}" for pc, line in ((1, 4), (2, 5)))
    hazard = "========= Error: Potential {} hazard detected at __shared__ 0x0 in block ({},0,0) :\n"
    text = (
        "========= COMPUTE-SANITIZER\n"
        + hazard.format("RAW", 0)
        + f"=========     Write Thread (1,0,0) {first}\n=========     Read Thread (2,0,0) {second}\n========= \n"
        + hazard.format("WAR", 1)
        + f"=========     Read Thread (4,0,0) {second}\n=========     Write Thread (3,0,0) {first}\n========= \n"
        + "========= RACECHECK SUMMARY: 2 hazards displayed (2 errors, 0 warnings)\n"
    )
    report = parse_tool_output("racecheck", text, _xml(2), ("k.cu",))
    (finding,) = report.findings
    assert [(side.what, side.line, side.threads) for side in finding.sides] == [
        ("read", 5, "(2,0,0) (4,0,0)"),
        ("write", 4, "(1,0,0) (3,0,0)"),
    ]
    assert finding.sides[0].blocks == "(0..1,0,0)"
    assert report.complete


def test_the_raw_record_is_kept() -> None:
    (finding,) = parsed("initcheck-one").findings
    assert finding.raw.splitlines()[0] == "Uninitialized __global__ memory read of size 4 bytes"
    assert len(finding.raw.splitlines()) == 4


def test_lines_of_the_manual_of_2026_are_understood() -> None:
    text = (
        "========= COMPUTE-SANITIZER\n"
        "========= Invalid __global__ write of size 4 bytes\n"
        "=========     at f(int *)+0xb0 in /src/kernels/a.cu:39\n"
        "=========     by thread (0,0,0) in block (0,0,0)\n"
        "=========     Address 0x87654320 is out of bounds\n"
        "=========     and is 137,179,965,340,896 bytes before the nearest allocation at 0x7c0 of size 1,024 bytes\n"
        "=========         Device Frame: splits<(int)6, (bool)1>(int *)+0x30 in /src/kernels/a.cu:44\n"
        "========= \n"
        "========= Uninitialized __shared__ memory read of size 4 bytes\n"
        "=========     at other()+0x1a0 in /elsewhere/uninitialized_shared.cu:7\n"
        "=========     by thread (0,0,0) in block (0,0,0)\n"
        "=========     Address 0x0\n"
        "========= \n"
        "========= ERROR SUMMARY: 2 errors\n"
    )
    report = parse_tool_output("memcheck", text, _xml(2), ("kernels/a.cu", "a.cu"))
    assert report.complete
    assert [(f.kind, f.kernel, f.sides[0].file) for f in report.findings] == [
        ("out-of-bounds", "splits<6, 1>", "kernels/a.cu"),
        ("uninitialised", "other", "uninitialized_shared.cu"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "Internal Sanitizer Error: The Sanitizer encountered an error while launching k and didn't track the launch.",
        "Warning: Detected overflow of tracked cuda::barrier structures. Results might be incorrect.",
        "Warning: racecheck is disabled for this kernel",
        "Error: the device is not supported by the tool",
        "Skipped kernel k",
    ],
)
@pytest.mark.parametrize("name", ["racecheck-clean", "memcheck-clean", "synccheck-clean"])
def test_a_line_that_nobody_knows_is_a_trouble(name: str, line: str) -> None:
    tool, left = recording(name)
    title, summary = (left.log or "").splitlines()
    report = parse_tool_output(tool, f"{title}\n========= {line}\n{summary}\n", left.xml, SOURCES)
    assert not report.complete
    assert report.troubles == (line,)


@pytest.mark.parametrize(
    ("tool", "summary"),
    [
        ("memcheck", "ERROR SUMMARY: 0 error"),
        ("memcheck", "ERROR SUMMARY: 00 errors"),
        ("memcheck", "RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)"),
        ("racecheck", "ERROR SUMMARY: 0 errors"),
        ("racecheck", "RACECHECK SUMMARY: 0 hazards displayed (0 errors, 1 warning)"),
        ("racecheck", "RACECHECK SUMMARY: 0 hazard displayed (0 errors, 0 warnings)"),
        ("racecheck", "RACECHECK SUMMARY: 0 hazards"),
        ("memcheck", "LEAK SUMMARY: 0 bytes leaked in 0 allocations"),
    ],
)
def test_a_summary_of_another_wording_is_none(tool: str, summary: str) -> None:
    report = parse_tool_output(tool, f"========= COMPUTE-SANITIZER\n========= {summary}\n", _xml(0), SOURCES)  # type: ignore[arg-type]
    assert not clean(report)


@pytest.mark.parametrize("count", [1, 2, 10])
def test_one_hazard_and_many_are_counted_alike(count: int) -> None:
    """'hazards' is 'hazard' of one."""
    record = (
        "========= Warning: Race reported between Write access at k()+0x90 in /src/k.cu:4\n"
        "=========     and Read access at k()+0xa0 in /src/k.cu:5 [1 hazard]\n========= \n"
    )
    many = "" if count == 1 else "s"
    text = (
        f"========= COMPUTE-SANITIZER\n{record * count}"
        f"========= RACECHECK SUMMARY: {count} hazard{many} displayed (0 errors, {count} warning{many})\n"
    )
    report = parse_tool_output("racecheck", text, _xml(count), SOURCES)
    assert (report.complete, report.reported, report.findings[0].count) == (True, count, count)


@pytest.mark.parametrize("xml", [None, "", "<ComputeSanitizerOutput>", "<other/>", "<ComputeSanitizerOutput><x/>"])
def test_no_report_is_whole_without_its_xml(xml: str | None) -> None:
    tool, left = recording("racecheck-clean")
    assert not parse_tool_output(tool, left.log or "", xml, SOURCES).complete


def test_the_three_counts_must_agree() -> None:
    tool, left = recording("initcheck-one")
    log = left.log or ""
    assert parse_tool_output(tool, log, _xml(1), SOURCES).complete
    assert not parse_tool_output(tool, log, _xml(0), SOURCES).complete
    assert not parse_tool_output(tool, log.replace("SUMMARY: 1 error", "SUMMARY: 0 errors"), _xml(1), SOURCES).complete


@st.composite
def damaged(draw: st.DrawFn, text: str) -> str:
    """A copy that is cut, has a character changed, or lacks, repeats or swaps lines."""
    lines = text.splitlines(keepends=True)
    at = draw(st.integers(0, len(text) - 1))
    line = draw(st.integers(0, len(lines) - 1))
    other = draw(st.integers(0, len(lines) - 1))
    swapped = list(lines)
    swapped[line], swapped[other] = lines[other], lines[line]
    copies = {
        "cut": text[:at],
        "behead": text[at + 1 :],
        "change": text[:at] + draw(st.characters(exclude_characters=text[at])) + text[at + 1 :],
        "drop": "".join(lines[:line] + lines[line + 1 :]),
        "repeat": "".join(lines[: line + 1] + lines[line:]),
        "swap": "".join(swapped),
        "insert": text[:at] + draw(st.text(min_size=1, max_size=3)) + text[at:],
    }
    return copies[draw(st.sampled_from(sorted(copies)))]


ZERO = {
    False: re.compile(r"\n========= ERROR SUMMARY: 0 errors\n\Z"),
    True: re.compile(r"\n========= RACECHECK SUMMARY: 0 hazards displayed \(0 errors, 0 warnings\)\n\Z"),
}


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_a_damaged_log_is_clean_only_with_a_whole_summary_of_zero(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(SMALL))
    tool, left = recording(name)
    text = data.draw(damaged(left.log)) if left.log else ""
    report = parse_tool_output(tool, text, left.xml, SOURCES)
    if clean(report):
        assert ZERO[tool == "racecheck"].search(text)
        assert name in NOTHING_FOUND
        # Nothing is lost but empty lines or a line about leaks, of which there are none.
        assert next(line for line in text.splitlines() if line.strip("= ")).endswith("COMPUTE-SANITIZER")


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damage_to_both_reports_of_a_finding_never_makes_it_clean(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([name for name in SOMETHING_FOUND if name in SMALL]))
    tool, left = recording(name)
    text = data.draw(damaged(left.log or ""))
    xml = data.draw(damaged(left.xml)) if left.xml else None
    assert not clean(parse_tool_output(tool, text, xml, SOURCES))


@pytest.mark.parametrize("name", ["racecheck-clean", "memcheck-clean", "memcheck-no-leak"])
def test_a_report_cut_anywhere_is_not_whole(name: str) -> None:
    tool, left = recording(name)
    log, xml = left.log or "", left.xml or ""
    assert clean(parse_tool_output(tool, log, xml, SOURCES))
    assert not any(clean(parse_tool_output(tool, log[:end], xml, SOURCES)) for end in range(len(log)))
    assert not any(parse_tool_output(tool, log, xml[:end], SOURCES).complete for end in range(len(xml.rstrip())))


def _xml(records: int) -> str:
    return f"<ComputeSanitizerOutput>{'<record/>' * records}</ComputeSanitizerOutput>"
