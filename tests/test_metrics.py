"""Errors in numbers: every element is counted once in the ULP histogram, and the quantiles agree with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from audit.records import run as run_record

from .conftest import Ran


def test_the_histogram_counts_every_element(softmax_project: Path, audit: Callable[..., Ran]) -> None:
    source = softmax_project / "kernels/softmax.py"
    text = source.read_text()
    old = 'bounds=[RelL2("y", 1e-6)],'
    assert text.count(old) == 1
    source.write_text(text.replace(old, f'{old}\n    measured={{"y": "y"}},'))
    ran = audit(softmax_project, "run", "--shape", "softmax", "--axis", "n=33", "--variant", "fast", "--json")
    evidence = run_record.KIND.load(Path(ran.json["evidence"]))
    metrics = [metric for audited in evidence.audits for metric in audited.metrics]
    assert len(metrics) >= 2
    for metric in metrics:
        assert sum(metric.ulp_counts) == 7 * 33
        assert metric.ulp
        assert metric.ulp[-1].bit_length() == len(metric.ulp_counts) - 1  # bin k holds numbers of k bits
        below = sum(metric.ulp_counts[: metric.ulp[0].bit_length() + 1])
        assert below >= 7 * 33 / 2
