"""compute-sanitizer found, told what to do, watched over, and taken at its word only where it may be."""

from __future__ import annotations

import os
import shlex
import sys
import time
from pathlib import Path

import msgspec
import pytest

from audit.backends.driver import DeviceInfo, Driver
from audit.compile.cuda import CubinBuild
from audit.errors import ToolMissing
from audit.records.sanitize import TOOLS, Canary, Tool
from audit.sanitize.device import canaries as compute_canaries
from audit.sanitize.device import compute_sanitizer, target
from audit.sanitize.device import engine as on_device
from audit.sanitize.device.compute_sanitizer import (
    FOUND,
    Installation,
    Work,
    device_tool_record,
    find_compute_sanitizer,
    observe_tool_output,
    prepare,
    run_together,
    run_tool,
)
from audit.sanitize.verdict import judge_run
from audit.spec import Source, Variant

from ...backends.test_cuda import SCALE, by_hand, launch, lay
from .recordings import FOLDER, NAMES, SOURCES, recording

RELEASES = ("2025.3.1.0", "2026.4.0.0")
STAND_IN = (
    f"FAKE_RELEASE={RELEASES[0]} exec {shlex.quote(sys.executable)} -S "
    f'{shlex.quote(str(Path(__file__).with_name("fake_sanitizer.py")))} "$@"'
)
PROVEN = [Canary("planted", tool, True, True, "") for tool in TOOLS]


def program(folder: Path, body: str = "") -> Path:
    """The stand-in, or a program of that shell text, under the tool's name."""
    folder.mkdir(exist_ok=True)
    path = folder / "compute-sanitizer"
    path.write_text(f"#!/bin/sh\n{body or STAND_IN}\n")
    path.chmod(0o755)
    return path


@pytest.fixture(scope="session", params=RELEASES)
def release(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The stand-in, as either release."""
    body = STAND_IN.replace(RELEASES[0], request.param)
    return find_compute_sanitizer(program(tmp_path_factory.mktemp("tool"), body))


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The stand-in, as the release of the recordings."""
    return find_compute_sanitizer(program(tmp_path_factory.mktemp("tool")))


@pytest.fixture
def build(fake_driver: Path, monkeypatch: pytest.MonkeyPatch) -> CubinBuild:
    """Kernels of the driver whose device is this CPU."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(fake_driver))
    return by_hand()


def test_found_by_its_path_its_folder_and_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = program(tmp_path / "tool")
    assert find_compute_sanitizer(path).executable == find_compute_sanitizer(path.parent).executable == path
    monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")
    assert find_compute_sanitizer().executable == path


def test_found_in_a_toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    path = program(tmp_path / "bin")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert find_compute_sanitizer().executable == path


def test_absent_it_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(ToolMissing, match="pip install nvidia-cuda-sanitizer-api"):
        find_compute_sanitizer(tmp_path / "compute-sanitizer")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("echo Version 1.0; echo '  --tool arg'", "does not know --error-exitcode"),
        ("exit 1", "does not know --error-exitcode"),
    ],
)
def test_one_that_lacks_what_a_verdict_needs_is_refused(tmp_path: Path, body: str, words: str) -> None:
    with pytest.raises(ToolMissing, match=words):
        find_compute_sanitizer(program(tmp_path, body))


def test_one_that_cannot_be_executed_is_refused(tmp_path: Path) -> None:
    path = program(tmp_path)
    path.chmod(0o644)
    with pytest.raises(ToolMissing, match="chmod"):
        find_compute_sanitizer(path)


@pytest.mark.parametrize("tool", TOOLS)
def test_every_option_is_one_that_the_release_knows_and_none_that_matters_is_left_out(
    release: Installation, tool: Tool
) -> None:
    options = " ".join(device_tool_record(tool, release).options)
    for needed in (
        f"--error-exitcode {FOUND}",
        "--require-cuda-init yes",
        "--check-exit-code yes",
        "--target-processes all",
        "--print-limit 0",
    ):
        assert needed in options
    assert ("--initcheck-address-space all" in options) == (tool == "initcheck" and release.version[:4] == "2026")
    assert device_tool_record(tool, release).by == f"compute-sanitizer {release.version}"


def test_options_of_one_tool_are_not_given_to_another(release: Installation) -> None:
    assert "--racecheck-report all" in device_tool_record("racecheck", release).options
    assert not any("racecheck" in option for option in device_tool_record("memcheck", release).options)


def test_shared_memory_is_a_gap_of_initcheck_only_where_it_is_one(release: Installation) -> None:
    sees = release.version.startswith("2026")
    assert ("not from shared memory" in device_tool_record("initcheck", release).gaps) != sees
    assert ("uninitialised_shared" in compute_canaries.canary_entries("initcheck", release)) == sees


@pytest.mark.parametrize("tool", TOOLS)
def test_canaries_lie_where_their_source_marks_them(release: Installation, tool: Tool) -> None:
    text = compute_canaries.source(tool).read_text()
    for canary in compute_canaries.visible_canaries(tool, release):
        assert canary.lines
        assert f"void {canary.name}(" in text
        assert f"void {canary.twin}(" in text


@pytest.mark.parametrize("tool", TOOLS)
def test_a_clean_run_is_a_pass(
    release: Installation, build: CubinBuild, tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SANITIZER", f"{tool}-clean")
    folder = tmp_path / "bundle"
    folder.mkdir()
    bundle = lay(folder, [SCALE, launch("increment", "y", 500, blocks=4)], steps={"a": {}, "b": {}}, policy="exact")
    observed = run_tool(tool, release, Work(folder, bundle, build), 60)
    assert observed.launches == 4
    assert judge_run(tool, observed, 4, PROVEN) == ("pass", "no finding in 4 launches")
    assert judge_run(tool, observed, 5, PROVEN)[0] == "inconclusive"


def works(folder: Path, build: CubinBuild, *entries: str) -> list[Work]:
    """A bundle for each entry, of two steps."""
    made = []
    for index, entry in enumerate(entries):
        (folder / str(index)).mkdir(parents=True)
        words = SCALE if entry == "scale" else launch(entry, "y")
        bundle = lay(folder / str(index), [SCALE, words], steps={"a": {}, "b": {}}, policy="exact")
        made.append(Work(folder / str(index), bundle, build))
    return made


@pytest.mark.parametrize("tool", TOOLS)
def test_clean_together_is_clean_each(
    installed: Installation, build: CubinBuild, tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SANITIZER", f"{tool}-clean")
    both = run_together(tool, installed, works(tmp_path, build, "scale", "scale", "scale"), 60)
    assert both is not None
    assert len({one.command for one in both}) == 1
    assert [judge_run(tool, one, 4, PROVEN) for one in both] == [("pass", "no finding in 4 launches")] * 3


@pytest.mark.parametrize(
    ("entries", "found"),
    [
        (["scale", "scale"], "memcheck-one"),  # a finding, whose it is is not told
        (["scale", "stray"], "memcheck-clean"),  # one crashes
        (["stray", "scale"], "memcheck-clean"),  # and the next never runs
        (["scale", "spin"], "memcheck-clean"),  # one does not end
        (["scale", "scale"], "memcheck-print-limit"),
        (["scale", "scale"], "silent"),
    ],
)
def test_whatever_speaks_against_one_sends_each_to_a_process_of_its_own(
    installed: Installation,
    build: CubinBuild,
    entries: list[str],
    found: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FAKE_SANITIZER", found)
    assert run_together("memcheck", installed, works(tmp_path, build, *entries), 3) is None


def test_the_engine_tells_whose_a_crash_is(
    installed: Installation, build: CubinBuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three cases go together; the second crashes; then each has run by itself, and the third too."""
    monkeypatch.setenv("FAKE_SANITIZER", "racecheck-clean")
    device = DeviceInfo("Fake 9000", "sm_90", "13.0", "", 8 << 30, 1, 232_448)
    monkeypatch.setattr(on_device.cuda, "require_device", lambda: device)
    monkeypatch.setattr(on_device, "build_device", lambda *_, **__: build)
    engine = on_device.DeviceEngine(installed.executable, 60)
    variant = Variant("v", Source("k.cu"), lambda _: ())
    bundles = [(work.folder, work.bundle) for work in works(tmp_path, build, "scale", "stray", "scale")]
    seen = engine.observe("racecheck", tmp_path, variant, bundles, 60)
    assert [judge_run("racecheck", one, 4, PROVEN)[0] for one, _ in seen] == ["pass", "fail", "pass"]
    assert len({one.command for one, _ in seen}) == 3
    clean = [(work.folder, work.bundle) for work in works(tmp_path / "clean", build, "scale", "scale")]
    assert len({one.command for one, _ in engine.observe("racecheck", tmp_path, variant, clean, 60)}) == 1


def test_a_finding_is_a_fail(
    installed: Installation, build: CubinBuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SANITIZER", "racecheck-one")
    observed = run_tool("racecheck", installed, Work(tmp_path, lay(tmp_path, [SCALE], policy="exact"), build), 60)
    assert observed.exit_code == FOUND
    verdict, reason = judge_run("racecheck", observed, 1, PROVEN)
    assert (verdict, reason[:54]) == ("fail", "1 finding; the first: race in race_one, extra.cu:7 and")


def test_a_kernel_that_crashes_without_a_word_of_the_tool_is_a_finding(
    installed: Installation, build: CubinBuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SANITIZER", "racecheck-clean")
    bundle = lay(tmp_path, [SCALE, launch("stray", "y")], policy="exact")
    observed = run_tool("racecheck", installed, Work(tmp_path, bundle, build), 60)
    (finding,) = observed.findings
    assert (finding.kind, finding.kernel) == ("crash", "stray")
    assert judge_run("racecheck", observed, 2, PROVEN)[0] == "fail"


def test_a_kernel_that_does_not_end_is_killed_and_inconclusive(
    installed: Installation, build: CubinBuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SANITIZER", "synccheck-clean")
    bundle = lay(tmp_path, [SCALE, launch("spin", "y")], policy="exact")
    observed = run_tool("synccheck", installed, Work(tmp_path, bundle, build), 3)
    assert observed.exit_code is None
    verdict, reason = judge_run("synccheck", observed, 2, PROVEN)
    assert verdict == "inconclusive"
    assert "killed at its limit of 3 s; " in reason


def alive(process: str) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_tool_that_hangs_is_killed_with_all_that_it_started(
    installed: Installation, build: CubinBuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SANITIZER", "deaf")
    began = time.monotonic()
    observed = run_tool("memcheck", installed, Work(tmp_path, lay(tmp_path, [SCALE], policy="exact"), build), 5)
    assert time.monotonic() - began < 20
    child = (tmp_path / "child").read_text()
    while alive(child) and time.monotonic() - began < 30:  # killed, but it dies when the system next looks at it
        time.sleep(0.05)
    assert not alive(child)
    assert observed.exit_code is None
    assert observed.findings == ()
    verdict, reason = judge_run("memcheck", observed, 1, PROVEN)
    assert verdict == "inconclusive"
    assert "killed at its limit" in reason


@pytest.mark.parametrize("found", ["silent", "no-device", "no-injection-library", "memcheck-print-limit"])
def test_a_tool_that_did_not_do_its_work_is_never_a_pass(
    installed: Installation, build: CubinBuild, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SANITIZER", found)
    observed = run_tool("memcheck", installed, Work(tmp_path, lay(tmp_path, [SCALE], policy="exact"), build), 60)
    assert judge_run("memcheck", observed, 1, PROVEN)[0] != "pass"


def test_an_option_that_the_tool_refuses_is_told(
    installed: Installation, build: CubinBuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SANITIZER", "memcheck-clean")
    wrong = msgspec.structs.replace(installed, options=installed.options | {"--initcheck-address-space"})
    observed = run_tool("initcheck", wrong, Work(tmp_path, lay(tmp_path, [SCALE], policy="exact"), build), 60)
    verdict, reason = judge_run("initcheck", observed, 1, PROVEN)
    assert verdict == "inconclusive"
    assert "unrecognised option '--initcheck-address-space'" in reason


def test_no_driver_is_told(
    installed: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake_driver: Path
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(fake_driver))
    monkeypatch.setenv("FAKE_CUDA", "none")
    monkeypatch.setenv("FAKE_SANITIZER", "memcheck-clean")
    observed = run_tool("memcheck", installed, Work(tmp_path, lay(tmp_path, [SCALE], policy="exact"), by_hand()), 60)
    verdict, reason = judge_run("memcheck", observed, 1, PROVEN)
    assert verdict == "inconclusive"
    assert "refused driver" in reason


@pytest.mark.parametrize("name", NAMES)
def test_recorded_runs_pass_only_where_kernels_ran_clean(name: str) -> None:
    tool, left = recording(name)
    observed = recording(name).observed()
    planned = max(1, observed.launches)
    verdict, reason = judge_run(tool, observed, planned, [Canary("planted", tool, True, True, "")])
    clean = {"memcheck-clean", "racecheck-clean", "synccheck-clean", "initcheck-clean", "racecheck-level-error"}
    expected = "fail" if observed.findings else "pass" if name in clean else "inconclusive"
    assert verdict == expected, reason
    assert left.exit_code != 0 or not observed.findings


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("never-launched-racecheck", "expected 1 launch, but 0 completed"),
        ("never-launched-memcheck", "expected 1 launch, but 0 completed"),
        ("memcheck-truncated", "its summary or its XML is missing or malformed"),
        ("no-device", "refused driver the CUDA driver sees no usable device"),
        ("no-cuda", "terminated before first instrumented API call"),
        ("no-injection-library", "Unable to find injection library"),
        ("unknown-option", "unrecognised option '--no-such-option'"),
        ("unknown-tool", "the argument for option '--tool' is invalid"),
        ("target-exits-5", "exit status 5 with 0 reports"),
        ("target-aborts", "process didn't terminate successfully"),
        ("target-missing", "doesn't exist or is not a valid executable"),
        ("xml-without-save", "--xml was enabled but no save location"),
    ],
)
def test_the_reason_is_the_tool_s_own_word(name: str, words: str) -> None:
    observed = recording(name).observed()
    verdict, reason = judge_run(recording(name).tool, observed, 1, PROVEN)
    assert verdict == "inconclusive"
    assert words in reason


def test_a_time_out_at_a_barrier_is_no_proof() -> None:
    """The kernel of this recording waits for ever at a barrier; a slow one would have left the same."""
    observed = recording("synccheck-time-out").observed()
    assert (observed.exit_code, observed.findings, observed.troubles) == (None, (), ())
    verdict, reason = judge_run("synccheck", observed, 1, PROVEN)
    assert verdict == "inconclusive"
    assert "killed at its limit of 12.01 s" in reason


def test_a_crash_beside_a_trouble_of_the_tool_is_not_the_kernel_s() -> None:
    left = recording("racecheck-clean").left
    title, summary = (left.log or "").splitlines()
    ended = {"report": ("step live", "error memory cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS"), "exit_code": 1}
    for line, kinds in (
        ("Target application returned an error", ["crash"]),
        ("Internal Sanitizer Error: no memory", []),
    ):
        log = f"{title}\n========= {line}\n{summary}\n"
        observed = observe_tool_output(
            "racecheck", [], ["kernel"], SOURCES, msgspec.structs.replace(left, log=log, **ended)
        )
        assert [finding.kind for finding in observed.findings] == kinds
        assert judge_run("racecheck", observed, 1, PROVEN)[0] == ("fail" if kinds else "inconclusive")


def test_what_was_found_before_a_kill_is_kept() -> None:
    observed = recording("racecheck-killed").observed()
    assert observed.exit_code is None
    assert [finding.kind for finding in observed.findings] == ["race"] * 3
    verdict, reason = judge_run("racecheck", observed, 1, PROVEN)
    assert verdict == "fail"
    assert "3 findings (killed at its limit of 8 s); the first: race in race_many" in reason


@pytest.mark.parametrize("tool", TOOLS)
def test_memory_that_initcheck_looks_at_is_left_untouched(installed: Installation, tool: Tool, tmp_path: Path) -> None:
    prepare(tool, installed, [Work(tmp_path, lay(tmp_path, [SCALE], policy="exact"), by_hand())])
    order = msgspec.json.decode((tmp_path / target.ORDER).read_bytes(), type=target.TargetOrder)
    assert order.poison == (tool != "initcheck")


class Noted(Driver):
    """Notes the calls; memory is handed out in steps of 4,096."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []
        self.given = 0

    def call(self, name: str, *arguments: object) -> None:
        if name == "cuMemAlloc_v2":
            self.given += 4096
            arguments[0]._obj.value = self.given  # type: ignore[attr-defined]
            self.calls.append((name, int(arguments[1])))  # type: ignore[call-overload]
        else:
            self.calls.append((name, int(arguments[0])))  # type: ignore[call-overload]


@pytest.mark.parametrize("poison", [False, True])
def test_buffers_are_exact_and_only_inputs_are_written(tmp_path: Path, poison: bool) -> None:
    bundle = lay(tmp_path, [SCALE], n=10, policy="exact")
    driver = Noted()
    buffers = target.ExactBuffers(driver, tmp_path, bundle.slots, bundle.steps[0], poison)
    assert [size for name, size in driver.calls if name == "cuMemAlloc_v2"] == [40, 40, 40]
    written = {address for name, address in driver.calls if name.startswith(("cuMemset", "cuMemcpy"))}
    addresses = {name: buffers.address(name) for name in "xyz"}
    assert written == {addresses[name] for name in ("xyz" if poison else "x")}
    buffers.free()
    assert sum(name == "cuMemFree_v2" for name, _ in driver.calls) == 3


def test_recordings_hold_no_path_of_another_machine() -> None:
    for file in FOLDER.rglob("*"):
        if file.suffix in (".json", ".txt", ".xml"):
            assert not [word for word in ("/tmp", "/home", "/root", "/work") if word in file.read_text()], file
    assert compute_sanitizer.FOUND == 86
