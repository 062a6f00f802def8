"""The rules by which a model's numbers become stored ones, against a plain scalar twin."""

from __future__ import annotations

import numpy as np
import pytest

from audit.capture.quantise import quantise
from audit.errors import CaptureError
from audit.formats import E4M3_F32, decode_e4m3


def draws(heads: int = 6, ranks: int = 2, rows: int = 3, tokens: int = 20, dim: int = 4) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    shapes = (heads, rows, dim), (ranks, tokens, dim), (ranks, tokens, dim)
    return [(rng.standard_normal(shape) * 3).astype(np.float32) for shape in shapes]


def nearest_code(value: float) -> int:
    """The finite code whose value is nearest; of two, the even one."""
    finite = [code for code in range(256) if code & 0x7F != 0x7F and (code >= 128) == bool(np.signbit(value))]
    return min(finite, key=lambda code: (abs(float(E4M3_F32[code]) - value), code & 1))


def test_codes_and_scales_follow_the_stated_rule() -> None:
    q, k, v = draws()
    for rank in (0, 1):
        made = quantise(q, k, v, rank=rank, page=16)
        for codes, scale, x in ((made.k, made.k_scale, k[rank]), (made.v, made.v_scale, v[rank])):
            assert scale.dtype == np.float32
            assert scale == np.abs(x).max() / np.float32(448)
            assert codes.shape == (2, 16, 1, 4)
            flat = codes.reshape(32, 4)
            assert not flat[20:].any()
            divided = (x / scale).astype(np.float64)
            expected = [[nearest_code(value) for value in row] for row in divided]
            assert flat[:20].tolist() == expected
            assert np.abs(decode_e4m3(codes)).max() == 448


def test_query_heads_follow_their_kv_head() -> None:
    q, k, v = draws()
    q[:] = np.arange(6)[:, None, None]
    for rank in (0, 1):
        made = quantise(q, k, v, rank=rank, page=16)
        assert made.q.shape == (3, 3, 4)
        assert (made.q == (np.arange(3) + 3 * rank)[None, :, None]).all()


def test_queries_are_rounded_to_nearest_even() -> None:
    q, k, v = draws()
    q[0, 0, :4] = [1 + 2**-11, 1 + 3 * 2**-11, 2**-25, 1.5 * 2**-24]
    made = quantise(q, k, v, rank=0, page=16)
    assert made.q[0, 0].tolist() == [1.0, 1 + 2**-9, 0.0, 2**-23]


def test_all_zero_gets_scale_one() -> None:
    q, k, v = draws()
    v[1] = 0
    made = quantise(q, k, v, rank=1, page=16)
    assert made.v_scale == 1
    assert not made.v.any()


@pytest.mark.parametrize(("which", "value"), [(0, 70000.0), (0, np.nan), (1, np.inf), (2, np.nan)])
def test_what_cannot_be_stored_is_refused(which: int, value: float) -> None:
    tensors = draws()
    tensors[which][0, 0, 0] = value
    with pytest.raises(CaptureError, match=f"^{'qkv'[which]} of rank 0: expected"):
        quantise(*tensors, rank=0, page=16)
    quantise(*tensors, rank=1, page=16)


def test_values_too_small_to_scale_are_refused() -> None:
    q, k, v = draws()
    k[0] = 1e-45
    with pytest.raises(CaptureError, match="binary32 can scale"):
        quantise(q, k, v, rank=0, page=16)
