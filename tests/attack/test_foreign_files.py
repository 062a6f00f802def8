"""Evidence and captures that anyone may have written: refused with a message by every command that reads them."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from audit import foreign
from audit.capture.store import CaptureStore
from audit.errors import CaptureError, EvidenceError
from audit.foreign import MOST_DEEP, ForeignError
from audit.project import find_project
from audit.records import folder
from audit.records.kinds import load_record
from audit.records.retain import retain
from audit.records.verify import verify

from ..conftest import ROOT, Ran

DEEP = 100_000


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with one record in its runs."""
    project = tmp_path_factory.mktemp("foreign") / "softmax"
    shutil.copytree(ROOT / "tests/projects/softmax", project)
    command = [sys.executable, "-m", "audit", "run", "--axis", "n=33", "--variant", "control"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return project


@pytest.fixture
def home(whole: Path, tmp_path: Path) -> Path:
    """A copy of the record, free to be damaged."""
    made = next(each for each in (whole / "runs").iterdir() if each.is_dir())
    return Path(shutil.copytree(made, tmp_path / "records" / made.name))


def seal(home: Path) -> None:
    """Digests of what lies there now, and no statement: nothing but what a record says can be wrong."""
    (home / "statement.json").unlink(missing_ok=True)
    files = {file.name: file.read_bytes() for file in home.iterdir() if file.name != folder.SUMS}
    (home / folder.SUMS).write_bytes(folder.sums(files))


def changed(home: Path, change: Callable[[dict[str, Any]], None]) -> None:
    record = json.loads((home / "evidence.json").read_text())
    change(record)
    (home / "evidence.json").write_text(json.dumps(record))


def text(home: Path, old: str, new: str) -> None:
    raw = (home / "evidence.json").read_text()
    assert old in raw
    (home / "evidence.json").write_text(raw.replace(old, new, 1))


RECORDS: dict[str, Callable[[Path], None]] = {
    "a name twice": lambda home: text(home, '"schema":', '"schema": 4, "schema":'),
    "a verdict twice": lambda home: text(home, '"verdict": "pass"', '"verdict": "fail", "verdict": "pass"'),
    "nested lists": lambda home: text(home, '"command":', f'"x": {"[" * DEEP}{"]" * DEEP}, "command":'),
    "nested objects": lambda home: text(home, '"command":', '"x": ' + '{"a":' * DEEP + "}" * DEEP + ', "command":'),
    "brackets that never close": lambda home: (home / "evidence.json").write_text("[" * DEEP) and None,
    "NUL in a name": lambda home: changed(home, lambda record: record["plan"].update(shape="soft\0max")),
    "NUL in a path": lambda home: changed(home, sources({"k\0.cu": "0" * 64})),
    "a long path": lambda home: changed(home, sources({"k" * 5000: "0" * 64})),
    "a long name": lambda home: changed(home, lambda record: record["plan"].update(shape="s" * 100_000)),
    "bidi in a name": lambda home: changed(home, lambda record: record["plan"].update(operator="soft\u202emax")),
    "1e999": lambda home: text(home, '"seconds": ', '"seconds": 1e999, "x": '),
    "NaN": lambda home: text(home, '"seconds": ', '"seconds": NaN, "x": '),
    "half a surrogate pair": lambda home: text(home, '"command": "', '"command": "\\ud800'),
    "a byte order mark": lambda home: (home / "evidence.json").write_bytes(
        b"\xef\xbb\xbf" + (home / "evidence.json").read_bytes()
    ) and None,
    "UTF-16": lambda home: (home / "evidence.json").write_text((home / "evidence.json").read_text(), "utf-16") and None,
    "before 1970": lambda home: changed(home, lambda record: record.update(started="1969-12-31T23:59:59+00:00")),
    "the year 99999": lambda home: changed(home, lambda record: record.update(started="99999-01-01T00:00:00+00:00")),
    "no time": lambda home: changed(home, lambda record: record.update(started="yesterday")),
    "a negative count": lambda home: changed(home, lambda record: record["summary"].update(failed=-1)),
    "a negative duration": lambda home: changed(home, lambda record: record["summary"].update(seconds=-1.0)),
    "a duration without end": lambda home: changed(home, lambda record: record["summary"].update(seconds=1e300)),
    "a number of 5,000 digits": lambda home: text(home, '"passed": ', f'"passed": {"9" * 5000}, "x": '),
}  # fmt: skip


def sources(found: dict[str, str]) -> Callable[[dict[str, Any]], None]:
    """Says that the first build was made from these."""
    return lambda record: next(iter(record["builds"].values())).update(sources=found)


@pytest.mark.parametrize("name", list(RECORDS))
def test_a_malformed_record_is_refused(whole: Path, home: Path, name: str) -> None:
    RECORDS[name](home)
    seal(home)
    began = time.monotonic()
    seen = verify(home, find_project(whole))
    assert (seen.verdict, seen.record) == ("inconclusive", None)
    assert all(flaw.what.isprintable() and len(flaw.what) < 2000 for flaw in seen.flaws)
    with pytest.raises(EvidenceError):
        load_record(home)
    assert time.monotonic() - began < 2


def test_digits_of_a_bound_that_are_none(whole: Path, home: Path) -> None:
    changed(home, lambda record: record["audits"][0]["results"][0].update(measured={"bits": "zz", "text": "1"}))
    seal(home)
    assert verify(home, find_project(whole)).record is None


def fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def link(file: Path) -> None:
    target = file.parent.parent / f"target-{file.name}"
    file.rename(target)
    file.symlink_to(target)


def device(file: Path) -> None:
    file.unlink()
    file.symlink_to("/dev/zero")


def directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


def huge(file: Path) -> None:
    with file.open("ab") as stream:
        stream.truncate(1 << 32)


NOT_PLAIN = {"FIFO": fifo, "link": link, "device": device, "directory": directory, "huge": huge}


@pytest.mark.parametrize("name", [folder.SUMS, "evidence.json", "plan.json", "statement.json"])
@pytest.mark.parametrize("kind", list(NOT_PLAIN))
def test_what_is_no_plain_file_is_refused(whole: Path, home: Path, tmp_path: Path, name: str, kind: str) -> None:
    NOT_PLAIN[kind](home / name)
    began = time.monotonic()
    seen = verify(home, find_project(whole))
    assert seen.verdict != "pass"
    assert seen.record is None
    for read in (load_record, lambda home: retain(home, tmp_path / "kept")):
        with pytest.raises(EvidenceError):
            read(home)
    assert time.monotonic() - began < 2


@pytest.mark.parametrize(
    "lines", [b"x" * 2_000_000, b"0" * 64 + b"  a\x1bb\n", b"0" * 64 + b"  " + b"a" * 5000 + b"\n", b"\xff", b"", b"\n"]
)
def test_a_list_of_digests_that_is_none(whole: Path, home: Path, lines: bytes) -> None:
    (home / folder.SUMS).write_bytes(lines)
    assert verify(home, find_project(whole)).record is None


def test_one_content_under_two_names(whole: Path, home: Path) -> None:
    (home / "evidence.json.gz").write_bytes(gzip.compress(b"{}"))
    seal(home)
    seen = verify(home, find_project(whole))
    assert seen.record is None
    assert "each file once" in seen.describe()


def test_a_bomb_is_not_unpacked(whole: Path, home: Path) -> None:
    (home / "evidence.json").unlink()
    (home / "evidence.json.gz").write_bytes(gzip.compress(bytes(1 << 29), 1))
    seal(home)
    assert verify(home, find_project(whole)).record is None


@pytest.mark.parametrize("command", ["verify", "report", "diff", "gate", "retain"])
@pytest.mark.parametrize("name", ["FIFO", "nested lists", "NUL in a path"])
def test_every_command_refuses_it(
    whole: Path, home: Path, tmp_path: Path, audit: Callable[..., Ran], command: str, name: str
) -> None:
    if name == "FIFO":
        fifo(home / folder.SUMS)
    else:
        RECORDS[name](home)
        seal(home)
    given = {
        "verify": [home], "report": [home, "-o", tmp_path / "p.html"], "diff": [home, home],
        "gate": ["--no-run", "--evidence", home], "retain": [home, "--into", tmp_path / "kept"],
    }[command]  # fmt: skip
    settings = (whole / "pyproject.toml").read_text()
    rule = (
        '[[tool.kernel-audit.gate.everyday.audits]]\nshapes = ["softmax"]\naxes = {n = [33]}\nvariants = ["control"]\n'
    )
    if "gate" not in settings:
        (whole / "pyproject.toml").write_text(f"{settings}\n{rule}")
    ran = audit(whole, command, *map(str, given))
    assert ran.code in ((1,) if command == "retain" else (1, 2, 3))
    assert "Traceback" not in ran.err
    assert "a bug in kernel-audit" not in ran.err
    assert str(home) in ran.out + ran.err or command == "gate"


MANIFESTS: dict[str, Callable[[str], str]] = {
    "a name twice": lambda raw: raw.replace('"version"', '"version": 1, "version"', 1),
    "nested": lambda raw: raw.replace('"rules": {', '"rules": {"x": ' + "[" * DEEP + "]" * DEEP + ", ", 1),
    "NUL": lambda raw: raw.replace('"rules": {', '"rules": {"x\\u0000": "y", ', 1),
    "1e999": lambda raw: re.sub(r'"attention_error": [^,]+', '"attention_error": 1e999', raw, count=1),
}


@pytest.mark.parametrize("name", list(MANIFESTS))
def test_a_malformed_manifest_is_refused(tmp_path: Path, name: str) -> None:
    made = shutil.copytree(ROOT / "fixtures/captures/smollm2-135m", tmp_path / "smollm2-135m")
    raw = (made / "manifest.json").read_text()
    assert MANIFESTS[name](raw) != raw
    (made / "manifest.json").write_text(MANIFESTS[name](raw))
    with pytest.raises(CaptureError, match=r"manifest\.json") as refusal:
        CaptureStore(tmp_path).list()
    assert str(refusal.value).isprintable()


@pytest.mark.parametrize("words", [("list",), ("run", "--shape", "q1", "--capture", "all")])
@pytest.mark.parametrize("kind", ["FIFO", "link"])
def test_commands_refuse_a_manifest_that_is_no_file(
    own_project: Path, audit: Callable[..., Ran], words: tuple[str, ...], kind: str
) -> None:
    NOT_PLAIN[kind](own_project / "fixtures/captures/smollm2-135m/manifest.json")
    ran = audit(own_project, *words)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)
    assert "manifest.json" in ran.err


def test_a_tensor_named_twice_is_refused(tmp_path: Path) -> None:
    from audit.capture.tensorfile import open_inside, read_header

    entry = '{"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}'
    header = f'{{"a": {entry}, "a": {entry}}}'.encode()
    (tmp_path / "x").write_bytes(len(header).to_bytes(8, "little") + header + b"\0")
    with open_inside(tmp_path, "x", 1 << 20) as stream, pytest.raises(CaptureError, match="'a' is there twice"):
        read_header(stream, "x")


def test_depth_and_size_are_bounded_exactly() -> None:
    deep = b"[" * MOST_DEEP + b"]" * MOST_DEEP
    assert foreign.decode(deep, list[Any])  # type: ignore[arg-type]
    with pytest.raises(ForeignError, match="levels"):
        foreign.decode(b"[" + deep + b"]", list[Any])  # type: ignore[arg-type]
    with pytest.raises(ForeignError, match="at most 10 bytes"):
        foreign.decode(b'"1234567890"', str, limit=10)
    brackets = msgspec.json.encode({"a": '[{"\\' * 1000, '"]': ["}"]})
    assert foreign.decode(brackets, dict[str, Any])["a"] == '[{"\\' * 1000  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "content", [b"a = " + b"[" * DEEP, b"a = " + b"9" * 5000, b"a = 1\na = 2", b"\xff", b"a = 0000-00-00"]
)
def test_toml_that_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.toml").write_bytes(content)
    with pytest.raises(ForeignError, match="malformed TOML"):
        foreign.read_toml(tmp_path / "x.toml")
    with pytest.raises(ForeignError, match="plain file"):
        foreign.read_toml(Path("/dev/zero"))
