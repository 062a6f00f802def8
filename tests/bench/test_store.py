"""A bench on disk: whole or not there, any change found, rendered again from its folder alone."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from audit.bench import curve
from audit.errors import EvidenceError
from audit.records import bench as store
from audit.records.bench import BenchRecord
from audit.records.folder import encode
from audit.report.bench_page import render_bench

from ..conftest import Ran
from .records import bench, pair, point


@pytest.fixture
def record() -> BenchRecord:
    return bench(point(1024, pair()), point(5120, pair(b_ms=(0.6,) * 5)))


@pytest.fixture
def folder(tmp_path: Path, record: BenchRecord) -> Path:
    return store.draft(tmp_path / "runs", "q6").finish(
        record, {"report.html": render_bench(record).encode(), "curve.json": encode(curve.curve_of(record))}
    )


def test_what_was_written_can_be_read(folder: Path, record: BenchRecord) -> None:
    assert folder.name.split("-")[1:3] == ["bench", "q6"]
    assert sorted(file.name for file in folder.iterdir()) == [
        "SHA256SUMS", "bench.json", "curve.json", "report.html", "statement.json"
    ]  # fmt: skip
    for path in (folder, folder / "bench.json"):
        found, files = store.KIND.read(path)
        assert found == store.KIND.load(path) == record
        assert curve.decode_curve(files["curve.json"], path) == curve.curve_of(record)
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=folder, check=True, capture_output=True)


def test_a_bench_needs_no_curve(tmp_path: Path, record: BenchRecord) -> None:
    assert store.KIND.load(store.draft(tmp_path, "q6").finish(record, {})) == record


def test_an_unfinished_bench_is_none(tmp_path: Path) -> None:
    draft = store.draft(tmp_path, "q6")
    assert list(tmp_path.iterdir()) == [draft.folder]
    with pytest.raises(EvidenceError, match="did not finish"):
        store.KIND.load(draft.folder)


@pytest.mark.parametrize("name", ["bench.json", "curve.json", "report.html"])
def test_any_changed_byte_is_found(folder: Path, name: str) -> None:
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(EvidenceError, match="was altered"):
        store.KIND.load(folder)


@pytest.mark.parametrize("name", ["bench.json", "SHA256SUMS"])
def test_a_missing_file_is_found(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(EvidenceError):
        store.KIND.load(folder)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": 99}, "expected schema 4, but got 99"),
        ({"colour": "green"}, "unknown field `colour`"),
        ({"kind": "audit"}, "kind"),
        ({"points": [{"context": 1024}]}, "missing required field"),
    ],
)
def test_foreign_records_are_refused(folder: Path, change: dict[str, object], words: str) -> None:
    """Refused for what they say, though every sum is right."""
    raw = json.dumps({**json.loads((folder / "bench.json").read_bytes()), **change}).encode()
    (folder / "bench.json").write_bytes(raw)
    sums = (folder / "SHA256SUMS").read_text().splitlines()
    digest = hashlib.sha256(raw).hexdigest()
    lines = [f"{digest}  bench.json" if line.endswith("bench.json") else line for line in sums]
    (folder / "SHA256SUMS").write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(EvidenceError, match=words):
        store.KIND.load(folder)


def test_the_report_command_knows_both_kinds(
    softmax_project: Path, audit: Callable[..., Ran], record: BenchRecord, tmp_path: Path
) -> None:
    frozen = curve.curve_of(record)
    page = render_bench(record, curve.compare_with_curve(frozen, record))
    ran = audit(softmax_project, "run", "--shape", "softmax", "--variant", "fast", "--json")
    made = store.draft(softmax_project / "runs", "q6").finish(
        record, {"report.html": page.encode(), "curve.json": encode(frozen)}
    )
    newest = max(made, Path(ran.json["evidence"]))
    assert audit(softmax_project, "report").out.strip() == str(newest / "report.html")
    for folder, first in ((made, "Bench — q6"), (Path(ran.json["evidence"]), "Pass — softmax")):
        again = tmp_path / "again.html"
        assert audit(softmax_project, "report", str(folder), "-o", str(again)).code == 0
        assert first in again.read_text(encoding="utf-8")
        assert again.read_bytes() == (folder / "report.html").read_bytes()
    (made / "bench.json").write_bytes(b"{}")
    damaged = audit(softmax_project, "report", str(made))
    assert (damaged.code, damaged.out) == (2, "")
    assert "was altered" in damaged.err


def test_a_bench_is_found_when_it_is_the_newest(
    softmax_project: Path, audit: Callable[..., Ran], record: BenchRecord
) -> None:
    made = store.draft(softmax_project / "runs", "q6").finish(record, {"report.html": b"page"})
    assert audit(softmax_project, "report").out.strip() == str(made / "report.html")


def test_malformed_times_are_the_users_to_mend(
    softmax_project: Path, audit: Callable[..., Ran], record: BenchRecord, tmp_path: Path
) -> None:
    broken = msgspec.structs.replace(record, points=(point(1024, pair(b_ms=())),))
    made = store.draft(softmax_project / "runs", "q6").finish(broken, {"report.html": b"page"})
    ran = audit(softmax_project, "report", str(made), "-o", str(tmp_path / "page.html"))
    assert ran.code == 2
    assert "equally many positive times" in ran.err
