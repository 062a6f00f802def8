"""The figures of a capture, against values that can be worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from audit.capture.facts import Facts, facts_table, measure
from audit.capture.store import Capture
from audit.formats import encode_e4m3


def capture(q: np.ndarray, k: np.ndarray, v: np.ndarray, **scales: float) -> Capture:
    return Capture(
        id="s/layer0/rank0", set="s", layer=0, rank=0, step=1, tokens=16,
        arrays={"q": q.astype(np.float16), "k": encode_e4m3(k), "v": encode_e4m3(v)},
        scales={"scale": 1.0, "k_scale": 1.0, "v_scale": 1.0} | scales,
        payload_sha256={}, manifest_sha256="",
    )  # fmt: skip


def test_uniform_attention() -> None:
    v = np.zeros((1, 16, 1, 4))
    v[0, 0, 0] = [2.0**-9, 2.0**-6, 1.0, -3.0]
    facts = measure(capture(np.zeros((2, 1, 4)), np.ones((1, 16, 1, 4)), v, v_scale=0.5))
    # The first row sees 15 tokens, the second 16.
    assert facts.sink_mass == pytest.approx((1 / 15 + 1 / 16) / 2, rel=1e-12)
    assert facts.top_weight == pytest.approx((1 / 15 + 1 / 16) / 2, rel=1e-12)
    assert facts.effective_tokens == pytest.approx(15.5, rel=1e-12)
    assert facts.score_largest == 0
    assert facts.v_largest == 1.5
    assert facts.v_subnormal_codes == 1 / 64
    assert facts.v_subnormal_unit_scale == 2 / 64


def test_peaked_attention_and_scales() -> None:
    k = np.zeros((1, 16, 1, 4))
    k[0, 0, 0, 0] = 2.0
    q = np.zeros((1, 1, 4))
    q[0, 0, 0] = 3.0
    facts = measure(capture(q, k, k, scale=0.5, k_scale=4.0))
    assert facts.score_largest == 12
    assert facts.sink_mass == pytest.approx(math.exp(12) / (math.exp(12) + 15), rel=1e-12)


def test_a_token_that_no_row_sees_does_not_count() -> None:
    k = np.zeros((1, 16, 1, 4))
    k[0, 15, 0, 0] = 100.0
    q = np.zeros((2, 1, 4))
    q[0, 0, 0] = 1.0
    facts = measure(capture(q, k, k))
    assert facts.score_largest == 0


def test_the_table_has_one_row_a_capture() -> None:
    lines = facts_table((Facts("a", 0.5, 0.25, 1, 2, 0.125, 0.5, 3),)).splitlines()
    assert len(lines) == 3
    assert lines[2] == "| a | 50.00% | 25.0% | 1.00 | 2.0 | 12.5% | 50.0% | 3.0 |"
    assert len({line.replace("\\|", "").count("|") for line in lines}) == 1
