"""No command writes into a record, whatever path a user gives it; and no reader waits for what is no file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from audit.errors import EvidenceError
from audit.project import Project, find_project
from audit.records import folder as folders
from audit.records.kinds import FILES, KINDS
from audit.records.retain import retain
from audit.records.verify import find_records, verify

from ..conftest import Ran
from ..gate.conftest import project, whole

__all__ = ["project", "whole"]  # fixtures
Audit = Callable[..., Ran]


def record_in(made: Project) -> Path:
    (file,) = (made.root / "reports").glob("*/evidence.json")
    return file.parent


def content(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


RUN = ("run", "--shape", "softmax", "--variant", "fast", "--axis", "n=33")
INSIDE = [
    (*RUN, "--out", "{record}"),
    (*RUN, "--out", "{record}/deeper/still"),
    (*RUN, "--out", "link"),
    (*RUN, "--out", "{record}/../{name}/x"),
    ("sanitize", "--shape", "softmax", "--tool", "synccheck", "--out", "{record}/x"),
    ("gate", "--out", "{record}/x"),
    ("retain", "given", "--into", "{record}"),
    ("retain", "given", "--into", "{record}/kept"),
    ("report", "{record}", "-o", "{record}/report.html"),
    ("report", "{record}", "-o", "{record}/new.html"),
    ("report", "{record}", "-o", "link/evidence.json"),
    ("report", "{record}", "-o", "{record}/new/page.html"),
    ("report", "{record}", "-o", "file-link"),
    ("report", "--index", "{record}"),
    ("diff", "{record}", "{record}", "-o", "{record}/diff.html"),
    ("gate", "--no-run", "-o", "{record}/evidence.json"),
    ("gate", "--no-run", "-o", "file-link"),
    ("gate", "--no-run", "--also", "json={record}/gate.json"),
    ("gate", "--no-run", "--also", "json={record}/SHA256SUMS"),
    ("freeze", "{record}/frozen", "--shape", "softmax", "--variant", "fast"),
]


@pytest.mark.parametrize("words", INSIDE, ids=[" ".join((words[0], *words[-2:])) for words in INSIDE])
def test_no_command_writes_into_a_record(
    project: Project, audit_here: Callable[..., Ran], words: tuple[str, ...]
) -> None:
    record = record_in(project)
    (project.root / "link").symlink_to(record)
    (project.root / "file-link").symlink_to(record / "evidence.json")
    before = content(project.root)
    filled = [word.format(record=record, name=record.name) for word in words]
    ran = audit_here(project.root, *filled)
    assert ran.code == 2, ran.out + ran.err
    assert "evidence is never overwritten" in ran.err
    assert content(project.root) == before


def test_a_damaged_record_and_one_in_the_making_are_records_too(tmp_path: Path, project: Project) -> None:
    record = record_in(project)
    for removed in (folders.SUMS, "statement.json", "evidence.json"):
        damaged = Path(shutil.copytree(record, tmp_path / f"damaged-{removed}"))
        (damaged / removed).unlink()
        with pytest.raises(EvidenceError, match="evidence is never overwritten"):
            folders.require_outside(damaged / "x", "another")
    making = folders.Partial(tmp_path / "runs", "q6", {"plan.json": b"{}"})
    with pytest.raises(EvidenceError, match="evidence is never overwritten"):
        folders.require_outside(making.folder, "another")
    retained = retain(record, tmp_path / "kept")
    with pytest.raises(EvidenceError, match="evidence is never overwritten"):
        folders.require_outside(retained, "another")
    folders.require_outside(record.parent / "beside", "another")
    (tmp_path / "downloads").mkdir()
    (tmp_path / "downloads/SHA256SUMS").write_text("of something else\n")
    folders.require_outside(tmp_path / "downloads/page.html", "another")


def test_every_kind_of_record_is_known_by_its_file() -> None:
    marks = set(folders._MARKS)
    assert marks >= {*FILES, *(name for kind in KINDS for name in kind.beside)}


@pytest.mark.parametrize(
    "words", [("report", "{record}", "-o"), ("diff", "{record}", "{record}", "-o"), ("gate", "--no-run", "-o")]
)
def test_what_is_no_plain_file_is_not_written_over(
    project: Project, audit_here: Callable[..., Ran], words: tuple[str, ...]
) -> None:
    os.mkfifo(project.root / "fifo")
    (project.root / "folder").mkdir()
    for name in ("fifo", "folder", "/dev/null"):
        ran = audit_here(project.root, *(word.format(record=record_in(project)) for word in words), name)
        assert ran.code == 2
        assert "expected a plain file or a new one" in ran.err
    assert (project.root / "fifo").is_fifo()


def test_a_hard_link_to_evidence_is_replaced_not_written_through(
    project: Project, audit_here: Callable[..., Ran]
) -> None:
    record = record_in(project)
    (project.root / "page.html").hardlink_to(record / "evidence.json")
    before = content(record)
    assert audit_here(project.root, "report", str(record), "-o", "page.html").code == 0
    assert content(record) == before
    assert b"<!doctype html>" in (project.root / "page.html").read_bytes()


def fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


def device(file: Path) -> None:
    file.unlink()
    file.symlink_to("/dev/zero")


def terminal(file: Path) -> None:
    file.unlink()
    file.symlink_to("/dev/tty")


def loop(file: Path) -> None:
    file.unlink()
    file.symlink_to(file.name)


READERS = [
    ("verify", "{record}"),
    ("verify", "reports"),
    ("report", "{record}"),
    ("report", "--index"),
    ("diff", "{record}", "{record}"),
    ("retain", "{record}", "--into", "kept"),
    ("gate", "--no-run"),
    ("sign", "{record}", "--key", "key"),
]
READ_ALL = """
import sys
from audit.cli.main import cli
from audit.errors import AuditError
from click.exceptions import ClickException, Exit
for words in {readers!r}:
    try:
        code = cli.main(words, prog_name="audit", standalone_mode=False)
    except (AuditError, ClickException) as error:
        code = 2
    print("CODE", words[0], code)
"""


@pytest.mark.parametrize("name", ["SHA256SUMS", "evidence.json", "report.html", "statement.json"])
@pytest.mark.parametrize("become", [fifo, directory, device, terminal, loop])
def test_no_reader_waits_for_what_is_no_file(project: Project, become: Callable[[Path], None], name: str) -> None:
    record = record_in(project)
    become(record / name)
    readers = [[word.format(record=record) for word in words] for words in READERS]
    command = [sys.executable, "-c", READ_ALL.format(readers=readers)]
    done = subprocess.run(
        command, cwd=project.root, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False
    )
    assert "Traceback" not in done.stderr, done.stderr
    codes = dict(line.split()[1:] for line in done.stdout.splitlines() if line.startswith("CODE"))
    assert set(codes) == {words[0] for words in READERS}
    assert codes["verify"] in ("1", "3")
    assert all(code != "0" for reader, code in codes.items() if reader not in ("report", "diff")), codes
    assert find_records(record) == (record,)


def test_a_signature_or_a_page_that_is_a_pipe_is_not_waited_for(project: Project) -> None:
    record = record_in(project)
    os.mkfifo(record / "statement.json.sig")
    assert verify(record, project, project.root / "pyproject.toml").verdict == "fail"
    kept = retain(record, project.root / "kept")
    assert not (kept / "statement.json.sig").exists()


def test_a_record_named_by_a_dot_is_kept_under_its_name(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    record = record_in(project)
    monkeypatch.chdir(record)
    kept = retain(Path(), project.root / "kept")
    assert kept.name == record.name
    assert verify(kept, find_project(project.root)).verdict == "pass"
