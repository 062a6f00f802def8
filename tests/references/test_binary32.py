"""The contract's exp, max and trees."""

import mpmath
import numpy as np

from audit import formats

from .project_references import binary32

ULP_LIMIT = 0.9035


def ulps(x: np.ndarray, got: np.ndarray) -> np.ndarray:
    """The error of got ~ e^x in units of the last place of the binade that holds e^x."""
    errors = []
    with mpmath.workdps(30):
        for argument, result in zip(x, got, strict=True):
            true = mpmath.exp(mpmath.mpf(float(argument)))
            unit = mpmath.ldexp(1, mpmath.frexp(true)[1] - 24)
            errors.append(float(abs(mpmath.mpf(float(result)) - true) / unit))
    return np.array(errors)


def test_exp_at_the_ends() -> None:
    ends = np.array([0.0, -0.0, -80.0], np.float32)
    assert [float(y).hex() for y in binary32.exp32(ends)] == [
        "0x1.0000000000000p+0",
        "0x1.0000000000000p+0",
        "0x1.7fd9740000000p-116",
    ]


def test_exp_is_within_its_ulps() -> None:
    rng = np.random.default_rng(0)
    patterns = rng.integers(0x80000000, 0xC2A00001, 3000).astype(np.uint32)  # every exponent alike
    x = np.concatenate([patterns.view(np.float32), -rng.random(9000).astype(np.float32) * np.float32(80)])
    assert ulps(x, binary32.exp32(x)).max() <= ULP_LIMIT


def test_exp_errs_most_where_the_contract_says() -> None:
    worst = np.array([float.fromhex("-0x1.196b42p+6")], np.float32)
    # The contract gives four digits; the error there is 0.903508.
    assert round(ulps(worst, binary32.exp32(worst))[0], 4) == ULP_LIMIT


def test_a_one_term_ln2_would_be_seen() -> None:
    x = -np.linspace(1, 80, 500, dtype=np.float32)
    careless = np.exp2(x * np.float32(1.4426950408889634)).astype(np.float32)
    assert ulps(x, careless).max() > 20


def test_exp_is_floored_at_minus_80() -> None:
    x = np.array([-1e30, -81, -80, -79], np.float32)
    got = binary32.exp32_floored(x)
    assert got[0] == got[1] == got[2] == binary32.exp32(np.float32(-80))
    assert got[3] > got[2]


def test_exp_survives_what_an_audited_workspace_may_hold() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 3e38], np.float32)
    assert binary32.exp32(x).shape == x.shape


def test_max_is_the_second_of_equals_and_of_nan() -> None:
    zero, nan, one = np.float32(0), np.float32(np.nan), np.float32(1)
    assert np.signbit(binary32.max32(zero, -zero))
    assert not np.signbit(binary32.max32(-zero, zero))
    assert binary32.max32(nan, one) == 1
    assert np.isnan(binary32.max32(one, nan))


def test_tree_adds_halves() -> None:
    def by_lane(x: np.ndarray) -> np.float32:
        lane = [np.float32(v) for v in x]
        offset = len(lane) // 2
        while offset:
            lane = [lane[i] + lane[i + offset] for i in range(offset)]
            offset //= 2
        return lane[0]

    rng = np.random.default_rng(1)
    for width in (8, 32):
        x = (rng.normal(size=(200, width)) * 2.0 ** rng.integers(-10, 10, (200, width))).astype(np.float32)
        got = binary32.tree(binary32.add32, x)
        assert [formats.hex_bits(v) for v in got] == [formats.hex_bits(by_lane(row)) for row in x]
        assert (got != np.cumsum(x, axis=1, dtype=np.float32)[:, -1]).any()  # the order matters here
