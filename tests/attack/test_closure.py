"""A record is stale when anything that decided its verdict has changed, says what, and is not stale otherwise."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from audit.project import find_project
from audit.project_reads import collected_in_a_case, while_a_hook_runs
from audit.records.closure import python_sources
from audit.records.run import KIND
from audit.records.verify import verify

from ..conftest import Ran

Audit = Callable[..., Ran]
LAUNCHES = ("launches of control", "launches of fast")


@pytest.fixture
def project(softmax_project: Path) -> Path:
    """The softmax project, whose inputs read a table and whose bound lies in a module of its own."""
    source = softmax_project / "kernels/softmax.py"
    text = source.read_text()
    text = text.replace('"x": rng.normal(0, 3, (c.rows, c.n))', '"x": rng.normal(0, scale(), (c.rows, c.n))')
    text = text.replace('bounds=[RelL2("y", 1e-6)]', "bounds=[LIMIT]")
    scale = "def scale():\n    return float((Path(__file__).parents[1] / 'scale.txt').read_text())\n"
    (softmax_project / "kernels/tables.py").write_text(f"from pathlib import Path\n\n\n{scale}")
    (softmax_project / "kernels/limits.py").write_text('from audit import RelL2\n\nLIMIT = RelL2("y", 1e-6)\n')
    (softmax_project / "kernels/unrelated.py").write_text("# nothing imports this\n")
    (softmax_project / "scale.txt").write_text("3")
    source.write_text(f"from .limits import LIMIT\nfrom .tables import scale\n{text}")
    return softmax_project


@pytest.fixture
def record(project: Path, audit: Audit) -> Path:
    ran = audit(project, "run", "--axis", "n=33", "--variant", "fast", "--json")
    assert ran.code == 0, ran.out + ran.err
    return Path(ran.json["evidence"])


def stale(record: Path, project: Path) -> dict[str, str]:
    return verify(record, find_project(project)).stale.closure


def test_nothing_changed_is_nothing_stale(project: Path, record: Path) -> None:
    assert verify(record, find_project(project)).verdict == "pass"
    closure = KIND.load(record).closure
    assert closure is not None
    assert closure.python.keys() == {"kernels/limits.py", "kernels/softmax.py", "kernels/tables.py"}
    assert closure.opened.keys() == {"scale.txt"}


@pytest.mark.parametrize(
    ("file", "old", "new", "parts"),
    [
        ("kernels/softmax.py", "(128,)", "(64,)", LAUNCHES),
        ("kernels/softmax.py", '0, ("x"', '64, ("x"', LAUNCHES),  # its shared memory
        ("kernels/softmax.py", "x.max(axis=-1", "x.min(axis=-1", ()),  # a reference
        ("kernels/softmax.py", '"fast", "control"', '"fast"', ("parent of fast",)),
        ("kernels/limits.py", "1e-6", "1e-3", ("bound rel_l2(y)",)),  # in another module
        ("kernels/tables.py", "float(", "2 * float(", ()),  # inputs in another module
        ("scale.txt", "3", "4", ()),  # a file that inputs read
    ],
)
def test_whatever_decides_makes_it_stale_and_is_named(
    project: Path, record: Path, file: str, old: str, new: str, parts: tuple[str, ...]
) -> None:
    text = (project / file).read_text()
    assert old in text
    (project / file).write_text(text.replace(old, new))
    found = stale(record, project)
    assert found.pop(file) == "has changed"
    assert tuple(found) == parts


def test_an_unrelated_file_makes_nothing_stale(project: Path, record: Path) -> None:
    (project / "kernels/unrelated.py").write_text("# another comment\n")
    (project / "kernels/new.py").write_text("")
    assert stale(record, project) == {}


def test_what_is_gone_or_imported_newly_is_named(project: Path, record: Path) -> None:
    (project / "scale.txt").unlink()
    source = project / "kernels/limits.py"
    source.write_text(f"from . import unrelated\n{source.read_text()}")
    assert stale(record, project) == {
        "scale.txt": "is gone",
        "kernels/limits.py": "has changed",
        "kernels/unrelated.py": "is imported now",
    }


def test_another_version_or_runtime_of_the_tool_is_named(
    project: Path, record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("audit.records.closure.runtime_digest", lambda: "0")
    assert stale(record, project) == {"audit/simt": "has changed"}
    monkeypatch.setattr("audit.records.closure.__version__", "9")
    assert stale(record, project) == {"kernel-audit": "was 0.1.0, and is 9"}


def test_a_record_of_an_older_version_is_stale(project: Path, record: Path) -> None:
    from ..gate import made

    made.rewrite(record, lambda found: msgspec.structs.replace(found, closure=None))
    found = verify(record, find_project(project))
    assert found.verdict == "inconclusive"
    assert found.stale.closure


def test_packages_that_are_installed_beside_the_interpreter_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, mine = tmp_path / "site", tmp_path / "mine"
    (site / "some-1.0.dist-info").mkdir(parents=True)
    mine.mkdir()
    for folder in (site, mine):
        (folder / "data.txt").write_text("1")
        monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    with collected_in_a_case() as reads:
        (mine / "data.txt").read_text()  # outside of a hook: the tool's own reading
        with while_a_hook_runs():
            for folder in (site, mine):
                (folder / "data.txt").read_text()
            (mine / "made.txt").write_text("2")
    assert reads.files == {str(mine / "data.txt")}


def test_imports_are_followed_through_packages(tmp_path: Path) -> None:
    for name, text in {
        "kernels/__init__.py": "",
        "kernels/op/__init__.py": "from .operator import op",
        "kernels/op/operator.py": "from ..shared import x\nfrom ...references.fp64 import y\nimport numpy",
        "kernels/shared.py": "",
        "kernels/other.py": "",
        "references/__init__.py": "",
        "references/fp64.py": "from . import domain",
        "references/domain.py": "",
        "references/exact.py": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert set(python_sources(tmp_path, tmp_path / "kernels/op/operator.py")) == {
        "kernels/__init__.py", "kernels/op/__init__.py", "kernels/op/operator.py", "kernels/shared.py",
        "references/__init__.py", "references/domain.py", "references/fp64.py",
    }  # fmt: skip


READ = {
    "subscript": 'int(os.environ["KNOB"])',
    "get": 'int(os.environ.get("KNOB", 0))',
    "getenv": 'int(os.getenv("KNOB", "0"))',
    "getenvb": 'int(os.getenvb(b"KNOB", b"0"))',
    "in": 'int("KNOB" in os.environ)',
    "setdefault": 'int(os.environ.setdefault("KNOB", "0"))',
}


@pytest.mark.parametrize("how", READ)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    x = inputs", "    knob()\n    x = inputs"),  # in a reference
        ('"x": rng.normal(0, scale()', '"x": rng.normal(0 * knob(), scale()'),  # in inputs
    ],
)
def test_an_environment_variable_that_a_hook_reads(
    project: Path, audit: Audit, monkeypatch: pytest.MonkeyPatch, how: str, old: str, new: str
) -> None:
    source = project / "kernels/softmax.py"
    text = source.read_text()
    assert old in text
    source.write_text(f"import os\n\n\ndef knob():\n    return {READ[how]}\n\n\n{text.replace(old, new)}")
    ran = audit(project, "run", "--axis", "n=33", "--variant", "fast", "--json", KNOB="1")
    folder = Path(ran.json["evidence"])
    closure = KIND.load(folder).closure
    assert closure is not None
    assert closure.environment.keys() == {"KNOB"}
    name = "the environment variable KNOB"
    for value, changed in (("1", {}), ("2", {name: "has changed"}), (None, {name: "is not set now"})):
        if value is None:
            monkeypatch.delenv("KNOB")
        else:
            monkeypatch.setenv("KNOB", value)
        assert stale(folder, project) == changed


def test_a_variable_that_was_not_set_is_set_now(project: Path, audit: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    with (project / "kernels/softmax.py").open("a") as file:
        file.write('import os\nos.environ.setdefault("KNOB_WHILE_LOADED", "0")\n')
    ran = audit(project, "run", "--axis", "n=33", "--variant", "fast", "--json")
    monkeypatch.setenv("KNOB_WHILE_LOADED", "1")
    assert stale(Path(ran.json["evidence"]), project) == {"the environment variable KNOB_WHILE_LOADED": "is set now"}


WHOLE = [
    "dict(os.environ)", "{**os.environ}", "os.environ.copy()", "list(os.environ.items())", "[*os.environ]",
    "os.environ | {}", "{name: os.environ[name] for name in os.environ}",
    "subprocess.run(['true'], env=os.environ, check=True)", "subprocess.run(['true'], env={**os.environ}, check=True)",
    "pathlib.Path.home()", "os.environ.update(OTHER_KNOB='1')", "os.environ['OTHER_KNOB'] = '1'",
    "[each for each in os.environ.items() if each[0] == 'KNOB']",
]  # fmt: skip


@pytest.mark.parametrize("code", WHOLE)
def test_what_counts_as_reading_none(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setenv("KNOB", "1")
    monkeypatch.setenv("OTHER_KNOB", "1")
    with collected_in_a_case() as reads, while_a_hook_runs():
        exec(f"import os, pathlib, subprocess\n{code}", {"__name__": "_audited_1.kernels"})
    assert reads.variables == {}


def test_what_a_package_reads_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOB", "1")
    for module, read in (("another.package", set()), ("_audited_1.kernels", {"KNOB"})):
        with collected_in_a_case() as reads, while_a_hook_runs():
            exec("import os; os.environ['KNOB']", {"__name__": module})
        assert reads.variables.keys() == read
