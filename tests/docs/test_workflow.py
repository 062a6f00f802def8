"""The workflow on the page about the gate is valid, gates a user's project, and uploads what the gate wrote."""

from __future__ import annotations

import fnmatch
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

import audit as tool

from ..conftest import ROOT, Ran
from ..schemas import WORKFLOW, errors
from .pages import block, lay_out

GATE = ROOT / "docs/gate.md"


def workflow() -> dict[str, Any]:
    document = yaml.safe_load(block(GATE, "yaml", "audit gate"))
    document["on"] = document.pop(True)  # what YAML 1.1 takes `on` for
    return document


def commands() -> list[str]:
    return [step["run"] for step in workflow()["jobs"]["gate"]["steps"] if "run" in step]


def test_the_workflow_is_valid_by_its_published_schema() -> None:
    assert errors(WORKFLOW, workflow()) == []
    broken = workflow()
    broken["jobs"]["gate"]["steps"][0]["used"] = broken["jobs"]["gate"]["steps"][0].pop("uses")
    assert errors(WORKFLOW, broken)


def test_the_workflow_installs_the_wheel_that_the_page_builds() -> None:
    (installed,) = [command for command in commands() if "pip install" in command]
    (wheel,) = [word for word in shlex.split(installed) if word.endswith(".whl")]
    folder, _, name = wheel.partition("/")
    assert fnmatch.fnmatch(f"kernel_audit-{tool.__version__}-py3-none-any.whl", name)
    assert f"--wheel-dir {folder} /path/to/kernel-audit" in block(GATE, "sh", "pip wheel")


def test_the_workflow_gates_and_uploads_what_the_gate_wrote(tmp_path: Path, audit: Callable[..., Ran]) -> None:
    lay_out(GATE, "softmax", tmp_path)
    (gated,) = [command for command in commands() if command.startswith("audit ")]
    summary = tmp_path / "summary.md"
    ran = audit(tmp_path, *shlex.split(gated)[1:], GITHUB_STEP_SUMMARY=str(summary))
    assert ran.code == 0, ran.out + ran.err
    assert "kernel-audit: pass" in summary.read_text()
    uploads = [step["with"] for step in workflow()["jobs"]["gate"]["steps"] if "upload" in step.get("uses", "")]
    paths = [word for each in uploads for word in each.get("sarif_file", each.get("path", "")).split()]
    assert paths == ["gate.sarif", "runs/", "gate.xml"]
    assert all((tmp_path / path).exists() for path in paths)
