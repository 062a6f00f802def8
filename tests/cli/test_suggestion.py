"""A word that names nothing is answered with what was expected, and with a close one where there is one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from audit.cli.suggestion import expected_one_of

from ..conftest import Ran
from ..gate import made

Audit = Callable[..., Ran]


def test_the_sentence() -> None:
    assert (
        expected_one_of(["run", "report"], "rum") == "expected one of run, report, but got 'rum'; did you mean 'run'?"
    )
    assert expected_one_of(iter(["run", "report"]), "xyz") == "expected one of run, report, but got 'xyz'"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("saintize",), "but got 'saintize'; did you mean 'sanitize'?"),
        (("run", "--shpe", "softmax"), "'--shape'"),
        (("run", "--shape", "softmx"), "but got 'softmx'; did you mean 'softmax'?"),
        (("sanitize", "--variant", "fsat"), "but got 'fsat'; did you mean 'fast'?"),
        (("freeze", "there", "--variant", "contrl"), "but got 'contrl'; did you mean 'control'?"),
        (("bench", "--shape", "softmx"), "did you mean 'softmax'?"),
    ],
)
def test_mistyped_words(softmax_project: Path, audit: Audit, words: tuple[str, ...], said: str) -> None:
    ran = audit(softmax_project, *words)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert "Traceback" not in ran.err


def test_mistyped_policies_and_formats(tmp_path: Path, audit: Audit) -> None:
    root = made.project(tmp_path).root
    assert "but got 'everday'; did you mean 'everyday'?" in audit(root, "gate", "--policy", "everday").err
    assert "but got 'junti'; did you mean 'junit'?" in audit(root, "gate", "--also", "junti=x").err


def test_mistyped_faults(softmax_project: Path, audit: Audit) -> None:
    settings = softmax_project / "pyproject.toml"
    refused = audit(softmax_project, "faults")
    assert refused.code == 2
    assert 'add `faults = "FOLDER"`' in refused.err
    settings.write_text(f'{settings.read_text()}faults = "faults"\n')
    (softmax_project / "faults").mkdir()
    (softmax_project / "faults/sum_dropped.toml").write_text(
        'what = "a sum"\nkind = "k"\ncheck = "bytes"\nfile = "kernels/fast.cu"\nfind = "a"\nreplace = "b"\n'
        'shape = "softmax"\nvariant = "fast"\n'
    )
    assert "but got 'sum_droped'; did you mean 'sum_dropped'?" in audit(softmax_project, "faults", "sum_droped").err
