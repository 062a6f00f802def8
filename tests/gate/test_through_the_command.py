"""`audit gate` over evidence that a GPU left, a session of its sanitizers, and a fresh run here, in a copy of this very
project: it passes, and each of six things that go wrong turns it, the reason among the first lines."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from audit.project import find_project
from audit.records import sanitize
from audit.records import sanitize as sanitize_record
from audit.records.sanitize import SanitizeRecord, Side, ToolFinding, summarize_session
from audit.sanitize import suppressions

from ..conftest import ROOT, Ran
from .made import rewrite, write_session
from .retained import HOST, add, add_session, copy, newest, newest_session
from .test_decision import only, without_case

Audit = Callable[..., Ran]
RULE = """
[[tool.kernel-audit.suppressions]]
name = "known"
tool = "{tool}"
kind = "race"
where = "the_kernel"
reason = "the two are ordered by the launch"
expires = {expires}
"""
FIRST_LINES = 12


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project, what a GPU left of q1 and of its sanitizers, and a policy that asks for these and for a host run."""
    home = copy(tmp_path_factory.mktemp("command") / "project")
    add(home, HOST)
    add_session(home)
    return home


@pytest.fixture
def project(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "project"))


def gate(audit: Audit, project: Path, *words: str) -> Ran:
    """Judge what is there: the fresh run that `whole` was given, or nothing new."""
    return audit(project, "gate", "--evidence", "runs", *words)


@pytest.fixture(autouse=True)
def _fresh_run(whole: Path, audit: Audit) -> None:
    """One run here, by the gate itself, which passes; its evidence is judged again by each test."""
    if (whole / "runs").is_dir():
        return
    ran = audit(whole, "gate")
    assert ran.code == 0, ran.out
    assert "pass: 2 of 2 passed" in ran.err
    assert ran.out.splitlines()[-1].startswith("pass: of ")


def first(ran: Ran) -> str:
    return "\n".join(ran.out.splitlines()[:FIRST_LINES])


def test_whole_evidence_passes_and_its_reports_open(project: Path, audit: Audit) -> None:
    ran = gate(audit, project)
    assert ran.code == 0, ran.out
    assert all(line.startswith(("pass", "warn", " ")) or "conditions hold" in line for line in ran.out.splitlines())
    retained = [project / folder.relative_to(ROOT) for folder in (newest(), newest_session())]
    for folder in (*retained, only(project / "runs")):
        page = project / "page.html"
        shown = audit(project, "report", str(folder), "-o", str(page))
        assert shown.code == 0, shown.err
        assert "✓" in page.read_text()


def test_one_byte_of_evidence_changed(project: Path, audit: Audit) -> None:
    (file,) = (project / newest().relative_to(ROOT)).glob("evidence.json*")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    ran = gate(audit, project)
    assert ran.code == 1
    assert f"evidence {file.parent.name}: altered" in first(ran)
    assert f"{file.name}: expected sha256" in first(ran)
    shown = audit(project, "report", str(file.parent), "-o", "page.html")
    assert (shown.code, "it was altered" in shown.err) == (2, True)


def test_one_planned_case_missing(project: Path, audit: Audit) -> None:
    rewrite(
        project / newest().relative_to(ROOT),
        without_case(lambda case: case.context == 129 and case.layout == "padded"),
    )
    ran = gate(audit, project)
    assert ran.code == 3
    assert re.search(r"inconclusive audits q1 on cuda: \d+ passed, (\d+ inconclusive, )?\d+ missing", first(ran))
    assert re.search(r"no evidence of \w+ in q1/seed1/\S*layout=padded", first(ran))


def test_one_capture_layer_missing(project: Path, audit: Audit) -> None:
    rewrite(project / newest().relative_to(ROOT), without_case(lambda case: "layer28" in (case.capture or "")))
    ran = gate(audit, project)
    assert ran.code == 3
    assert "captures q1 on cuda: 6 (required: 9 layers x ranks)" in first(ran)
    assert "no evidence of smollm2-135m/layer28/rank0" in first(ran)


def test_one_canary_not_found(project: Path, audit: Audit) -> None:
    def missed(record: SanitizeRecord) -> SanitizeRecord:
        lost = msgspec.structs.replace(record.canaries[-1], found=False, detail="the planted fault was not reported")
        checked = tuple(
            msgspec.structs.replace(one, verdict="inconclusive", reason="its canary was not found")
            if one.tool == lost.tool
            else one
            for one in record.checked
        )
        return msgspec.structs.replace(record, canaries=(*record.canaries[:-1], lost), checked=checked)

    tool = rewrite_session(project, missed).canaries[-1].tool
    ran = gate(audit, project)
    assert ran.code == 3
    assert f"inconclusive canaries {tool} " in first(ran)
    assert "the planted fault was not reported" in first(ran)


def test_one_suppression_expired(project: Path, audit: Audit) -> None:
    started = datetime.fromisoformat("2026-11-01T10:00:00+00:00")
    day = started.date()
    settings = project / "pyproject.toml"
    plain = settings.read_text()

    def suppress(record: SanitizeRecord, expires: date) -> SanitizeRecord:
        tool = record.checked[-1].tool
        settings.write_text(plain + RULE.format(tool=tool, expires=expires.isoformat()))
        side = Side("write of 4 bytes", "the_kernel", "kernels/grouped/control.cu", 9)
        found = (ToolFinding(tool, "race", "error", "the_kernel", "two threads, one word", (side,), 1, ""),)
        rules = suppressions.declared(find_project(project))
        last = msgspec.structs.replace(record.checked[-1], findings=suppressions.apply(rules, found, day))
        return msgspec.structs.replace(
            record,
            started=started.isoformat(),
            checked=(*record.checked[:-1], last),
            suppressions=sanitize_record.counted(rules, last.findings),
        )

    tool = rewrite_session(project, lambda record: suppress(record, date(2099, 1, 1))).checked[-1].tool
    assert gate(audit, project).code == 0
    # The same session, the same rule, but for its last day: it was in force then, and is no more.
    rewrite_session(project, lambda record: suppress(record, day + timedelta(days=5)))
    ran = gate(audit, project)
    assert ran.code == 1
    assert "suppression 'known' expired on 2026-11-06" in first(ran)
    assert re.search(rf"fail +{tool} \S+ on cuda: \d+ clean, 1 failed", first(ran))


def test_one_kernel_source_line_changed_before_a_release(project: Path, audit: Audit) -> None:
    source = project / "kernels/scalar/control.cu"
    source.write_text(source.read_text() + "// one line more\n")
    ran = gate(audit, project, "--policy", "release")
    assert ran.code == 1
    assert "fail         sources q1 on cuda" in first(ran)
    assert "kernels/scalar/control.cu has changed" in first(ran)


def rewrite_session(project: Path, change: Callable[[SanitizeRecord], SanitizeRecord]) -> SanitizeRecord:
    """Put a session that was changed, its summary made again, in the place of the retained one."""
    folder = project / newest_session().relative_to(ROOT)
    record = change(sanitize.KIND.load(folder))
    day = datetime.fromisoformat(record.started).date()
    complaints = sanitize_record.complaints(
        record.suppressions, day, tuple(tool.tool for tool in record.tools), narrowed=record.plan.pruned
    )
    summary = summarize_session(record.plan, record.checked, record.canaries, complaints, record.summary.seconds)
    shutil.rmtree(folder)
    record = msgspec.structs.replace(record, summary=summary)
    write_session(record, folder.parent).rename(folder)
    return record
