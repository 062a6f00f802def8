"""`audit verify`: any flipped byte is found, parts that do not agree are told, and what is stale is named."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from audit.checks.result import Result
from audit.project import Project, find_project
from audit.records import bench as bench_record
from audit.records import folder as folders
from audit.records import run as run_record
from audit.records import sanitize
from audit.records.bench import BenchRecord
from audit.records.run import RunRecord
from audit.records.sanitize import SanitizeRecord
from audit.records.verify import find_records, verify

from ..bench.records import bench, pair, point
from ..conftest import Ran
from ..gate import made

FILES = ("plan.json", "evidence.json", "SHA256SUMS", "report.html", "statement.json")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made.project(tmp_path_factory.mktemp("verify")).root


@pytest.fixture
def project(whole: Path, tmp_path: Path) -> Project:
    return find_project(Path(shutil.copytree(whole, tmp_path / "softmax")))


def audit_in(project: Project) -> Path:
    (file,) = (project.root / "reports").glob("*/evidence.json")
    return file.parent


def session_in(project: Project) -> Path:
    (file,) = (project.root / "given").glob("*/sanitize.json")
    return file.parent


def sealed(folder: Path, **files: bytes) -> None:
    """Write the files and the sums anew, as somebody would who wants to be believed."""
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_bytes(content)
    (folder / folders.SUMS).unlink()
    (folder / folders.SUMS).write_bytes(folders.sums({file.name: file.read_bytes() for file in folder.iterdir()}))


def kinds(folder: Path, project: Project) -> set[str]:
    return {flaw.kind for flaw in verify(folder, project).flaws}


def test_whole_evidence_passes(project: Project) -> None:
    for folder in (audit_in(project), session_in(project)):
        found = verify(folder, project)
        assert (found.verdict, found.flaws, found.sound) == ("pass", (), True)
        assert verify(next(folder.glob("*e.json")), project).path == folder


@pytest.mark.parametrize("name", FILES)
def test_any_flipped_byte_is_found(project: Project, name: str) -> None:
    """One byte in each of 24 regions of the file, and a bit of each kind."""
    folder = audit_in(project)
    original = (folder / name).read_bytes()
    draw = random.Random(name)
    size = max(1, len(original) // 24)
    for start in range(0, len(original), size):
        at = min(start + draw.randrange(size), len(original) - 1)
        (folder / name).write_bytes(original[:at] + bytes([original[at] ^ 1 << draw.randrange(8)]) + original[at + 1 :])
        assert verify(folder, project).verdict == "fail", f"byte {at} of {name}"
    (folder / name).write_bytes(original)
    assert verify(folder, project).verdict == "pass"


def test_every_bit_of_the_sums_is_found(project: Project) -> None:
    """Also where a line break becomes another one."""
    folder = audit_in(project)
    original = (folder / "SHA256SUMS").read_bytes()
    for at in range(len(original)):
        for bit in range(8):
            (folder / "SHA256SUMS").write_bytes(original[:at] + bytes([original[at] ^ 1 << bit]) + original[at + 1 :])
            assert verify(folder, project).verdict == "fail", (at, bit)


def test_lines_of_the_sums_in_another_order_are_found(project: Project) -> None:
    folder = audit_in(project)
    lines = (folder / "SHA256SUMS").read_text().splitlines(keepends=True)
    (folder / "SHA256SUMS").write_text("".join(reversed(lines)))
    assert kinds(folder, project) == {"altered"}


@pytest.mark.parametrize("name", [name for name in FILES if name != "SHA256SUMS"])
def test_a_missing_file_is_not_whole(project: Project, name: str) -> None:
    folder = audit_in(project)
    (folder / name).unlink()
    assert (kinds(folder, project), verify(folder, project).verdict) == ({"not whole"}, "inconclusive")


def test_a_file_and_its_line_taken_away_are_missed(project: Project) -> None:
    folder = audit_in(project)
    (folder / "plan.json").unlink()
    sealed(folder)
    assert kinds(folder, project) == {"not whole"}


def test_a_page_and_its_line_may_be_taken_away(project: Project) -> None:
    folder = audit_in(project)
    (folder / "report.html").unlink()
    sealed(folder)
    assert kinds(folder, project) == set()


def test_a_file_that_nobody_lists_is_told_but_a_signature_is_not(project: Project) -> None:
    folder = audit_in(project)
    (folder / "statement.json.sigstore.json").write_text("{}")
    assert verify(folder, project).verdict == "pass"
    (folder / "more.json").write_text("{}")
    assert kinds(folder, project) == {"altered"}


def test_a_partial_folder_is_not_whole(project: Project) -> None:
    folder = audit_in(project)
    partial = folder.rename(folder.parent / f".{folder.name}.partial")
    assert kinds(partial, project) == {"not whole"}
    assert find_records(folder.parent) == (folder.parent,)
    assert kinds(folder.parent, project) == {"not whole"}


@pytest.mark.parametrize("change", [{"schema": 99}, {"colour": "green"}])
def test_an_unknown_schema_is_inconclusive(project: Project, change: dict[str, object]) -> None:
    folder = audit_in(project)
    record = {**json.loads((folder / "evidence.json").read_bytes()), **change}
    sealed(folder, evidence_json=json.dumps(record).encode())
    assert (kinds(folder, project), verify(folder, project).verdict) == ({"not whole"}, "inconclusive")


def drop_case(evidence: RunRecord) -> RunRecord:
    plan = msgspec.structs.replace(evidence.plan, cases=evidence.plan.cases[1:])
    return msgspec.structs.replace(evidence, plan=plan)


def drop_audit(evidence: RunRecord) -> RunRecord:
    return msgspec.structs.replace(evidence, audits=evidence.audits[1:])


def another_verdict(evidence: RunRecord) -> RunRecord:
    failed = msgspec.structs.replace(
        evidence.audits[0], results=(*evidence.audits[0].results, Result("bytes", "fail", "differs"))
    )
    return msgspec.structs.replace(evidence, audits=(failed, *evidence.audits[1:]))


def other_counts(evidence: RunRecord) -> RunRecord:
    return msgspec.structs.replace(evidence, summary=msgspec.structs.replace(evidence.summary, passed=5))


def no_builds(evidence: RunRecord) -> RunRecord:
    return msgspec.structs.replace(evidence, builds={})


def unseen_mutation(evidence: RunRecord) -> RunRecord:
    return msgspec.structs.replace(
        evidence, exposures=tuple(msgspec.structs.replace(one, caught_by=()) for one in evidence.exposures)
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (drop_case, "plan.json differs from the plan in the record"),
        (drop_audit, "summary: verdict is recorded as 'pass', but the results give 'inconclusive'"),
        (another_verdict, "recorded as pass, but its checks give fail"),
        (other_counts, "summary: passed is recorded as 5, but the results give 4"),
        (no_builds, "its build"),
        (unseen_mutation, "summary: vacuous"),
    ],
)
def test_parts_that_do_not_agree(project: Project, change: Callable[[RunRecord], RunRecord], words: str) -> None:
    folder = audit_in(project)
    sealed(folder, evidence_json=folders.encode(change(run_record.KIND.load(folder))))
    found = verify(folder, project)
    assert found.verdict == "fail"
    assert any(flaw.kind == "contradictory" and words in flaw.what for flaw in found.flaws)
    assert not found.sound


def test_a_statement_about_another_record_contradicts(project: Project) -> None:
    folder = audit_in(project)
    statement = json.loads((folder / "statement.json").read_bytes())
    statement["subject"][0]["digest"]["sha256"] = "0" * 64
    sealed(folder, statement_json=json.dumps(statement).encode())
    assert kinds(folder, project) == {"contradictory"}


def change_session(folder: Path, **changes: object) -> None:
    record = msgspec.structs.replace(sanitize.KIND.load(folder), **changes)
    sealed(folder, sanitize_json=folders.encode(record))


def test_a_session_that_does_not_agree(project: Project) -> None:
    folder = session_in(project)
    good: SanitizeRecord = sanitize.KIND.load(folder)
    change_session(folder, canaries=())
    assert "no canary of synccheck" in verify(folder, project).describe()
    missed = tuple(msgspec.structs.replace(one, launches=1) for one in good.checked)
    change_session(folder, canaries=good.canaries, checked=missed)
    assert "1 of 2 launches completed" in verify(folder, project).describe()
    change_session(folder, checked=tuple(msgspec.structs.replace(one, findings=(made.RACE,)) for one in good.checked))
    assert "1 findings that are not suppressed" in verify(folder, project).describe()
    change_session(folder, checked=good.checked[1:])
    assert kinds(folder, project) >= {"contradictory", "not whole"}
    change_session(folder, checked=good.checked)
    assert verify(folder, project).verdict == "pass"


def test_evidence_without_a_statement_is_that_of_an_older_version(project: Project) -> None:
    for folder in (audit_in(project), session_in(project)):
        (folder / "statement.json").unlink()
        sealed(folder)
        assert verify(folder, project).verdict == "pass"


@pytest.fixture
def benched() -> BenchRecord:
    return bench(point(1024, pair(a="fast", b="fast")))


def test_a_bench(project: Project, benched: BenchRecord, tmp_path: Path) -> None:
    folder = bench_record.draft(tmp_path / "runs", "q6").finish(benched, {})
    found = verify(folder, project)
    assert next(flaw.what for flaw in found.flaws) == "kernels/q.cu is gone"
    checked = (msgspec.structs.replace(benched.checked[0], differing=3),)
    sealed(folder, bench_json=folders.encode(msgspec.structs.replace(benched, checked=checked)))
    assert "timed, although 3 bytes of fast differ" in verify(folder, project).describe()
    (point_,) = benched.points
    short = msgspec.structs.replace(point_, pairs=(pair(a="fast", b="fast", b_ms=(0.5,)),))
    sealed(folder, bench_json=folders.encode(msgspec.structs.replace(benched, points=(short,))))
    assert "expected 5 trials" in verify(folder, project).describe()


def test_a_changed_source_is_stale_and_named(project: Project, audit: Callable[..., Ran]) -> None:
    source = project.root / "kernels/fast.cu"
    source.write_text(source.read_text() + "\n")
    found = verify(audit_in(project), project)
    assert (found.verdict, found.sound) == ("inconclusive", True)
    assert [(flaw.kind, flaw.what) for flaw in found.flaws] == [("stale", "kernels/fast.cu has changed")]
    assert [key.partition("-")[0] for key in found.stale.builds] == ["fast"]
    ran = audit(project.root, "verify", "reports")
    assert ran.code == 3
    assert "stale: kernels/fast.cu has changed" in ran.out
    source.unlink()
    assert [flaw.what for flaw in verify(audit_in(project), project).flaws] == ["kernels/fast.cu is gone"]


def test_the_command_tells_each_folder(project: Project, audit: Callable[..., Ran]) -> None:
    ran = audit(project.root, "verify", "reports", "given")
    assert (ran.code, ran.out.count("ok ")) == (0, 3)
    folder = audit_in(project)
    (folder / "report.html").write_text("<p>another")
    ran = audit(project.root, "verify", ".", "--json")
    assert ran.code == 1
    assert ran.json["verdict"] == "fail"
    assert {one["verdict"] for one in ran.json["evidence"]} == {"fail", "pass"}
    assert audit(project.root, "verify", "nowhere").code == 2
    (project.root / "empty").mkdir()
    assert audit(project.root, "verify", "empty").code == 3
