"""`--against`: each variant beside itself as it was at a git revision, built from that revision's sources."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Ran

Audit = Callable[..., Ran]


@pytest.fixture
def committed(softmax_project: Path) -> Path:
    for words in (
        ("init", "-q", "-b", "main"),
        ("add", "."),
        ("-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "first"),
    ):
        subprocess.run(["git", *words], cwd=softmax_project, check=True)
    return softmax_project


def against(audit: Audit, project: Path, revision: str = "main") -> Ran:
    return audit(
        project, "run", "--shape", "softmax", "--variant", "fast", "--axis", "n=33", "--against", revision, "--json"
    )


def test_unchanged_sources_are_said_to_be_unchanged(committed: Path, audit: Audit) -> None:
    ran = against(audit, committed)
    assert ran.code == 0, ran.err
    assert ran.json["planned"] == ran.json["passed"] == 4
    assert any(
        "built from the same sources" in result["detail"] for result in ran.results() if result["check"] == "identity"
    )


def test_a_comment_is_another_binary_and_the_same_bytes(committed: Path, audit: Audit) -> None:
    source = committed / "kernels/fast.cu"
    source.write_text(source.read_text().replace("float sum = 0.0f;", "float sum = 0.0f + 0.0f;\n"))
    ran = against(audit, committed)
    assert ran.code == 0, ran.err
    (identity,) = [r for r in ran.results() if r["check"] == "identity" and r["variant"] == "fast"]
    assert "differs from the parent's in the machine code of 1 of 1" in identity["detail"]


def test_a_change_of_both_variants_shows_against_the_past_alone(committed: Path, audit: Audit) -> None:
    for name in ("control", "fast"):
        source = committed / f"kernels/{name}.cu"
        source.write_text(source.read_text().replace("/ total", "* (1.0f / total)"))
    usual = audit(committed, "run", "--shape", "softmax", "--variant", "fast", "--axis", "n=33", "--json")
    assert usual.code == 0
    ran = against(audit, committed)
    assert ran.code == 1
    failed = {(r["variant"], r["check"]) for r in ran.results() if r["verdict"] == "fail"}
    assert failed == {("control", "bytes"), ("fast", "bytes")}


def test_a_revision_that_does_not_exist(committed: Path, audit: Audit) -> None:
    for revision in ("nowhere", "--upload-pack=x"):
        ran = against(audit, committed, revision)
        assert ran.code == 2
        assert "--against: expected a git revision" in ran.err


def test_a_frozen_program_is_a_parent(softmax_project: Path, audit: Audit) -> None:
    frozen = softmax_project / "frozen"
    assert audit(softmax_project, "freeze", "frozen", "--shape", "softmax", "--variant", "control").code == 0
    assert audit(softmax_project, "freeze", "frozen", "--shape", "softmax", "--variant", "control").code == 2
    source = softmax_project / "kernels/softmax.py"
    source.write_text(
        source.read_text()
        .replace('variant("control"), variant("fast", "control")', 'old, variant("fast", "old")')
        .replace(
            "softmax = Operator",
            'old = Variant("old", Binary("frozen"), variant("control").launches)\nsoftmax = Operator',
        )
        .replace("import Axis", "import Binary, Axis")
        .replace('variant("wrong", "control")', 'variant("wrong", "old")')
    )
    (softmax_project / "kernels/control.cu").unlink()
    assert audit(softmax_project, "run", "--shape", "softmax", "--variant", "fast", "--axis", "n=33").code == 0
    assert audit(softmax_project, "run", "--shape", "softmax", "--variant", "wrong", "--axis", "n=33").code == 1
    program = frozen / "program"
    program.write_bytes(program.read_bytes() + b"\0")
    ran = audit(softmax_project, "run", "--shape", "softmax", "--variant", "fast", "--axis", "n=33")
    assert ran.code == 2
    assert "is not the program that identity.json records" in ran.err
