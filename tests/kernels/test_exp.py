"""Every exp in the kernels, on samples of the exhaustive run (kernels/paged/exp_sweep.py)."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
STEP = 251  # most inputs are so near 0 that exp is 1, so a sparser sample misses faults of the polynomial
SAMPLES = 4_453_315
SAMPLES_FNV1A64 = "9768eee96c2d775f"  # from an implementation whose complete sweep hashes to exp_sweep.FNV1A64


def _load_sweep() -> ModuleType:
    path = ROOT / "kernels" / "paged" / "exp_sweep.py"
    spec = importlib.util.spec_from_file_location("exp_sweep_under_test", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


exp_sweep = _load_sweep()


@pytest.mark.parametrize("kernel", ["control", "scalar_control", "shared"])
def test_samples_are_the_recorded_words(kernel: str) -> None:
    measured = exp_sweep.sweep(exp_sweep.exp_text(exp_sweep.SOURCES[kernel]), STEP)
    assert measured.count == SAMPLES
    assert measured.fnv1a64 == SAMPLES_FNV1A64
    assert 0.8 <= measured.worst_ulp <= exp_sweep.WORST_ULP
    assert measured.fixed_points == exp_sweep.FIXED_POINTS


def test_the_two_texts_are_independent() -> None:
    texts = {exp_sweep.exp_text(exp_sweep.SOURCES[kernel]) for kernel in ("control", "shared")}
    assert len(texts) == 2


@pytest.mark.parametrize(
    ("written", "planted", "least_ulp"),
    [
        ("0x1.55568ap-5f", "0x1.555688p-5f", 0.8),  # one coefficient, last place
        ("__fmaf_rn(q, r, 0.5f)", "(q * r + 0.5f)", 0.8),  # a mul and an add
        ("r = __fmaf_rn(n, 0x1.05c610p-29f, r);", "", 2.0),  # ln2 in one term
    ],
)
def test_a_planted_fault_changes_the_words(written: str, planted: str, least_ulp: float) -> None:
    text = exp_sweep.exp_text(exp_sweep.SOURCES["control"])
    assert text.count(written) == 1
    measured = exp_sweep.sweep(text.replace(written, planted), STEP)
    assert measured.fnv1a64 != SAMPLES_FNV1A64
    assert measured.worst_ulp >= least_ulp


def test_differences_name_what_is_not_as_recorded() -> None:
    right = exp_sweep.Sweep(
        count=exp_sweep.COUNT,
        fnv1a64=exp_sweep.FNV1A64,
        worst_ulp=0.90351,
        worst_at=exp_sweep.WORST_AT,
        fixed_points=exp_sweep.FIXED_POINTS,
    )
    assert exp_sweep.differences(right) == []
    wrong = exp_sweep.Sweep(
        count=exp_sweep.COUNT,
        fnv1a64="0" * 16,
        worst_ulp=float("nan"),
        worst_at=exp_sweep.WORST_AT,
        fixed_points=exp_sweep.FIXED_POINTS,
    )
    lines = exp_sweep.differences(wrong)
    assert [line.split(":")[0] for line in lines] == ["FNV-1a-64", "largest error, ulp"]


def test_a_source_without_the_function_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "empty.cu"
    source.write_text("// float contract_exp(float x) {\n", encoding="utf-8")
    with pytest.raises(exp_sweep.SweepError, match="found 0"):
        exp_sweep.exp_text(source)


def test_a_text_that_does_not_compile_is_not_a_pass(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "broken.cu"
    source.write_text("float contract_exp(float x) {\n  return undeclared;\n}\n", encoding="utf-8")
    monkeypatch.setattr(exp_sweep, "SOURCES", {"control": source})
    assert exp_sweep.main(["--kernel", "control"]) == 2
    assert "undeclared" in capsys.readouterr().err
