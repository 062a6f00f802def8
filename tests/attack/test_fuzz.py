"""Every reader of files that anyone may have written, over damaged files: it returns or raises AuditError, within 2 s.

With `--full` each reader takes 10,000 files; without, a sample.
"""

from __future__ import annotations

import contextlib
import gzip
import itertools
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from audit import faults
from audit.backends import child
from audit.bench.curve import compare_with_curve, curve_of, load_curve
from audit.capture import manifest
from audit.capture.recipe import read_recipe
from audit.capture.tensorfile import open_inside, read_header, serialise
from audit.compile.frozen import IDENTITY, PROGRAM, load_frozen
from audit.compile.identity import BuildIdentity, fnv1a64, sha256
from audit.errors import AuditError
from audit.gate.baseline import load_baseline
from audit.gate.policy import load_policy, policy_names
from audit.gate.run import gate
from audit.project import Project, find_project
from audit.records import bench as benches
from audit.records import folder, packing
from audit.records.kind import PLAN, taken_as_written
from audit.records.kinds import kind_in, load_record
from audit.records.statement import STATEMENT
from audit.records.verify import verify
from audit.report import pages
from audit.report.comparison import compare_records, render_comparison
from audit.report.index import entries
from audit.sanitize import suppressions
from audit.sanitize.device.compute_sanitizer import observe_tool_output

from ..bench.records import bench, pair, point
from ..conftest import ROOT, full_run
from ..sanitize.device import recordings as device
from ..sanitize.host import recordings as host
from .damage import damaged

EXAMPLES = 10_000 if full_run() else 200
FUZZ = settings(
    max_examples=EXAMPLES, deadline=2000, derandomize=not full_run(), database=None, print_blob=False,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
seeds = st.integers(0, 2**64)
SET = ROOT / "fixtures/captures/smollm2-135m"
SETTINGS = """
[tool.kernel-audit]
faults = "faults"
suppressions = [
  {name = "a", tool = "racecheck", kind = "race", where = "k.cu:4", reason = "known", expires = 2027-01-31}
]

[tool.kernel-audit.gate]
baseline = "gate.toml"

[tool.kernel-audit.gate.everyday]
stale = "warn"
retained = ["reports"]

[[tool.kernel-audit.gate.everyday.audits]]
shapes = ["softmax"]
axes = {n = [1, 33]}
minimum = {cases = 1}

[[tool.kernel-audit.gate.everyday.sanitizers]]
shapes = ["softmax"]
tools = ["memcheck"]

[tool.kernel-audit.gate.release]
like = "everyday"
"""
BASELINE = b"""[[accepted]]
fingerprint = "0123456789abcdef"
check = "bytes"
variant = "fast"
case = "softmax/seed1/rows=7,n=33"
found = "it differs"
reason = "known"
expires = 2027-01-31
"""
REPORT = b"identity 0123456789abcdef\nstep live\nlaunch 0 splits<6, 256> 4 128\nstep restore\nlaunch 0 k 4 128\ndone\n"


class Reader(NamedTuple):
    """A file as it should be, and what reads it."""

    content: bytes
    read: Callable[[bytes], Any]


def check(reader: Reader, seed: int) -> None:
    """The property."""
    with contextlib.suppress(AuditError):
        reader.read(damaged(reader.content, seed))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with settings of all kinds."""
    made = Path(shutil.copytree(ROOT / "tests/projects/softmax", tmp_path_factory.mktemp("fuzz") / "softmax"))
    (made / "pyproject.toml").write_text(SETTINGS)
    (made / "gate.toml").write_bytes(BASELINE)
    (made / "faults").mkdir()
    return made


@pytest.fixture
def project(made: Path) -> Project:
    (made / "gate.toml").write_bytes(BASELINE)  # a test of its reader may have left another
    return find_project(made)


def written(file: Path, read: Callable[[Path], Any]) -> Callable[[bytes], Any]:
    """A reader of a file on disk."""

    def with_content(content: bytes) -> Any:
        file.write_bytes(content)
        return read(file)

    return with_content


def headers(file: Path) -> None:
    with open_inside(file.parent, file.name, 1 << 30) as stream:
        found = read_header(stream, file.name)
        for name in found.entries:
            found.read(name)


def policies(file: Path) -> None:
    project = find_project(file.parent)
    suppressions.declared(project)
    for name in policy_names(project):
        load_policy(project, name)
    load_baseline(project)


def plain_readers(made: Path, project: Project) -> dict[str, Reader]:
    """All that need no record."""
    small, _ = serialise({"a": ("F16", (2, 3), bytes(12)), "b": ("U8", (5,), bytes(5))})
    frozen = made / "frozen"
    frozen.mkdir(exist_ok=True)
    (frozen / PROGRAM).write_bytes(b"\x7fELF")
    (frozen / PROGRAM).chmod(0o755)
    program = (frozen / PROGRAM).read_bytes()
    build = msgspec.json.encode(
        BuildIdentity("host", "sm_90", "0", "k.cu", {"k.cu": "0"}, ("k",), "g++", (), sha256(program), fnv1a64(program))
    )
    fault = (ROOT / "fixtures/faults/accumulator_of_last_launch.toml").read_bytes()
    return {
        "manifest": Reader(
            (SET / "manifest.json").read_bytes(), lambda raw: manifest.decode_manifest(raw, "m", "smollm2-135m")
        ),
        "safetensors": Reader(small, written(made / "x.safetensors", headers)),
        "recipe": Reader((SET / "recipe.toml").read_bytes(), written(made / "recipe.toml", read_recipe)),
        "settings": Reader(SETTINGS.encode(), written(made / "settings/pyproject.toml", policies)),
        "baseline": Reader(BASELINE, written(made / "gate.toml", lambda _: load_baseline(project))),
        "fault": Reader(fault, written(made / "faults/fault.toml", lambda file: faults.load_faults(file.parent))),
        "frozen": Reader(build, written(frozen / IDENTITY, lambda _: load_frozen(made, "frozen", ["k"]))),
        "report": Reader(REPORT, written(made / "report.txt", understood)),
        "sums": Reader(folder.sums({"evidence.json": b"", "plan.json": b""}), written(made / "s/SHA256SUMS", listed)),
        "gzip": Reader(gzip.compress(b"{}" * 99, mtime=0), lambda raw: packing.unpacked("a.gz", raw, made)),
    }


def understood(file: Path) -> None:
    for code in (0, 1, -11, -63, 134):
        child.understood(code, child.reported(file), "\N{REPLACEMENT CHARACTER}\n", {}, 1.0)


def listed(file: Path) -> None:
    folder.listed(file.parent)


NAMES = ("manifest", "safetensors", "recipe", "settings", "baseline", "fault", "frozen", "report", "sums", "gzip")


@pytest.mark.parametrize("name", NAMES)
def test_plain_files(made: Path, project: Project, name: str) -> None:
    (made / "settings").mkdir(exist_ok=True)
    (made / "s").mkdir(exist_ok=True)
    (made / "settings/gate.toml").write_bytes(BASELINE)
    shutil.copytree(made / "kernels", made / "settings/kernels", dirs_exist_ok=True)
    reader = plain_readers(made, project)[name]
    reader.read(reader.content)

    @FUZZ
    @given(seeds)
    def run(seed: int) -> None:
        check(reader, seed)

    run()


@pytest.mark.parametrize("name", host.NAMES if full_run() else host.NAMES[:: max(1, len(host.NAMES) // 6)])
def test_logs_of_host_sanitizers(name: str) -> None:
    recorded = host.host_recording(name)
    report = "\n".join(recorded.run.report).encode()

    @settings(FUZZ, max_examples=max(20, EXAMPLES // 6))
    @given(seeds)
    def run(seed: int) -> None:
        recorded.observed(log=damaged(recorded.run.log.encode(), seed).decode(errors="replace"))
        recorded.observed(report=tuple(damaged(report, seed).decode(errors="replace").splitlines()))

    run()


@pytest.mark.parametrize("name", device.NAMES if full_run() else device.NAMES[:: max(1, len(device.NAMES) // 6)])
def test_logs_of_compute_sanitizer(name: str) -> None:
    recorded = device.recording(name)
    log, xml = ((text or "").encode() for text in (recorded.left.log, recorded.left.xml))

    @settings(FUZZ, max_examples=max(20, EXAMPLES // 6))
    @given(seeds)
    def run(seed: int) -> None:
        for changed in (
            {"log": damaged(log, seed).decode(errors="replace")},
            {"xml": damaged(xml, seed).decode(errors="replace")},
            {"report": tuple(damaged(REPORT, seed).decode(errors="replace").splitlines())},
        ):
            left = msgspec.structs.replace(recorded.left, **changed)
            observe_tool_output(recorded.tool, ["recorded"], ["k", "kernel"], device.SOURCES, left)

    run()


@pytest.fixture(scope="module")
def kept(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record of each kind."""
    runs = tmp_path_factory.mktemp("kept")
    for words in (["run", "--axis", "n=33"], ["sanitize", "--tool", "synccheck"]):
        command = [sys.executable, "-m", "audit", *words, "--project", made, "--out", runs]
        subprocess.run(command, capture_output=True, check=False)
    survey = [sys.executable, "-m", "audit", "survey", "--project", made, "--out", runs]
    subprocess.run(survey, capture_output=True, check=False)
    record = bench(point(1024, pair("fast")), point(2048, pair("fast")))
    benches.draft(runs, "softmax").finish(record, {benches.CURVE: folder.encode(curve_of(record))})
    return runs


@pytest.mark.parametrize("which", ["curve.json", "bench.json"])
def test_a_bench_beside_a_frozen_curve(kept: Path, tmp_path: Path, which: str) -> None:
    """Every pair that is read is compared, whatever its figures are."""
    home = next(each for each in kept.iterdir() if (each / "bench.json").is_file())
    contents = {name: (home / name).read_bytes() for name in ("curve.json", "bench.json")}
    file = tmp_path / "curve.json"

    def read(content: bytes) -> None:
        both = {**contents, which: content}
        file.write_bytes(both["curve.json"])
        record = benches.KIND.decode(both["bench.json"], home)
        with taken_as_written(home):
            compare_with_curve(load_curve(file), record)
            curve_of(record)

    read(contents[which])

    @FUZZ
    @given(seeds)
    def run(seed: int) -> None:
        check(Reader(contents[which], read), seed)

    run()


@pytest.mark.parametrize(
    ("kind", "file"),
    [
        ("evidence.json", "evidence.json"), ("evidence.json", PLAN), ("evidence.json", STATEMENT),
        ("sanitize.json", "sanitize.json"), ("sanitize.json", PLAN),
        ("bench.json", "bench.json"), ("bench.json", "curve.json"), ("survey.json", "survey.json"),
    ],
)  # fmt: skip
def test_records(kept: Path, project: Project, tmp_path: Path, kind: str, file: str) -> None:
    home = next(each for each in kept.iterdir() if (each / kind).is_file())
    files = {name: (home / name).read_bytes() for name in folder.listed(home) if not name.endswith(".html")}
    whole = load_record(home)
    numbers = itertools.count()

    def read(content: bytes) -> None:
        home = tmp_path / str(next(numbers)) / "x"
        home.mkdir(parents=True)
        damaged_files = {**files, file: content}
        if file != STATEMENT:  # which would say that another file was altered
            damaged_files.pop(STATEMENT, None)
        for name, each in {**damaged_files, folder.SUMS: folder.sums(damaged_files)}.items():
            (home / name).write_bytes(each)
        try:
            verify(home, project)
            gate(project, "everyday", given=[home], may_run=False)
            with taken_as_written(home):
                entries(home.parent, project)
            record, unpacked = kind_in(home).read(home)
            with taken_as_written(home):
                render_comparison(compare_records(record, whole, ("a", "b")))
                pages(record, unpacked, project)
        finally:
            shutil.rmtree(home.parent)

    read(files[file])

    @settings(FUZZ, max_examples=EXAMPLES if full_run() else 150)
    @given(seeds)
    def run(seed: int) -> None:
        check(Reader(files[file], read), seed)

    run()
