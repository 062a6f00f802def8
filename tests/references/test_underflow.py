"""The loss of small probabilities: the derivation of references/underflow.py, and sound kernels that need it."""

import numpy as np
import pytest

from audit import formats

from . import planted_faults
from .paged_case import PagedCase, paged_case
from .planted_faults import FAULTS, Result
from .project_references import (
    bounds,
    contract,
    fp64,
    scalar_bounds,
    scalar_contract,
    scalar_fp64,
    splits,
    tensor_core,
    underflow,
)

Array = np.ndarray


def reconstruction_error(p: Array) -> Array:
    """p - (P + R*2^-11), exact in f64."""
    rounded = p.astype(np.float16)
    residual = ((p - rounded.astype(np.float32)) * np.float32(2048)).astype(np.float16)
    return p.astype(np.float64) - (rounded.astype(np.float64) + residual.astype(np.float64) * 2.0**-11)


def excess(p: Array) -> Array:
    """That of `grouped_loss`, read off one-hot V without what the products cut."""
    no_cuts = tensor_core.TensorCore(fraction_bits=60, length=16)
    one = np.ones((1, 1))
    return np.array([underflow.grouped_loss(x[None, None], one > 0, one, no_cuts)[0, 0] for x in p.astype(np.float64)])


def test_the_error_of_p_and_r_is_as_derived() -> None:
    rng = np.random.default_rng(0)
    exponents = np.arange(127 - 60, 127, dtype=np.uint32)
    fractions = np.concatenate([rng.integers(0, 2**23, 2000), [0, 1, 2**23 - 1, 2**22, 2**22 + 1, 2**12, 2**12 - 1]])
    p = (exponents[:, None] << 23 | fractions.astype(np.uint32)).view(np.float32).ravel()
    p = np.append(p, np.float32(1))
    error = np.abs(reconstruction_error(p))
    size = p.astype(np.float64)
    assert (error <= np.maximum(underflow.PHI * size, np.minimum(size, underflow.ETA))).all()
    some = rng.integers(0, len(p), 3000)
    assert (error[some] <= underflow.PHI * size[some] + excess(p[some]) * (1 + 1e-9)).all()


def test_the_derived_constants_are_reached() -> None:
    assert reconstruction_error(np.float32([2.0**-36]))[0] == underflow.ETA
    near = np.float32(2.0**-13) - np.arange(1, 4096, dtype=np.float32) * np.float32(2.0**-37)
    assert np.abs(reconstruction_error(near)).max() >= 0.99 * underflow.ETA
    wide = 1 - np.arange(1, 2**16, dtype=np.float32) * np.float32(2.0**-24)
    assert np.abs(reconstruction_error(wide)).max() >= 0.49 * underflow.PHI


def test_nothing_is_added_where_no_p_underflows() -> None:
    p = np.geomspace(2.0**-13, 1, 50)
    assert not excess(p).any()
    case = paged_case(700, rows=3, query_size=1.5)
    reference = fp64.grouped_fp64(*case.arrays, **case.scales)
    assert not reference.partial_loss.any()
    assert not reference.loss.any()


@pytest.mark.parametrize(("total", "dims"), [(129, 256), (1649, 256), (3297, 64)])
def test_random_cases_keep_their_bounds(total: int, dims: int) -> None:
    """Scores of standard deviation 3: some p do underflow, and yet the bounds grow by less than 0.2%."""
    case = paged_case(total, rows=6, dims=dims, page=1648)
    case = case.changed(scale=np.float32(3 / np.sqrt(dims) / 0.7))
    reference = fp64.grouped_fp64(*case.arrays, **case.scales)
    active = len(splits.splits(total))
    grown = bounds.norm(reference.loss) / bounds.precast_bound(reference)
    assert grown.max() <= 1e-3
    seen = reference.partial_seen[:active] > 0
    grown = bounds.norm(reference.partial_loss[:active])[seen] / bounds.partial_bound(reference, active)[seen]
    assert 0 < grown.max() <= 2e-3


# --- sound kernels ---------------------------------------------------------------------------------------


def sparse(query_size: float, v_scale: float = 1.25) -> PagedCase:
    """V = 1.125 at every 256th token alone."""
    values = np.where(np.arange(1025)[:, None] % 256 == 0, 1.125, 0) * np.ones(64)
    return paged_case(1025, rows=2, seed=3, query_size=query_size, values=values).changed(v_scale=np.float32(v_scale))


def rising(rise: float, total: int, first: int) -> PagedCase:
    """V only at the first tokens, and scores that rise after them by `rise`: within a split, or between splits."""
    token = np.arange(total)[:, None]
    case = paged_case(total, keys=(token >= first) * np.ones(64), values=(token < 32) * np.full(64, 1.125))
    return case.changed(q=np.ones_like(case.q), scale=np.float32(rise / 64 / 0.7))


SOUND = {
    **{f"sparse V, q {size}": sparse(size) for size in (8, 12, 16, 24, 40, 100, 400)},
    "sparse V, large scale": sparse(24, 2.0**20),
    **{f"rise of {rise}": rising(rise, 128, 40) for rise in (20, 90, 200, 1000)},
    **{f"rise of {rise} between splits": rising(rise, 400, 128) for rise in (20, 90, 200, 1000)},
}


def verdicts(case: PagedCase, result: Result) -> dict[str, tuple[Array, Array]]:
    reference = fp64.grouped_fp64(*case.arrays, **case.scales)
    active = len(splits.splits(splits.total_of(case.lengths)))
    return {
        "precast": bounds.precast_error(result.precast, reference),
        "partial": bounds.partial_error(result.partial, result.lse, reference, active),
        "lse": bounds.lse_error(result.lse, reference, active),
        "final": bounds.final_error(result.out, reference),
    }


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_result_is_within_every_bound(name: str) -> None:
    for check, (measured, bound) in verdicts(SOUND[name], planted_faults.sound(SOUND[name])).items():
        assert (measured <= bound).all(), check


def test_without_the_loss_sound_results_would_be_rejected() -> None:
    case = SOUND["sparse V, q 24"]
    reference = fp64.grouped_fp64(*case.arrays, **case.scales)
    nothing = {name: np.zeros_like(getattr(reference, name)) for name in ("loss", "partial_loss")}
    bare = type(reference)(**{**vars(reference), **nothing})
    good = planted_faults.sound(case)
    for measured, bound in (
        bounds.precast_error(good.precast, bare),
        bounds.partial_error(good.partial, good.lse, bare, len(splits.splits(1025))),
    ):
        assert (measured > 100 * bound).any()


@pytest.mark.parametrize("fault", ["residual missing", "P in bf16", "v_scale twice", "scale off by 0.1%"])
def test_faults_show_in_sparse_v_still(fault: str) -> None:
    case = SOUND["sparse V, q 12"]
    for check in ("precast", "partial"):
        measured, bound = verdicts(case, FAULTS[fault](case))[check]
        assert (measured > bound).any(), check


@pytest.mark.parametrize("model", ["sm_70", "sm_80", "sm_90"])
def test_large_v_at_subnormal_p_cuts_its_neighbours(model: str) -> None:
    """448 at p = 2^-24 or so beside V of 2^-9 at p = 2^-18: without the gain of `grouped_loss` this is rejected."""
    core = tensor_core.MODELS[model]
    used, used_without = 0.0, 0.0
    for seed in range(30):
        case = _neighbours(seed)
        reference = fp64.grouped_fp64(*case.arrays, **case.scales, model=core)
        bare = fp64.grouped_fp64(*case.arrays, **case.scales, model=tensor_core.TensorCore(60, core.length))
        got = contract.grouped_contract(*case.arrays, **case.scales, model=core)
        error = np.abs(got.precast - reference.out)[1]  # row 0 sees nothing
        spread = (4 + reference.reach[1, :, None]) * reference.spread[1]
        rounding = 2.0**-22 * (4 * reference.mass[1] + spread)
        used = max(used, (error / (rounding + reference.loss[1])).max())
        used_without = max(used_without, (error / (rounding + bare.loss[1])).max())
    assert used <= 1 < used_without


def _neighbours(seed: int) -> PagedCase:
    rng = np.random.default_rng(seed)
    score = np.full(32, -60.0)
    score[0] = 0
    score[1:16] = np.log(2.0**-18) + rng.uniform(-0.3, 0.3, 15)
    heavy = rng.integers(1, 16)
    score[heavy] = np.log(2.0**-24.3) + rng.uniform(-0.7, 0.7)
    keys, q = np.zeros((32, 64), np.float32), np.zeros((2, 1, 64), np.float16)
    for d, weight in enumerate((1, 2.0**-3, 2.0**-6, 2.0**-9, 2.0**-12)):  # the score, digit by digit
        keys[:, d] = formats.decode_e4m3(formats.encode_e4m3(np.clip(score / weight, -448, 448)))
        score -= weight * keys[:, d]
        q[:, :, d] = weight
    values = np.zeros((32, 64), np.float32)
    values[1:16] = 2.0**-9 * rng.choice([1, 3, 5, 7], (15, 64))
    values[heavy] = (-1) ** seed * 448
    case = paged_case(32, heads=1, keys=keys, values=values, lengths=[0, 32])
    return case.changed(q=q, scale=np.float32(1), k_scale=np.float32(1), v_scale=np.float32(1))


# --- scalar ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rise", [20, 90, 200, 1000])
@pytest.mark.parametrize("total", [1000, 2000])
def test_the_floor_of_the_scalar_operator(rise: float, total: int) -> None:
    case = rising(rise, total, 40 if total == 1000 else 1024)
    case = case.changed(q=case.q[:1], lengths=case.lengths[1:])
    reference = scalar_fp64.scalar_fp64(*case.arrays, **case.scales)
    got = scalar_contract.scalar_contract(*case.arrays, **case.scales)
    active = len(splits.partitions(total))
    for measured, bound in (
        bounds.precast_error(got.precast, reference),
        bounds.final_error(got.out, reference),
        scalar_bounds.partial_error(got.partial, reference, active),
        scalar_bounds.lse_error(got.maximum, got.sums, reference, active),
    ):
        assert (measured <= bound).all()
    assert reference.loss.any() == (rise > 80)
