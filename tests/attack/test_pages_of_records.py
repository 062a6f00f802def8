"""A finished run costs nothing of its record, whatever goes wrong with its page; and a page shows its own record."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from audit.project import Project, find_project
from audit.records import folder as folders
from audit.records import run as run_record
from audit.records.kinds import kind_of
from audit.records.verify import verify
from audit.report import pages
from audit.report.attachments import csv_table

from ..bench.records import bench, pair, point
from ..conftest import ROOT, Ran
from ..records.test_verify import sealed
from ..report.synthetic import synthetic
from ..report.test_sanitize_page import session

Audit = Callable[..., Ran]
RUN = ("run", "--shape", "softmax", "--variant", "fast", "--axis", "n=33")
SABOTAGE = """
import sys
import audit.report.run_page as page
from audit.cli.main import main
def render(*_):
    {body}
page.render = render
sys.argv = ["audit", *sys.argv[1:]]
main()
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with one finished run."""
    home = Path(shutil.copytree(ROOT / "tests/projects/softmax", tmp_path_factory.mktemp("pages") / "softmax"))
    subprocess.run([sys.executable, "-m", "audit", *RUN], cwd=home, check=True, capture_output=True, timeout=120)
    return home


@pytest.fixture
def project(whole: Path, tmp_path: Path) -> Project:
    return find_project(Path(shutil.copytree(whole, tmp_path / "softmax")))


def record_in(project: Project) -> Path:
    (file,) = project.runs.glob("*/evidence.json")
    return file.parent


def sabotaged(project: Project, body: str, *words: str) -> subprocess.CompletedProcess[str]:
    """The command, with another renderer."""
    command = [sys.executable, "-c", SABOTAGE.format(body=body), *(words or (*RUN, "--json"))]
    return subprocess.run(command, cwd=project.root, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    "body",
    ["raise OSError('a neighbour cannot be read')", "return {1: 2}", "return {'report.html': 'no bytes'}", "1 / 0"],
)
def test_an_error_of_the_page_costs_no_record(project: Project, body: str) -> None:
    done = sabotaged(project, body)
    assert done.returncode == 0
    found = json.loads(done.stdout)
    home = Path(found["evidence"])
    assert found["page"] is None
    assert f"audit report {home}" in done.stderr
    assert "Traceback" not in done.stderr
    assert (verify(home, project).verdict, folders.page_in(home)) == ("pass", None)
    assert sorted(folders.listed(home)) == ["evidence.json", "plan.json", "statement.json"]
    assert not list(project.runs.glob(".*.partial"))


def test_a_page_that_failed_leaves_the_verdict(project: Project) -> None:
    done = sabotaged(project, "1 / 0", *RUN[:3], "--variant", "wrong", "--axis", "n=33")
    assert done.returncode == 1
    assert done.stdout.startswith("fail ")


def test_a_page_that_failed_is_rendered_later(project: Project, audit: Audit) -> None:
    done = sabotaged(project, "raise MemoryError", *RUN)
    assert done.returncode == 0
    (shown,) = re.findall(r"^report   none; (audit report \S+) renders it$", done.stdout, re.MULTILINE)
    ran = audit(project.root, *shown.split()[1:])
    assert ran.code == 0
    assert "<title>pass: softmax" in (project.root / ran.out.strip()).read_text()


def test_an_unreadable_neighbour_costs_nothing(project: Project, audit: Audit) -> None:
    """Each kind of thing that can lie in `reports` where a record is expected."""
    reports = project.reports
    for name in ("evidence.json", "SHA256SUMS", "evidence.json.gz"):
        (reports / f"folder-{name}" / name).mkdir(parents=True)
        (reports / f"fifo-{name}").mkdir()
        os.mkfifo(reports / f"fifo-{name}" / name)
        (reports / f"link-{name}").mkdir()
        (reports / f"link-{name}" / name).symlink_to(name)
        (reports / f"rubbish-{name}").mkdir()
        (reports / f"rubbish-{name}" / name).write_bytes(b"\xff\x00{")
    ran = audit(project.root, *RUN, "--json")
    assert ran.code == 0, ran.err
    assert verify(Path(ran.json["evidence"]), project).verdict == "pass"


def test_a_run_that_is_killed_while_it_renders_keeps_its_record(project: Project) -> None:
    before = {*project.runs.iterdir()}
    command = [sys.executable, "-c", SABOTAGE.format(body="import time; time.sleep(60)"), *RUN]
    process = subprocess.Popen(command, cwd=project.root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    limit = time.monotonic() + 60
    while not (new := {each for each in project.runs.iterdir() if each.name[0] != "."} - before):
        assert time.monotonic() < limit
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    (home,) = new
    assert verify(home, project).verdict == "pass"


def test_every_moment_at_which_a_page_is_added_leaves_a_record(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rename by rename, as a kill would stop it; a table beside the page carries its digest in its name."""
    beside = csv_table("errors", ["a"], [["1"]])
    whole_page = (record_in(project) / folders.REPORT).read_bytes()
    sealed_home = record_in(project)
    (sealed_home / folders.REPORT).unlink()
    sealed(sealed_home)
    rename = Path.rename
    for stop in range(4):
        home = Path(shutil.copytree(sealed_home, project.root / f"stopped-{stop}"))
        done = 0

        def until(self: Path, target: Path, stop: int = stop) -> Path:
            nonlocal done
            if done == stop:
                raise KeyboardInterrupt
            done += 1
            return rename(self, target)

        monkeypatch.setattr(Path, "rename", until)
        try:
            folders.add_pages(home, lambda: {beside.name: beside.content, folders.REPORT: whole_page})
        except KeyboardInterrupt:
            assert stop < 3
        monkeypatch.setattr(Path, "rename", rename)
        assert verify(home, project).verdict == "pass", stop
        assert run_record.KIND.load(home).summary.verdict == "pass"


def test_an_unlisted_file_of_another_record_is_altered(project: Project) -> None:
    home = record_in(project)
    page = (home / folders.REPORT).read_bytes()
    (home / folders.REPORT).unlink()
    sealed(home)
    for name, content in (
        (folders.REPORT, b"<p>no record named"),
        (folders.REPORT, re.sub(rb'record" content="[0-9a-f]', b'record" content="x', page)),
        (f"errors-{'0' * 16}.csv", b"a,b\n"),
        ("other.html", page),
    ):
        (home / name).write_bytes(content)
        assert {flaw.kind for flaw in verify(home, project).flaws} >= {"altered"}, name
        (home / name).unlink()
    (home / folders.REPORT).write_bytes(page)
    assert verify(home, project).verdict == "pass"


def test_a_page_that_shows_something_else_contradicts(project: Project) -> None:
    """Even where everything was listed anew."""
    home = record_in(project)
    page = (home / folders.REPORT).read_bytes()
    named = re.search(rb'<meta name="kernel-audit-record" content="([0-9a-f]{64})">', page)
    assert named
    assert b"<title>pass:" in page
    for other, words in (
        (page.replace(named[1], b"0" * 64), "shows the record with sha256 000000"),
        (page.replace(b"<title>pass:", b"<title>fail:"), "is titled 'fail'"),
        (b"<title>inconclusive: softmax</title>", "is titled 'inconclusive'"),
    ):
        sealed(home, report_html=other)
        found = verify(home, project)
        assert found.verdict == "fail"
        assert words in found.describe()
    sealed(home, report_html=b"<title>pass: of an older version</title>")
    (home / "statement.json").unlink()
    sealed(home)
    assert verify(home, project).verdict == "pass"


def test_every_kind_of_page_names_its_record() -> None:
    """The sha256 is that of the file in the folder where it was read from one, of an older version perhaps."""
    for record in (synthetic(), session(), bench(point(1024, pair()))):
        kind = kind_of(record)
        written = hashlib.sha256(folders.encode(record)).hexdigest()
        assert f'<meta name="kernel-audit-record" content="{written}">' in pages(record)[folders.REPORT].decode()
        raw = b" " + folders.encode(record)
        there = hashlib.sha256(raw).hexdigest()
        assert there in pages(record, {kind.file: raw})[folders.REPORT].decode()
