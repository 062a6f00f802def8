"""Runs at once, full disks, and the statement that stands beside the evidence."""

from __future__ import annotations

import hashlib
import json
import secrets
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from audit.errors import EvidenceError
from audit.records import folder, statement

FILL = """
import resource, signal, sys
from pathlib import Path
from audit.errors import EvidenceError
from audit.records.folder import Partial
draft = Partial(Path(sys.argv[1]), "q6", {"plan.json": b"{}"})
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    draft.seal({"big.html": b"x" * 10_000})
except EvidenceError as error:
    sys.exit(str(error))
"""
BUILD = {"sources": {"k.cu": "a" * 64, "k.cuh": "b" * 64}, "binary_sha256": "c" * 64}


def test_runs_that_start_at_once_never_share_a_folder(tmp_path: Path) -> None:
    def one(number: int) -> Path:
        draft = folder.Partial(tmp_path, "q6", {"plan.json": str(number).encode()})
        return draft.seal({"report.html": str(number).encode()})

    with ThreadPoolExecutor(16) as pool:
        made = list(pool.map(one, range(64)))
    assert len(set(made)) == 64
    for number, path in enumerate(made):
        assert (path / "plan.json").read_text() == (path / "report.html").read_text() == str(number)
    assert not list(tmp_path.glob(".*"))


def test_a_name_that_is_taken_is_not_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draws = iter(["aaaaaa", "aaaaaa", "bbbbbb", "aaaaaa", "bbbbbb", "cccccc"])
    monkeypatch.setattr(secrets, "token_hex", lambda _: next(draws))
    first = folder.Partial(tmp_path, "q6", {})
    second = folder.Partial(tmp_path, "q6", {})
    first.seal({"a.html": b""})
    third = folder.Partial(tmp_path, "q6", {})
    assert [draft.final.name[-6:] for draft in (first, second, third)] == ["aaaaaa", "bbbbbb", "cccccc"]


def test_without_a_free_name_the_run_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "token_hex", lambda _: "aaaaaa")
    folder.Partial(tmp_path, "q6", {})
    with pytest.raises(EvidenceError, match="no free name"):
        folder.Partial(tmp_path, "q6", {})


@pytest.mark.parametrize("room", [0, 100, 5_000])
def test_a_full_disk_leaves_nothing_that_reads_as_a_result(tmp_path: Path, room: int) -> None:
    """A limit on the size of files stands in for the disk: a write fails in the midst, as it does there."""
    command = [sys.executable, "-c", FILL, str(tmp_path), str(room)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "evidence could not be completed" in done.stderr
    (left,) = tmp_path.iterdir()
    assert left.name.endswith(".partial")
    with pytest.raises(EvidenceError, match="did not finish"):
        folder.verified(left, ())


def test_the_statement_is_in_toto_v1() -> None:
    record = {
        "tool": "0.1.0",
        "started": "2026-11-01T10:00:00+00:00",
        "command": "audit run",
        "commit": None,
        "builds": {"fast-1": BUILD, "old@0123-2": {**BUILD, "sources": {"k.cu": "d" * 64}}},
        "summary": {"verdict": "pass", "planned": 4},
    }
    raw = json.dumps(record).encode()
    made = json.loads(statement.of({"plan.json": b"{}", "evidence.json": raw}, "audit", "evidence.json"))
    assert set(made) == {"_type", "subject", "predicateType", "predicate"}
    assert made["_type"] == "https://in-toto.io/Statement/v1"
    assert made["predicateType"] == "urn:kernel-audit:evidence:audit:v1"
    subjects = {subject["name"]: subject["digest"]["sha256"] for subject in made["subject"]}
    assert subjects == {
        "k.cu": "a" * 64,
        "k.cuh": "b" * 64,
        "k.cu@dddddddddddd": "d" * 64,
        "build:fast-1": "c" * 64,
        "build:old@0123-2": "c" * 64,
    }
    assert made["predicate"]["summary"] == {"verdict": "pass", "planned": 4}
    assert made["predicate"]["files"]["evidence.json"] == {"sha256": hashlib.sha256(raw).hexdigest()}
    assert set(made["predicate"]["files"]) == {"evidence.json", "plan.json"}


def test_the_statement_of_the_same_files_is_the_same() -> None:
    record = {"tool": "", "started": "", "command": "", "commit": None, "builds": {}}
    files = {"plan.json": b"{}", "evidence.json": json.dumps(record).encode()}
    made = statement.of(files, "audit", "evidence.json")
    assert made == statement.of(dict(reversed(files.items())), "audit", "evidence.json")


def test_a_statement_may_list_pages_that_are_not_kept_and_no_evidence_that_is_not() -> None:
    record = {"tool": "", "started": "", "command": "", "commit": None, "builds": {}}
    whole = {"plan.json": b"{}", "evidence.json": json.dumps(record).encode(), "report.html": b"<p>"}
    made = statement.of(whole, "audit", "evidence.json")
    evidence = ("evidence.json", "plan.json")

    def agrees(*absent: str, **changed: bytes) -> bool:
        files = {**whole, **changed, "statement.json": made}
        kept = {name: content for name, content in files.items() if name not in absent}
        return statement.agrees(kept, "audit", "evidence.json", evidence)

    assert agrees()
    assert agrees("report.html")
    assert not agrees("plan.json")
    assert not agrees(**{"report.html": b"<p>other"})
    assert not agrees(**{"plan.json": b"[]"})
    assert not agrees(**{"added.csv": b""})


@pytest.mark.parametrize("line", ["no digest", "0" * 63 + "G  a", "0" * 64 + " a", "0" * 64 + "  a.html", ""])
def test_a_line_that_is_none_is_refused(tmp_path: Path, line: str) -> None:
    path = folder.Partial(tmp_path, "q6", {}).seal({"a.html": b""})
    assert set(folder.listed(path)) == {"a.html"}
    with (path / folder.SUMS).open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(EvidenceError, match="it was altered"):
        folder.listed(path)
