"""A run with its default plan accuses no right kernel of a stranger, and finds what plain inputs do not show."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.projects import commanded, record_of, verdicts
from tests.conformance.strangers import HEAD, RIGHT, WRONG


def laid_out(folder: Path, kernels: dict[str, tuple[str, str]]) -> Path:
    (folder / "kernels").mkdir(parents=True)
    (folder / "pyproject.toml").write_text('[tool.kernel-audit]\nkernels = "kernels"\n')
    for name, (cuda, declaration) in kernels.items():
        (folder / f"kernels/{name}.cu").write_text(cuda)
        (folder / f"kernels/{name}.py").write_text(f"{HEAD}\nNAME = {name!r}\n{declaration}\n")
    return folder


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = laid_out(tmp_path_factory.mktemp("right") / "project", RIGHT)
    commanded(folder, "run", "--shape", "all")
    return folder


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = laid_out(tmp_path_factory.mktemp("wrong") / "project", WRONG)
    commanded(folder, "run", "--shape", "all")
    return folder


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_kernel_passes_in_all_families(name: str, right: Path) -> None:
    assert set(verdicts(right, name).values()) == {("pass", "")}
    (case,) = record_of(right, name)["cases"]
    assert len(case["steps"]) > 2, "no family applies"


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_one_fails_in_a_family_or_a_size_alone(name: str, wrong: Path) -> None:
    record = record_of(wrong, name)
    usual = record["plan"]["cases"][0]
    found = verdicts_in(record)
    assert all(verdict == "pass" for (variant, *_), verdict in found.items() if variant == "good")
    own = {check: verdict for (variant, case, step, check), verdict in found.items()
           if variant == "bad" and case == usual_id(record) and step in ("live", "restore", "")}  # fmt: skip
    assert set(own.values()) == {"pass"}, usual
    assert "fail" in {verdict for (variant, *_), verdict in found.items() if variant == "bad"}


def verdicts_in(record: dict) -> dict[tuple[str, str, str, str], str]:  # type: ignore[type-arg]
    return {
        (audit["variant"], audit["case"], result["step"], result["check"]): result["verdict"]
        for audit in record["audits"]
        for result in audit["results"]
    }


def usual_id(record: dict) -> str:  # type: ignore[type-arg]
    name: str = record["audits"][0]["case"]
    return name
