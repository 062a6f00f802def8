"""What the sanitizers of a CPU wrote, as findings; and that no damage to it ever makes it clean."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.backends import Completed, Crashed, TimedOut
from audit.records.sanitize import Canary, Observation, Tool, ToolFinding, describe_finding
from audit.sanitize.canaries.planted import CANARIES, CanaryKernel
from audit.sanitize.collapse import Names, plain_function
from audit.sanitize.verdict import canary, judge_run

from .recordings import NAMES, SOURCES, host_recording

BLOCK = "(0,0,0)"
READ, WRITE = "read of size 4 bytes", "write of size 4 bytes"
K = "k<1>"
PARTITIONS = "scalar_compact_page_map_partitions<3, 64>"

# name -> (kind, kernel, count, sides) of each finding
EXPECTED: dict[str, list[tuple[object, ...]]] = {
    "memcheck-out-of-bounds-write": [
        ("out-of-bounds", "out_of_bounds_write", 1, ((WRITE, "out_of_bounds_write", "memory.cu", 5, "", ""),))
    ],
    "memcheck-shared-out-of-bounds": [
        ("out-of-bounds", "shared_out_of_bounds", 1, (("index", "shared_out_of_bounds", "memory.cu", 25, "", ""),)),
        ("out-of-bounds", "shared_out_of_bounds", 1, ((WRITE, "shared_out_of_bounds", "memory.cu", 25, "", ""),)),
    ],
    "memcheck-misaligned-vector": [
        ("misaligned", "misaligned_vector", 1, (("reference", "misaligned_vector", "memory.cu", 57, "", ""),)),
        ("misaligned", "misaligned_vector", 1, (("read", "misaligned_vector", "memory.cu", 57, "", ""),)),
    ],
    "memcheck-called-template": [("out-of-bounds", K, 1, ((READ, "pick<1>", "kernels/x/inner.cuh", 2, "", ""),))],
    "memcheck-crash": [
        ("out-of-bounds", "wild", 1, (("index", "wild", "kernels/x/k.cu", 13, "", ""),)),
        ("out-of-bounds", "wild", 1, ((READ, "wild", "kernels/x/k.cu", 13, "", ""),)),
        ("invalid-access", "wild", 1, (("write", "wild", "kernels/x/k.cu", 12, "", ""),)),
    ],
    "racecheck-race-between-warps": [
        (
            "race",
            "race_between_warps",
            1,
            (
                (WRITE, "race_between_warps", "races.cu", 6, "(32,0,0)", BLOCK),
                (READ, "race_between_warps", "races.cu", 7, "(31,0,0)", BLOCK),
            ),
        )
    ],
    "racecheck-race-between-blocks": [
        (
            "race",
            "race_between_blocks",
            1,
            (
                (WRITE, "race_between_blocks", "races.cu", 60, "(0,0,0)", "(1,0,0)"),
                (WRITE, "race_between_blocks", "races.cu", 60, "(62,0,0)", BLOCK),
            ),
        )
    ],
    "racecheck-race-with-a-reader": [
        (
            "race",
            "race_with_a_reader",
            1,
            (
                (READ, "race_with_a_reader", "races.cu", 70, "", ""),
                (WRITE, "race_with_a_reader", "races.cu", 71, "(0,0,0)", BLOCK),
            ),
        )
    ],
    "racecheck-atomic-write": [
        (
            "race",
            K,
            1,
            (
                (WRITE, K, "kernels/x/k.cu", 7, "(5,0,0)", BLOCK),
                (f"atomic {WRITE}", K, "kernels/x/k.cu", 8, "(3,0,0)", BLOCK),
            ),
        )
    ],
    "racecheck-barrier-removed": [
        (
            "race",
            PARTITIONS,
            1,
            (
                (READ, "scalar::PagesByNumber::operator()", "kernels/scalar/pages.cuh", 43, "(1,0,0)", BLOCK),
                (WRITE, "scalar::compact_pages", "kernels/scalar/pages.cuh", 57, "(0,0,0)", BLOCK),
            ),
        ),
        (
            "race",
            PARTITIONS,
            1,
            (
                (READ, "scalar::DecodeByLookup::operator()", "kernels/scalar/decode.cuh", 28, "(25,0,0)", BLOCK),
                (WRITE, "scalar::fill_codes", "kernels/scalar/decode.cuh", 21, "(18,0,0)", BLOCK),
            ),
        ),
        ("crash", PARTITIONS, 1, (("access", PARTITIONS, "", 0, "(4,0,0)", BLOCK),)),
    ],
    "racecheck-crash": [("crash", "wild", 1, (("access", "wild", "", 0, "(5,0,0)", BLOCK),))],
    "synccheck-crash": [("crash", "wild", 1, (("access", "wild", "", 0, "(5,0,0)", BLOCK),))],
    "synccheck-divergent-barrier": [
        (
            "divergent-barrier",
            "divergent_barrier",
            1,
            (
                ("barrier __syncthreads", "", "barriers.cu", 7, "(0..31,0,0)", BLOCK),
                ("barrier __syncthreads", "", "barriers.cu", 10, "(32..63,0,0)", BLOCK),
            ),
        )
    ],
    "synccheck-divergent-warp": [
        (
            "divergent-barrier",
            "divergent_warp",
            1,
            (
                ("barrier __syncwarp of 0xffffffff", "", "barriers.cu", 21, "(0,0,0)", BLOCK),
                ("exit", "", "", 0, "(16,0,0)", BLOCK),
            ),
        )
    ],
    "initcheck-uninitialised-global": [
        ("uninitialised", "uninitialised_global", 64, ((READ, "uninitialised_global", "uninitialised.cu", 5, "", ""),))
    ],
    "initcheck-uninitialised-shared": [
        (
            "uninitialised",
            "uninitialised_shared",
            1,
            (
                (READ, "uninitialised_shared", "uninitialised.cu", 17, "", ""),
                ("allocation", "uninitialised_shared", "uninitialised.cu", 14, "", ""),
            ),
        )
    ],
    "initcheck-crash": [
        ("invalid-access", "wild", 1, ((WRITE, "wild", "kernels/x/k.cu", 12, "", ""),)),
        ("crash", "wild", 1, (("access", "wild", "", 0, "(5,0,0)", BLOCK),)),
    ],
}
CLEAN = [name for name in NAMES if name.endswith("-clean")]
FOUND = [name for name in NAMES if name not in CLEAN]
ENDED = [name for name in FOUND if host_recording(name).run.ended]


KIND: dict[Tool, str] = {
    "memcheck": "out-of-bounds",
    "racecheck": "race",
    "synccheck": "divergent-barrier",
    "initcheck": "uninitialised",
}


def recorded(planted: CanaryKernel) -> str:
    return f"{planted.tool}-{planted.name.replace('_', '-')}"


RECORDED = [planted for planted in CANARIES if recorded(planted) in NAMES]


def shown(finding: ToolFinding) -> tuple[object, ...]:
    sides = tuple((s.what, s.function, s.file, s.line, s.threads, s.blocks) for s in finding.sides)
    return finding.kind, finding.kernel, finding.count, sides


def clean(observed: Observation, name: str) -> bool:
    """By the rules of a session whose canaries were found."""
    tool = host_recording(name).run.tool
    return judge_run(tool, observed, 1, [Canary("any", tool, True, True, "")])[0] == "pass"


@pytest.mark.parametrize("name", EXPECTED)
def test_recorded_findings(name: str) -> None:
    observed = host_recording(name).observed()
    assert [shown(finding) for finding in observed.findings] == EXPECTED[name]
    assert observed.troubles == ()
    assert observed.reported == sum(finding.count for finding in observed.findings)
    assert observed.complete == (name in ENDED)
    assert observed.launches == (1 if name in ENDED else 0)
    assert not clean(observed, name)
    assert all(finding.raw for finding in observed.findings)


def test_reads_past_a_shared_array_under_valgrind() -> None:
    observed = host_recording("initcheck-out-of-bounds").observed()
    first = observed.findings[0]
    assert first.kind == "out-of-bounds"
    assert [(side.what, side.file, side.line) for side in first.sides] == [
        (READ, "kernels/x/inner.cuh", 2),
        ("allocation", "kernels/x/k.cu", 4),
    ]
    assert observed.complete
    assert observed.reported == 4


@pytest.mark.parametrize("name", CLEAN)
def test_a_clean_run_is_clean(name: str) -> None:
    observed = host_recording(name).observed()
    assert (observed.complete, observed.reported, observed.exit_code, observed.troubles) == (True, 0, 0, ())
    assert clean(observed, name)


def test_every_recording_has_a_test() -> None:
    assert sorted([*EXPECTED, "initcheck-out-of-bounds", *CLEAN]) == NAMES


@pytest.mark.parametrize("name", FOUND)
def test_no_raw_report_names_a_place_of_the_machine(name: str) -> None:
    for finding in host_recording(name).observed().findings:
        assert "<obj>" not in finding.raw
        assert len(finding.raw) <= 4000


@pytest.mark.parametrize("planted", RECORDED, ids=lambda planted: planted.name)
def test_a_recorded_canary_is_found_and_its_tool_passes_a_clean_twin(planted: CanaryKernel) -> None:
    twin = next(other for other in CLEAN if other.startswith(planted.tool))
    lines = {(planted.source, line) for line in planted.lines}
    kind = "misaligned" if planted.name == "misaligned_vector" else KIND[planted.tool]
    observed = host_recording(recorded(planted)).observed()
    found = canary(planted.name, planted.tool, observed, host_recording(twin).observed(), {kind}, lines)
    assert (found.found, found.twin_clean) == (True, True), found.detail


def test_reports_of_other_threads_are_one_finding_whichever_side_came_first() -> None:
    recording = host_recording("racecheck-race-between-warps")
    first = recording.run.log.removesuffix("ThreadSanitizer: reported 1 warnings\n")
    second = first.replace("thread (32,0,0)", "thread (33,0,0)").replace("block (0,0,0)", "block (2,0,0)")
    head, read, *rest = first.replace("thread (32,0,0)", "thread (35,0,0)").split("\n\n")
    title, _, write = head.partition("\n  W")
    swapped = "\n\n".join([f"{title}\n  R{read.removeprefix('  Previous r')}", f"  Previous w{write}", *rest])
    log = first + second + swapped + "ThreadSanitizer: reported 3 warnings\n"
    observed = recording.observed(log=log)
    (finding,) = observed.findings
    assert observed.troubles == ()
    assert (finding.count, observed.reported) == (3, 3)
    assert [(side.line, side.threads, side.blocks) for side in finding.sides] == [
        (6, "(32..33,0,0) (35,0,0)", "(0,0,0) (2,0,0)"),
        (7, "(31,0,0)", "(0,0,0) (2,0,0)"),
    ]


def test_threads_of_a_block_of_several_rows_have_their_coordinates() -> None:
    recording = host_recording("synccheck-divergent-barrier")
    launch = msgspec.structs.replace(recording.bundle.launches[0], block=(16, 4, 1))
    bundle = msgspec.structs.replace(recording.bundle, launches=(launch,))
    observed = recording._replace(bundle=bundle).observed()
    assert [side.threads for side in observed.findings[0].sides] == ["(0..15,0..1,0)", "(0..15,2..3,0)"]


@pytest.mark.parametrize(
    ("text", "kind", "side"),
    [
        (
            "thread 5 (lane 5) called __shfl_sync at barriers.cu:9 with mask 0x0000000f, which does not name it",
            "invalid-barrier",
            ("barrier __shfl_sync of 0x0000000f", "barriers.cu", 9, "(5,0,0)"),
        ),
        (
            "thread 5 (lane 5) called __syncwarp at barriers.cu:9 with mask 0xffffffff, but lane 3 of that mask has "
            "exited",
            "divergent-barrier",
            ("barrier __syncwarp of 0xffffffff", "barriers.cu", 9, "(5,0,0)"),
        ),
        (
            "wmma::mma_sync 16x16x16 at barriers.cu:9 needs the 32 lanes of a warp; warp 1 has lanes 0x0000ffff",
            "invalid-barrier",
            ("barrier wmma::mma_sync 16x16x16", "barriers.cu", 9, ""),
        ),
        (
            "threads wait for one another at different places: threads 0-15, 17 wait at __syncwarp (barriers.cu:9) "
            "with mask 0xffffffff; thread 16 has exited",
            "divergent-barrier",
            ("barrier __syncwarp of 0xffffffff", "barriers.cu", 9, "(0..15,0,0) (17,0,0)"),
        ),
    ],
)
def test_what_the_runtime_says_about_collectives(text: str, kind: str, side: tuple[object, ...]) -> None:
    line = f"error collective kernel divergent_warp, block (0, 0, 0): {text}"
    recording = host_recording("synccheck-divergent-warp")
    observed = recording.observed(report=(*recording.run.report[:-1], line), log=f"{line}\n")
    (finding,) = observed.findings
    first = finding.sides[0]
    assert (finding.kind, (first.what, first.file, first.line, first.threads)) == (kind, side)
    assert observed.troubles == ()


def test_an_assertion_of_a_kernel_is_a_crash_with_its_line() -> None:
    line = "error assert kernel wild, block (1, 0, 0), thread (3, 1, 0): kernels/x/k.cu:11: assertion `x > 0` failed"
    recording = host_recording("racecheck-crash")
    observed = recording.observed(report=(*recording.run.report[:-1], line), log=f"{line}\n")
    assert [shown(finding) for finding in observed.findings] == [
        ("crash", "wild", 1, (("assertion", "", "kernels/x/k.cu", 11, "(3,1,0)", "(1,0,0)"),))
    ]


@pytest.mark.parametrize(
    "line",
    [
        "error launch kernel wild: 999999 bytes of dynamic shared memory; the limit of sm_90 is 232448",
        "error script host.script:3: no such buffer",
    ],
)
def test_what_no_kernel_is_to_blame_for_is_a_trouble(line: str) -> None:
    recording = host_recording("racecheck-crash")
    observed = recording.observed(report=(*recording.run.report[:-1], line), log=f"{line}\n")
    assert (observed.findings, observed.troubles, observed.complete) == ((), (line,), False)


@pytest.mark.parametrize(
    "line",
    [
        "FATAL: ThreadSanitizer: unexpected memory mapping 0x5d4c1a000000-0x5d4c1a100000",
        "==77==ERROR: AddressSanitizer failed to allocate 0x1000 (4096) bytes of thread local data (error code: 12)",
        "==77==WARNING: ASan is ignoring requested __asan_handle_no_return: stack type: default",
        'ThreadSanitizer: CHECK failed: tsan_rtl.cpp:253 "((0)) != (0)" (0x0, 0x0) (tid=77)',
        "==77== Warning: set address range perms: large range [0x59c8b040, 0x69c8b040) (noaccess)",
        "anything else",
    ],
)
@pytest.mark.parametrize("name", CLEAN)
def test_a_line_that_nobody_knows_is_a_trouble(name: str, line: str) -> None:
    recording = host_recording(name)
    observed = recording.observed(log=f"{line}\n{recording.run.log}")
    assert not observed.complete
    assert line[:30] in observed.troubles[0]
    assert not clean(observed, name)


@pytest.mark.parametrize("name", ENDED)
def test_log_and_exit_status_must_agree(name: str) -> None:
    """The log lost, the status says that something was there; the status lost, the log says so."""
    recording = host_recording(name)
    silent = recording.observed(log="")
    assert any("66" in trouble for trouble in silent.troubles)
    assert not silent.complete
    assert not clean(silent, name)
    assert not recording.observed(outcome=Completed((), "", {}, 1.0)).complete


@pytest.mark.parametrize("name", [name for name in ENDED if not name.startswith("initcheck")])
def test_every_line_of_a_report_is_accounted_for(name: str) -> None:
    """No line of a second report can be lost in the first; a frame that is gone costs no more than itself."""
    recording = host_recording(name)
    counted = "ThreadSanitizer: reported 1 warnings\n"
    once, end = recording.run.log.removesuffix(counted), counted.replace("1", "2")
    text = once + once + (end if once != recording.run.log else "")
    listed = sum(finding.count for finding in recording.observed(log=text).findings)
    assert recording.observed(log=text).complete
    lines = text.splitlines(keepends=True)
    for at, line in enumerate(lines):
        if line.strip(" ^\n") and "runtime error" not in line:  # it is one whatever the file is called
            damaged = recording.observed(log="".join((*lines[:at], f"? {line}", *lines[at + 1 :])))
            assert not damaged.complete, line
        lost = recording.observed(log="".join(lines[:at] + lines[at + 1 :]))
        assert not lost.complete or sum(finding.count for finding in lost.findings) == listed, line


def test_a_fiber_that_several_threads_shared_has_no_name_of_one() -> None:
    """It may still bear that of a thread of an earlier launch."""
    name = "racecheck-race-with-a-reader"
    log = host_recording(name).run.log.replace("Thread T67 (", "Thread T67 'block (0,0,0) thread (7,0,0)' (")
    assert log != host_recording(name).run.log
    (finding,) = host_recording(name).observed(log=log).findings
    assert (finding.sides[0].threads, finding.sides[1].threads) == ("", "(0,0,0)")


@pytest.mark.parametrize(
    "outcome", [Crashed("exit 127", "setarch: no such program", 1.0), Crashed("SIGKILL", "no message", 1.0)]
)
def test_a_program_that_ended_otherwise_says_so(outcome: Crashed) -> None:
    observed = host_recording("racecheck-race-between-warps-clean").observed(outcome=outcome)
    assert observed.troubles == (f"the program ended with {outcome.kind} {outcome.message}",)
    assert not observed.complete


@pytest.mark.parametrize("name", CLEAN)
def test_what_was_found_and_lost_in_log_and_status_alike_is_all_that_could_look_clean(name: str) -> None:
    """Log, report and exit status must agree: with two of the three clean, the third still speaks."""
    recording = host_recording(name)
    report = recording.run.report
    assert not clean(recording.observed(report=report[:-1]), name)
    assert not clean(recording.observed(report=()), name)
    assert not clean(recording.observed(outcome=Crashed("exit 66", "", 1.0)), name)
    assert not clean(recording.observed(outcome=Crashed("exit 1", "no such file", 1.0)), name)
    assert not clean(recording.observed(outcome=Crashed("SIGKILL", "", 1.0)), name)
    assert not clean(recording.observed(outcome=TimedOut(1.0, "done")), name)
    noise = "==================\nWARNING: ThreadSanitizer: data race (pid=1)\n"
    assert not clean(recording.observed(log=recording.run.log + noise), name)


def test_a_run_that_was_killed_keeps_what_it_found_and_is_no_finding_by_itself() -> None:
    found = host_recording("racecheck-race-between-warps")
    observed = found.observed(outcome=TimedOut(9.0, "step live"), report=found.run.report[:2])
    assert (observed.exit_code, observed.seconds, observed.complete) == (None, 9.0, False)
    assert len(observed.findings) == 1
    assert judge_run("racecheck", observed, 1, ()) == (
        "fail",
        f"1 finding (killed at its limit of 9 s); the first: {describe_finding(observed.findings[0])}",
    )
    name = "racecheck-race-between-warps-clean"
    quiet = host_recording(name)
    observed = quiet.observed(outcome=TimedOut(9.0, "step live"), report=quiet.run.report[:2])
    assert observed.findings == ()
    verdict, reason = judge_run("racecheck", observed, 1, [Canary("planted", "racecheck", True, True, "")])
    assert verdict == "inconclusive"
    assert "killed at its limit of 9 s" in reason
    assert not clean(observed, name)


def test_errors_of_a_cut_xml_are_kept() -> None:
    recording = host_recording("initcheck-out-of-bounds")
    log = recording.run.log
    observed = recording.observed(log=log[: log.rindex("<error>") + 100])
    assert sum(finding.count for finding in observed.findings) == 3
    assert any("malformed" in trouble for trouble in observed.troubles)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<state>FINISHED</state>", "<state>RUNNING</state>"),
        ("<errorcounts>\n</errorcounts>", ""),
        ("<protocoltool>memcheck", "<protocoltool>massif"),
        ("<errorcounts>", "<fatal_signal><signame>SIGSEGV</signame></fatal_signal><errorcounts>"),
        ("<errorcounts>", "<errorcounts><pair><count>1</count><unique>0x0</unique></pair>"),
        ("valgrindoutput>", "other>"),
    ],
)
def test_an_xml_without_its_parts_is_not_whole(old: str, new: str) -> None:
    recording = host_recording("initcheck-uninitialised-shared-clean")
    assert old in recording.run.log
    observed = recording.observed(log=recording.run.log.replace(old, new))
    assert not observed.complete
    assert observed.troubles


@st.composite
def damaged(draw: st.DrawFn, text: str) -> str:
    """A copy that is cut, has a character changed, or lacks, repeats or swaps lines."""
    lines = text.splitlines(keepends=True)
    at = draw(st.integers(0, len(text) - 1))
    line = draw(st.integers(0, len(lines) - 1))
    other = draw(st.integers(0, len(lines) - 1))
    swapped = list(lines)
    swapped[line], swapped[other] = lines[other], lines[line]
    first, last = sorted((line, other))
    copies = {
        "cut": text[:at],
        "behead": text[at + 1 :],
        "change": text[:at] + draw(st.characters(exclude_characters=text[at])) + text[at + 1 :],
        "drop": "".join(lines[:line] + lines[line + 1 :]),
        "drop many": "".join(lines[:first] + lines[last:]),
        "repeat": "".join(lines[: line + 1] + lines[line:]),
        "swap": "".join(swapped),
        "insert": text[:at] + draw(st.text(min_size=1, max_size=3)) + text[at:],
    }
    return copies[draw(st.sampled_from(sorted(copies)))]


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_a_damaged_log_with_findings_is_never_clean(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(FOUND))
    log = data.draw(damaged(data.draw(damaged(host_recording(name).run.log)) or "x"))
    assert not clean(host_recording(name).observed(log=log), name)


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_a_damaged_log_is_not_clean_by_itself_while_anything_is_left_of_it(data: st.DataObject) -> None:
    """As if the exit status were 0 and the report in order."""
    name = data.draw(st.sampled_from(ENDED))
    recording = host_recording(name)
    log = data.draw(damaged(recording.run.log))
    observed = recording.observed(log=log, outcome=Completed((), "", {}, 1.0))
    if recording.run.tool == "initcheck":
        assert not clean(observed, name) or ("<error>" not in log and log.rstrip().endswith("</valgrindoutput>"))
    else:
        assert clean(observed, name) == (not log.strip())


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_damaged_report_is_never_clean_with_findings_nor_whole_without_its_end(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(NAMES))
    recording = host_recording(name)
    report = tuple(data.draw(damaged("\n".join(recording.run.report))).splitlines())
    observed = recording.observed(report=report)
    if clean(observed, name):
        assert name in CLEAN
        assert report[-1] == "done"
        assert sum(line.startswith("launch ") for line in report) == 1


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_whole_log_of_races_has_lost_none(data: st.DataObject) -> None:
    """What matters where the race that is left is a suppressed one."""
    recording = host_recording("racecheck-race-between-warps")
    one = recording.run.log.removesuffix("ThreadSanitizer: reported 1 warnings\n")
    two = one.replace("races.cu:6 ", "races.cu:60 ")
    log = data.draw(damaged(one + two + "ThreadSanitizer: reported 2 warnings\n"))
    observed = recording.observed(log=log)
    if observed.complete:
        assert sum(finding.count for finding in observed.findings) == 2


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_whole_xml_of_a_clean_run_is_one_to_its_end(data: st.DataObject) -> None:
    name = "initcheck-uninitialised-shared-clean"
    log = data.draw(damaged(host_recording(name).run.log))
    if clean(host_recording(name).observed(log=log), name):
        assert "<state>FINISHED</state>" in log
        assert log.rstrip().endswith("</valgrindoutput>")
        assert "<error>" not in log


@pytest.mark.parametrize(
    ("function", "name"),
    [
        ("softmax(float const*, float*)", "softmax"),
        ("void k<1>(float const*, float*)", "k<1>"),
        ("float pick<1, (Mode)2>(float const*)", "pick<1, 2>"),
        ("void splits<(int)6, (bool)1>(int *)", "splits<6, 1>"),
        (
            "unsigned int simt::update<float, add(float*, float)::{lambda(float)#1}>(float*)",
            "simt::update<float, add(float*, float)::{lambda(float)#1}>",
        ),
        ("scalar::Pages::operator()(int) const", "scalar::Pages::operator()"),
        ("simt::(anonymous namespace)::allocate(unsigned long)", "simt::(anonymous namespace)::allocate"),
        ("call_with<0, 1>", "call_with<0, 1>"),
        ("main", "main"),
    ],
)
def test_a_function_by_its_plain_name(function: str, name: str) -> None:
    assert plain_function(function) == name


def test_a_kernel_is_named_as_its_launch_spells_it_where_that_is_clear() -> None:
    names = Names(SOURCES, ("splits<Mode::fast>", "merge<6>", "merge<7>"))
    assert names.entry("void splits<(Mode)1>(float*)") == "splits<Mode::fast>"
    assert names.entry("void merge<7>(float*)") == "merge<7>"
    assert names.entry("void merge<8>(float*)") == "merge<8>"


@pytest.mark.parametrize(
    ("path", "file"),
    [
        ("./kernels/x/k.cu", "kernels/x/k.cu"),
        ("kernels/x/k.cu", "kernels/x/k.cu"),
        ("audit/sanitize/canaries/audit/sanitize/canaries/races.cu", "races.cu"),
        ("audit/simt/include/mma.h", ""),
        ("audit/audit/simt/races.cu", ""),
        ("other_races.cu", ""),
    ],
)
def test_a_file_by_its_name_in_the_project(path: str, file: str) -> None:
    assert Names(SOURCES, ()).file(path) == file
