"""Figures about a capture's attention, computed from the stored bytes. They show why its layers are worth keeping."""

from __future__ import annotations

import msgspec
import numpy as np

from audit.capture.store import Capture
from audit.formats import decode_e4m3

SMALLEST_NORMAL = 2.0**-6
"""Of e4m3fn. Smaller magnitudes, except zero, have fewer significant bits."""


class Facts(msgspec.Struct, frozen=True):
    """Figures of one capture over its query rows and heads, in FP64, from the stored q, codes and scales."""

    id: str
    v_subnormal_codes: float
    """Share of the stored codes of V that are subnormal (zero excluded)."""
    v_subnormal_unit_scale: float
    """Share of V's values that would be subnormal at scale 1 (zero excluded)."""
    v_largest: float
    """Largest |v|."""
    score_largest: float
    """Largest |score| that a row sees: q.k times both scales, natural logarithm."""
    sink_mass: float
    """Mean softmax weight of token 0."""
    top_weight: float
    """Mean over rows and heads of the largest softmax weight."""
    effective_tokens: float
    """Mean of exp(entropy of the weights): the number of tokens that share the attention."""


def measure(capture: Capture) -> Facts:
    """The figures of one capture."""
    q = capture.arrays["q"].astype(np.float64)
    dim, rows = q.shape[-1], q.shape[0]
    codes = capture.arrays["v"].reshape(-1, dim)[: capture.tokens]
    k = decode_e4m3(capture.arrays["k"]).reshape(-1, dim)[: capture.tokens] * np.float64(capture.scales["k_scale"])
    v = np.abs(decode_e4m3(codes) * np.float64(capture.scales["v_scale"]))
    scores = np.einsum("rgd,td->rgt", q, k) * capture.scales["scale"]
    visible = np.arange(capture.tokens) < capture.lengths(rows)[:, None, None]
    weights = np.where(visible, np.exp(scores - scores.max(axis=-1, keepdims=True)), 0.0)
    weights /= weights.sum(axis=-1, keepdims=True)
    entropy = -(weights * np.log(np.where(weights > 0, weights, 1.0))).sum(axis=-1)
    magnitude = codes & 0x7F
    return Facts(
        id=capture.id,
        v_subnormal_codes=float(((magnitude > 0) & (magnitude < 8)).mean()),
        v_subnormal_unit_scale=float(((v > 0) & (v < SMALLEST_NORMAL)).mean()),
        v_largest=float(v.max()),
        score_largest=float(np.abs(np.where(visible, scores, 0.0)).max()),
        sink_mass=float(weights[..., 0].mean()),
        top_weight=float(weights.max(axis=-1).mean()),
        effective_tokens=float(np.exp(entropy).mean()),
    )


COLUMNS = ("V subnormal codes", "at unit scale", "max \\|V\\|", "max \\|score\\|", "weight of token 0", "top weight",
           "effective tokens")  # fmt: skip


def facts_table(facts: tuple[Facts, ...]) -> str:
    """The figures as a Markdown table, one row for each capture."""
    lines = ["| capture | " + " | ".join(COLUMNS) + " |", "| --- |" + " ---: |" * len(COLUMNS)]
    lines += [
        f"| {f.id} | {f.v_subnormal_codes:.2%} | {f.v_subnormal_unit_scale:.1%} | {f.v_largest:.2f} "
        f"| {f.score_largest:.1f} | {f.sink_mass:.1%} | {f.top_weight:.1%} | {f.effective_tokens:.1f} |"
        for f in facts
    ]
    return "\n".join(lines)
