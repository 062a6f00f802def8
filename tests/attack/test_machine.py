"""A machine that has no room, no memory, no compiler that ends: no variant fails for it, and nothing is sealed."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from audit.backends import child, host
from audit.backends.outcome import Crashed
from audit.backends.replay import reporting
from audit.compile import compiler
from audit.compile.cache import cached_folder
from audit.compile.compiler import find_compiler, require_compiler_end
from audit.errors import CompileError, MachineError, PlanError
from audit.plan import checked_time_limit

from ..conftest import Ran, full_run

Audit = Callable[..., Ran]
RUN = ("run", "--axis", "n=1", "--variant", "fast")
_MOUNTS = subprocess.run(["unshare", "-Urm", "true"], capture_output=True, check=False).returncode == 0
mounts = pytest.mark.skipif(not _MOUNTS, reason="no mount is allowed here, not even in a namespace of its own")


def not_the_kernels(code: int, out: str, err: str, project: Path) -> None:
    """One message, exit 2 or 3, no traceback; no record."""
    assert code in (2, 3), out + err
    assert "Traceback" not in err
    assert len([line for line in err.splitlines() if line.startswith("audit: ")]) == 1, err
    assert not list((project / "runs").glob("[!.]*")), "a record was sealed"


def mounted(project: Path, mount: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command in a namespace in which `mount` was run before it."""
    command = f'{mount} && exec "$@"'
    return subprocess.run(
        ["unshare", "-Urm", "sh", "-c", command, "sh", sys.executable, "-m", "audit", *words],
        cwd=project, capture_output=True, text=True, timeout=120, env={**os.environ, **environment}, check=False,
    )  # fmt: skip


@pytest.fixture
def built(softmax_project: Path, audit: Audit) -> Path:
    """A project whose programs are in the cache."""
    assert audit(softmax_project, *RUN).code == 0
    shutil.rmtree(softmax_project / "runs")
    return softmax_project


@mounts
def test_no_room_for_the_buffers(built: Path, tmp_path: Path) -> None:
    tight = tmp_path / "tight"
    tight.mkdir()
    codes = set()
    for size in range(4, 124, 4 if full_run() else 20):
        mount = f"mount -t tmpfs -o size={size}k t /dev/shm && mount -t tmpfs -o size={size}k t {tight}"
        ran = mounted(built, mount, *RUN, TMPDIR=str(tight))
        codes.add(ran.returncode)
        if ran.returncode:
            not_the_kernels(ran.returncode, ran.stdout, ran.stderr, built)
            assert any(words in ran.stderr for words in ("No space left on device", "no page left", "no room to write"))
        else:
            shutil.rmtree(built / "runs")
    assert codes == {0, 2}  # from no room at all to enough


@mounts
def test_no_page_for_a_mapped_buffer(built: Path, tmp_path: Path) -> None:
    """A buffer's file has holes until the kernel writes: a write that finds no page is a SIGBUS."""
    tight = tmp_path / "tight"
    tight.mkdir()
    mount = f"mount -t tmpfs -o size=200k t /dev/shm && mount -t tmpfs -o size=200k t {tight}"
    ran = mounted(built, mount, "run", "--axis", "n=4096", "--variant", "fast", TMPDIR=str(tight))
    not_the_kernels(ran.returncode, ran.stdout, ran.stderr, built)
    assert "y.bin: the file system has no page left for it" in ran.stderr


@mounts
@pytest.mark.parametrize("options", ["size=1m", pytest.param("noexec", marks=pytest.mark.full), "ro"])
def test_a_cache_that_does_not_serve(softmax_project: Path, tmp_path: Path, options: str) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    ran = mounted(softmax_project, f"mount -t tmpfs -o {options} t {cache}", *RUN, KERNEL_AUDIT_CACHE=str(cache))
    not_the_kernels(ran.returncode, ran.stdout, ran.stderr, softmax_project)
    assert "KERNEL_AUDIT_CACHE" in ran.stderr or "No space left on device" in ran.stderr


@mounts
def test_no_room_for_the_record(built: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    ran = mounted(built, f"mount -t tmpfs -o size=16k t {out}", *RUN, "--out", str(out))
    not_the_kernels(ran.returncode, ran.stdout, ran.stderr, built)


def test_a_home_that_is_none(softmax_project: Path, tmp_path: Path, audit: Audit) -> None:
    (tmp_path / "file").touch()
    for home in (tmp_path / "file", Path("/proc/none")):
        ran = audit(softmax_project, *RUN, HOME=str(home), KERNEL_AUDIT_CACHE="")
        not_the_kernels(ran.code, ran.out, ran.err, softmax_project)
        assert "set KERNEL_AUDIT_CACHE" in ran.err


@pytest.mark.parametrize("damage", ["file", "link", "lock"])
def test_a_damaged_cache_is_built_again_or_named(tmp_path: Path, damage: str) -> None:
    kind = tmp_path / "kind"
    kind.mkdir()
    entry = kind / "key"
    match damage:
        case "file":
            entry.write_text("x")
        case "link":
            entry.symlink_to("/nowhere")
        case "lock":
            (kind / ".key.lock").mkdir()

    def build(folder: Path) -> None:
        (folder / "a").write_text("a")

    if damage == "lock":
        with pytest.raises(MachineError, match="cache cannot be written"):
            cached_folder(tmp_path, "kind", "key", ("a",), build)
    else:
        assert (cached_folder(tmp_path, "kind", "key", ("a",), build) / "a").read_text() == "a"


@pytest.mark.parametrize("limit", ["-1", "0", "nan", "inf", "1e300"])
def test_a_time_limit_that_is_none(softmax_project: Path, audit: Audit, limit: str) -> None:
    if limit != "nan" and not full_run():
        with pytest.raises(PlanError, match="--time-limit: expected more than 0"):
            checked_time_limit(float(limit))
        return
    for command in ("run", "sanitize", "bench"):
        ran = audit(softmax_project, command, "--time-limit", limit)
        not_the_kernels(ran.code, ran.out, ran.err, softmax_project)
        assert "--time-limit: expected more than 0" in ran.err


def fake_compiler(folder: Path, body: str) -> Path:
    """A compiler that answers questions about itself and does `body` for the rest."""
    path = folder / "fake++"
    path.write_text(f'#!/bin/sh\ncase "$*" in *--version*) echo "fake 1.0"; exit;; esac\n{body}\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


FAILURES = {
    "killed": "kill -9 $$",
    "killed inside": "echo 'fake++: fatal error: Killed signal terminated program cc1plus' >&2; exit 1",
    "full disk": "echo 'k.cu:1:1: fatal error: error writing to /x.s: No space left on device' >&2; exit 1",
    "no memory": "echo 'cc1plus: out of memory allocating 65536 bytes after a total of 1 bytes' >&2; exit 1",
    "linker": "echo '/usr/bin/ld: final link failed: No space left on device' >&2; exit 1",
    "broken": "echo 'k.cu:9:3: internal compiler error: Segmentation fault' >&2; exit 1",
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_compiler_that_fails_by_itself(softmax_project: Path, tmp_path: Path, audit: Audit, failure: str) -> None:
    cxx = fake_compiler(tmp_path, FAILURES[failure])
    commands = [RUN, ("sanitize", "--tool", "synccheck")] if full_run() or failure == "killed" else [RUN]
    for words in commands:
        ran = audit(softmax_project, *words, CXX=str(cxx), KERNEL_AUDIT_CACHE=str(tmp_path / "cache"))
        not_the_kernels(ran.code, ran.out, ran.err, softmax_project)


def test_a_compiler_that_never_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", str(fake_compiler(tmp_path, "sleep 100")))
    monkeypatch.setattr(compiler, "TIME_LIMIT", 0.2)
    with pytest.raises(MachineError, match=r"did not end within 0\.2 s and was stopped"):
        find_compiler().run(["x.cc"], tmp_path, tmp_path)


def test_a_source_that_is_wrong_is_still_a_finding(tmp_path: Path) -> None:
    for text in ("this is no CUDA", "#error No space left on device"):
        (tmp_path / "x.cc").write_text(text)
        with pytest.raises(CompileError):
            find_compiler().run(["-c", "x.cc"], tmp_path, tmp_path)
    require_compiler_end("g++", 0, "k.cu: warning: No space left on device")


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        (child.NO_ROOM, ["step live"]),
        (-signal.SIGXFSZ, ["step live"]),
        (-signal.SIGKILL, ["step live"]),
        (3, ["step live", "error room y.bin: the file system has no page left for it"]),
    ],
)
def test_how_a_process_ends_for_want_of_room(code: int, lines: list[str]) -> None:
    with pytest.raises(MachineError, match="nothing was judged"):
        child.understood(code, lines, "", {}, 1.0)


def test_a_crash_is_still_the_kernels() -> None:
    assert isinstance(child.understood(-signal.SIGSEGV, ["step live"], "", {}, 1.0), Crashed)
    assert isinstance(child.understood(3, ["error memory access to address 0x1"], "", {}, 1.0), Crashed)


def test_a_program_that_cannot_be_executed(softmax_project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)

    class Build:
        executable = softmax_project / "program"

    with pytest.raises(MachineError, match="noexec"):
        host.run(softmax_project, None, Build, 1.0, 1)  # type: ignore[arg-type]


def test_a_replay_without_room(tmp_path: Path) -> None:
    def work(_folder: Path, _report: Callable[[str], None]) -> None:
        raise OSError(28, "No space left on device", "after0.y.bin")

    assert reporting(work, tmp_path, "report") == 1
    assert (tmp_path / "report").read_text().startswith("error room OSError: [Errno 28]")
    (tmp_path / "full").symlink_to("/dev/full")
    with pytest.raises(SystemExit) as ended:
        reporting(lambda _, report: report("step live"), tmp_path, "full")
    assert ended.value.code == child.NO_ROOM


@pytest.mark.parametrize("how", ["full", "closed", "pipe"])
def test_standard_output_that_takes_nothing(built: Path, how: str) -> None:
    done = redirected(built, {"full": ">/dev/full", "closed": ">&-", "pipe": "| true"}[how])
    assert done.stderr.count("audit: ") <= 1
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    if how != "pipe":
        assert done.stdout == "2\n"
        assert last.startswith("audit: standard output")
    else:
        assert done.stdout in ("0\n", "2\n")  # before and after the other side has gone


@pytest.mark.parametrize("how", ["2>/dev/full", "2>&-"])
def test_standard_error_that_takes_nothing(built: Path, how: str) -> None:
    done = redirected(built, how)
    assert done.stdout.endswith("\n0\n")
    assert "pass: 2 passed" in done.stdout


def test_findings_that_cannot_be_written_are_not_exit_1(built: Path) -> None:
    done = redirected(built, ">/dev/full", "run", "--axis", "n=33")
    assert done.stdout == "2\n"


def redirected(project: Path, how: str, *words: str) -> subprocess.CompletedProcess[str]:
    """The command with a redirection, and then its exit code on standard output."""
    return subprocess.run(
        ["bash", "-c", f'"$@" {how}; echo ${{PIPESTATUS[0]}}', "bash", sys.executable, "-m", "audit", *(words or RUN)],
        cwd=project, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
