"""Evidence: whole or not there, never overwritten, any change found; schema and fields are checked."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from audit.errors import EvidenceError
from audit.records import run as run_record
from audit.records.run import SCHEMA

from ..conftest import Ran


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One whole evidence folder of a small run."""
    project = tmp_path_factory.mktemp("evidence") / "softmax"
    shutil.copytree(Path(__file__).parents[1] / "projects/softmax", project)
    command = [sys.executable, "-m", "audit", "run", "--shape", "softmax", "--variant", "fast", "--json"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=120, check=True)
    return Path(json.loads(done.stdout)["evidence"])


@pytest.fixture
def evidence(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / whole.name))


def test_what_was_written_can_be_read(evidence: Path) -> None:
    record = run_record.KIND.load(evidence)
    assert record.summary.verdict == "pass"
    assert record.summary.planned == record.summary.ran == 6
    assert (
        json.loads((evidence / "plan.json").read_bytes())
        == json.loads((evidence / "evidence.json").read_bytes())["plan"]
    )
    assert all(build.binary_sha256 and build.sources for build in record.builds.values())


def test_ordinary_tools_can_check_it(evidence: Path) -> None:
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=evidence, check=True, capture_output=True)


@pytest.mark.parametrize("name", ["evidence.json", "plan.json", "report.html"])
def test_any_changed_byte_is_found(evidence: Path, name: str) -> None:
    file = evidence / name
    original = file.read_bytes()
    for at in random.Random(1).sample(range(len(original)), 20):
        file.write_bytes(original[:at] + bytes([original[at] ^ 0x20]) + original[at + 1 :])
        with pytest.raises(EvidenceError, match="was altered"):
            run_record.KIND.load(evidence)


@pytest.mark.parametrize("name", ["evidence.json", "plan.json", "SHA256SUMS"])
def test_a_missing_file_is_found(evidence: Path, name: str) -> None:
    (evidence / name).unlink()
    with pytest.raises(EvidenceError):
        run_record.KIND.load(evidence)


def test_a_listed_name_cannot_leave_the_folder(evidence: Path) -> None:
    sums = evidence / "SHA256SUMS"
    sums.write_text(sums.read_text() + f"{'0' * 64}  ../../etc/passwd\n")
    with pytest.raises(EvidenceError, match="not a plain file of this folder"):
        run_record.KIND.load(evidence)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": 99}, f"expected schema {SCHEMA}, but got 99"),
        ({"colour": "green"}, "unknown field `colour`"),
        ({"summary": {"verdict": "fine"}}, "Invalid enum value 'fine'"),
    ],
)
def test_foreign_records_are_refused(evidence: Path, change: dict[str, object], words: str) -> None:
    record = {**json.loads((evidence / "evidence.json").read_bytes()), **change}
    with pytest.raises(EvidenceError, match=words):
        run_record.KIND.decode(json.dumps(record).encode(), evidence / "evidence.json")


def test_a_killed_run_leaves_nothing_that_reads_as_a_result(softmax_project: Path) -> None:
    """Kill runs at random moments, from the first milliseconds to beyond the end."""
    runs = softmax_project / "runs"
    command = [sys.executable, "-m", "audit", "run", "--shape", "softmax", "--variant", "fast"]
    began = time.monotonic()
    subprocess.run(command, cwd=softmax_project, capture_output=True, timeout=120, check=True)
    usual = time.monotonic() - began
    shutil.rmtree(runs)
    draw = random.Random(7)
    killed = 0
    for _ in range(12):
        process = subprocess.Popen(command, cwd=softmax_project, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(draw.uniform(0.05, 1.1 * usual))
        process.send_signal(signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
        for folder in runs.iterdir() if runs.exists() else ():
            if folder.name.startswith("."):
                with pytest.raises(EvidenceError):
                    run_record.KIND.load(folder)
            else:
                assert run_record.KIND.load(folder).summary.verdict == "pass"
    assert killed >= 6


def test_an_unfinished_run_is_not_the_latest(softmax_project: Path, audit: Callable[..., Ran]) -> None:
    (softmax_project / "runs/.20260101T000000Z-softmax-abcdef.partial").mkdir(parents=True)
    ran = audit(softmax_project, "report")
    assert (ran.code, ran.out) == (2, "")
    assert "expected a record, but there is none" in ran.err
