"""What a shell completes, asked through click's own classes for bash and zsh; nothing outside of a project."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import BashComplete, ShellComplete

from audit.cli.main import cli

from ..conftest import ROOT
from ..gate import made


def completions(*words: str) -> list[str]:
    """What is offered for the last of the words, after the others."""
    *before, incomplete = words
    shell = ShellComplete(cli, {}, "audit", "_AUDIT_COMPLETE")
    return [item.value for item in shell.get_completions(before, incomplete)]


@pytest.fixture
def here(two_shapes: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(two_shapes)
    return two_shapes


def test_commands_and_options() -> None:
    assert completions("r") == ["run", "report", "retain"]
    assert completions("--v") == ["--version"]
    assert "--shape" in completions("run", "--s")


@pytest.mark.usefixtures("here")
def test_shapes_are_those_of_the_project() -> None:
    assert completions("run", "--shape", "") == completions("sanitize", "--shape", "") == ["short", "long", "all"]
    assert completions("bench", "--shape", "") == completions("freeze", "--shape", "") == ["short", "long"]
    assert completions("run", "--shape", "l") == ["long"]


@pytest.mark.usefixtures("here")
def test_variants_are_those_of_the_project() -> None:
    for command in ("run", "sanitize", "bench", "freeze"):
        assert completions(command, "--variant", "") == ["control", "fast", "wrong"]


def test_variants_are_those_of_the_shape() -> None:
    project = str(ROOT)
    of_q6 = completions("run", "--project", project, "--shape", "q6", "--variant", "")
    of_all = completions("run", "--project", project, "--variant", "")
    assert "piped_roles" in of_q6
    assert set(of_q6) < set(of_all)
    assert len(of_all) == len(set(of_all))


def test_policies_and_formats(tmp_path: Path) -> None:
    root = str(made.project(tmp_path).root)
    assert completions("gate", "--project", root, "--policy", "") == ["everyday", "release"]
    assert completions("gate", "--project", root, "--policy", "r") == ["release"]
    assert completions("gate", "--format", "j") == ["json", "junit"]


def test_outside_of_a_project_there_is_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (("run", "--shape", ""), ("run", "--variant", ""), ("gate", "--policy", "")):
        assert completions(*words) == []


def test_a_project_that_cannot_be_loaded_offers_nothing(here: Path) -> None:
    (here / "kernels/softmax.py").write_text("raise RuntimeError\n")
    assert completions("run", "--shape", "") == []


def test_what_a_project_prints_is_not_offered(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = here / "kernels/softmax.py"
    source.write_text(f"print('plain,loaded')\n{source.read_text()}")
    assert completions("run", "--shape", "sh") == ["short"]
    assert capsys.readouterr().out == ""


def test_commands_complete_without_importing_any() -> None:
    code = (
        "import sys\n"
        "from click.shell_completion import ShellComplete\n"
        "from audit.cli.main import cli\n"
        "assert len(ShellComplete(cli, {}, 'audit', '_AUDIT_COMPLETE').get_completions([], 'r')) == 3\n"
        "assert not {'numpy', 'msgspec', 'audit.cli.run'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_script_for_bash_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BashComplete, "_check_version", staticmethod(lambda: None))
    assert "_AUDIT_COMPLETE=bash_complete" in BashComplete(cli, {}, "audit", "_AUDIT_COMPLETE").source()
    done = subprocess.run(
        [sys.executable, "-m", "audit"],
        env={"_AUDIT_COMPLETE": "zsh_complete", "COMP_WORDS": "audit r", "COMP_CWORD": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert [line for line in done.stdout.splitlines() if line in ("run", "report", "retain", "gate")] == [
        "run", "report", "retain"
    ]  # fmt: skip
