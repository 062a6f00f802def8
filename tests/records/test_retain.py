"""`audit retain`: the same evidence in a fraction of the bytes, and not a byte less trustworthy."""

from __future__ import annotations

import gzip
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from audit.errors import EvidenceError
from audit.project import Project, find_project
from audit.records import folder as folders
from audit.records import packing, sanitize
from audit.records import run as run_record
from audit.records.retain import retain
from audit.records.verify import find_records, verify

from ..conftest import Ran
from ..gate import made


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made.project(tmp_path_factory.mktemp("retain")).root


@pytest.fixture
def project(whole: Path, tmp_path: Path) -> Project:
    return find_project(Path(shutil.copytree(whole, tmp_path / "softmax")))


def homes(project: Project) -> tuple[Path, ...]:
    return (*find_records(project.root / "reports"), *find_records(project.root / "given"))


@pytest.fixture
def kept(project: Project, tmp_path: Path) -> list[Path]:
    return [retain(home, tmp_path / "kept") for home in homes(project)]


def test_it_is_the_same_evidence_in_fewer_bytes(project: Project, kept: list[Path]) -> None:
    kinds = set()
    for home, retained in zip(homes(project), kept, strict=True):
        before, after = verify(home, project), verify(retained, project)
        assert (before.verdict, before.record) == (after.verdict, after.record)
        assert after.verdict == "pass"
        kinds.add(type(after.record).__name__)
        records = [file for file in home.glob("*.json") if file.name != "statement.json"]
        assert sorted(packing.unpacked_name(file.name) for file in retained.glob("*.gz")) == sorted(
            r.name for r in records
        )
        packed = sum(file.stat().st_size for file in retained.glob("*.gz"))
        assert packed < sum(file.stat().st_size for file in records) / 2
        assert not list(retained.glob("*.html"))
        assert (retained / "statement.json").read_bytes() == (home / "statement.json").read_bytes()
    assert kinds == {"RunRecord", "SanitizeRecord"}


def test_every_reader_reads_it(project: Project, kept: list[Path], audit: Callable[..., Ran]) -> None:
    loads = {"evidence.json": run_record.KIND.load, "sanitize.json": sanitize.KIND.load}
    for home, retained in zip(homes(project), kept, strict=True):
        (name,) = [name for name in loads if (home / name).is_file()]
        assert loads[name](retained) == loads[name](home) == loads[name](retained / f"{name}.gz")
        assert find_records(retained / f"{name}.gz") == (retained,)
        page = project.root / "page.html"
        assert audit(project.root, "report", str(retained), "--output", str(page)).code == 0
        assert page.read_bytes()


def test_the_gate_takes_it_for_the_original(project: Project) -> None:
    (home,) = find_records(project.root / "reports")
    retain(home, project.root / "reports/small")
    shutil.rmtree(home)
    gate = made.judge(project)
    assert (gate.verdict, made.wrong(gate)) == ("pass", {})


def test_every_flipped_byte_is_found(project: Project, kept: list[Path]) -> None:
    """All of the first and the last bytes of a file, where gzip keeps what no content depends on; others by chance."""
    draw = random.Random(1)
    for file in (file for retained in kept for file in retained.iterdir()):
        content = bytearray(file.read_bytes())
        offsets = {*range(min(16, len(content))), *range(max(0, len(content) - 16), len(content))}
        for offset in sorted({*offsets, *(draw.randrange(len(content)) for _ in range(8))}):
            content[offset] ^= 1
            file.write_bytes(content)
            content[offset] ^= 1
            assert verify(file.parent, project).verdict == "fail", (file.name, offset)
        file.write_bytes(content)
        assert verify(file.parent, project).verdict == "pass"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda content: content[:-20], "expected one whole gzip file"),
        (lambda content: content + b"more", "expected one whole gzip file"),
        (lambda _content: b"no gzip", "cannot be unpacked"),
    ],
)
def test_what_cannot_be_unpacked_is_told(
    project: Project, kept: list[Path], change: Callable[[bytes], bytes], said: str
) -> None:
    """Sealed anew, as somebody would who wants to be believed."""
    retained = next(each for each in kept if packing.lies(each, "evidence.json"))
    file = retained / "evidence.json.gz"
    file.write_bytes(change(file.read_bytes()))
    (retained / folders.SUMS).unlink()
    (retained / folders.SUMS).write_bytes(folders.sums({each.name: each.read_bytes() for each in retained.iterdir()}))
    assert verify(retained, project).verdict == "inconclusive"
    assert said in verify(retained, project).describe()
    with pytest.raises(EvidenceError, match=said):
        run_record.KIND.load(retained)


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "SIZE_LIMIT", 1000)
    assert len(packing.unpacked("x.gz", gzip.compress(bytes(1000)), tmp_path)) == 1000
    with pytest.raises(EvidenceError, match="at most 1,000 bytes unpacked"):
        packing.unpacked("x.gz", gzip.compress(bytes(1001)), tmp_path)


def test_altered_evidence_is_not_kept_and_nothing_is_overwritten(
    project: Project, tmp_path: Path, audit: Callable[..., Ran]
) -> None:
    words = ("retain", "reports", "given", "--into", str(tmp_path / "kept"))
    first = audit(project.root, *words)
    assert first.code == 0
    assert [Path(line) for line in first.out.splitlines()] == [tmp_path / "kept" / home.name for home in homes(project)]
    again = audit(project.root, *words)
    assert again.code == 2
    assert "exists, and a record is never overwritten" in again.err
    (home,) = find_records(project.root / "reports")
    (home / "report.html").write_bytes(b"other")
    shutil.rmtree(tmp_path / "kept")
    refused = audit(project.root, *words)
    assert refused.code == 1
    assert f"not kept: {home.relative_to(project.root)}: altered" in refused.err
    assert not (tmp_path / "kept" / home.name).exists()
    assert len(refused.out.splitlines()) == len(homes(project)) - 1
