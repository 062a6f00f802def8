"""What the README prints works as printed: kernels of one's own with their output, commands, a workflow, a policy."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from audit.gate.policy import load_policy
from audit.project import find_project

from .conftest import ROOT, Ran
from .gate import made
from .schemas import WORKFLOW, errors

TEXT = (ROOT / "README.md").read_text()
COMMANDS = sorted(set(re.findall(r"(?:`|^\$ |run: )(audit [a-z][^`\n]*)", TEXT, re.MULTILINE)))


def test_kernel_of_ones_own(tmp_path: Path, audit: Callable[..., Ran]) -> None:
    (tmp_path / "kernels").mkdir()
    for language, name in (
        ("toml", "pyproject.toml"),
        ("python", "kernels/softmax.py"),
        ("cuda", "kernels/softmax.cu"),
    ):
        block, *_ = re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)
        (tmp_path / name).write_text(block)
    ran = audit(tmp_path, "run", "--shape", "softmax")
    assert ran.code == 1
    (shown,) = re.findall(r"```\n\$ audit run --shape softmax\n(.*?)\nevidence", TEXT, re.DOTALL)
    # The last bits of the C library's expf, and seconds, differ between machines.
    assert _without_numbers(shown) == _without_numbers(ran.out.partition("\nevidence")[0])


def test_kernel_from_elsewhere() -> None:
    project = ROOT / "tests/projects/layernorm"
    for language, name in (("cpp", "kernels/layernorm.cu"), ("py", "kernels/layernorm.py")):
        (block,) = re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)
        assert block == (project / name).read_text()


def _without_numbers(text: str) -> str:
    return re.sub(r"0x[0-9a-f]+|\d+(\.\d+)?", "#", text)


def block(language: str, holding: str) -> str:
    """The block in a language that holds some text."""
    (found,) = [each for each in re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL) if holding in each]
    return found


def workflow() -> dict[str, Any]:
    document = yaml.safe_load(block("yaml", "audit gate"))
    document["on"] = document.pop(True)  # what YAML 1.1 takes `on` for
    return document


def test_the_workflow_is_valid_by_its_published_schema() -> None:
    assert errors(WORKFLOW, workflow()) == []
    broken = workflow()
    broken["jobs"]["gate"]["steps"][0]["used"] = broken["jobs"]["gate"]["steps"][0].pop("uses")
    assert errors(WORKFLOW, broken)


def test_the_workflow_gates_and_uploads_what_the_gate_wrote(tmp_path: Path, audit: Callable[..., Ran]) -> None:
    project = made.project(tmp_path)
    steps = workflow()["jobs"]["gate"]["steps"]
    (gated,) = [step["run"] for step in steps if step.get("run", "").startswith("audit ")]
    summary = tmp_path / "summary.md"
    ran = audit(project.root, *shlex.split(gated)[1:], GITHUB_STEP_SUMMARY=str(summary))
    assert ran.code == 0, ran.out + ran.err
    assert "kernel-audit: pass" in summary.read_text()
    uploaded = [step["with"] for step in steps if "upload" in step.get("uses", "")]
    files = [word for each in uploaded for word in each.get("sarif_file", each.get("path", "")).split()]
    assert files == ["gate.sarif", "runs/", "gate.xml"]
    assert all((project.root / file).exists() for file in files)
    (installed,) = [step["run"] for step in steps if "pip install" in step.get("run", "")]
    assert all((ROOT / word).exists() for word in installed.split() if word.endswith(".txt") or word == ".")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_is_named_exists(command: str) -> None:
    _, name, *words = shlex.split(command.replace("...", ""))
    known: click.Command = import_module(f"audit.cli.{name}").command
    options = {option for parameter in known.params for option in parameter.opts}
    assert {word.partition("=")[0] for word in words if word.startswith("-")} <= options | {"--help"}


def test_the_policy_that_is_shown_is_one(own_project: Path) -> None:
    (own_project / "pyproject.toml").write_text(f"{block('toml', 'gate.everyday')}\n[tool.kernel-audit]\n")
    settings = own_project / "pyproject.toml"
    captures = 'kernels = "kernels"\nreferences = "references"\ncaptures = "fixtures/captures"\n'
    settings.write_text(settings.read_text() + captures)
    project = find_project(own_project)
    everyday, release = load_policy(project, "everyday"), load_policy(project, "release")
    assert (everyday.stale, release.stale) == ("warn", "fail")
    for rule in (*everyday.audits, *everyday.sanitizers):
        for shape in rule.shapes:
            assert rule.plan(project, shape).cases
