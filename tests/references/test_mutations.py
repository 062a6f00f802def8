"""Wrong results: each differs from the right one where it should, and named bounds catch it."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from .paged_case import PagedCase, paged_case
from .project_references import (
    bounds,
    contract,
    fp64,
    merge,
    mutations,
    scalar_bounds,
    scalar_contract,
    scalar_fp64,
    scalar_mutations,
    splits,
    tensor_core,
    wrong_steps,
)

Array = np.ndarray
Buffers = Mapping[str, Array]
POISON = np.float32(-7.25e11)

GROUPED, SCALAR = dict(mutations.MUTATIONS), dict(scalar_mutations.MUTATIONS)


def scalar_case(total: int, **options: Any) -> PagedCase:
    return paged_case(total, rows=1, **{"heads": 2, "page": 848, **options})


def got_of(case: PagedCase) -> dict[str, Array]:
    """Results of a sound kernel, with poison where nothing is written."""
    compute = scalar_contract.scalar_contract if len(case.q) == 1 else contract.grouped_contract
    result = vars(compute(*case.arrays, **case.scales))
    names = [name for name in ("partial", "lse", "maximum", "sums") if name in result]
    poisoned = {name: np.where(np.isnan(result[name]), POISON, result[name]) for name in names}
    return {**poisoned, "out": result["out"], "precast": result["precast"]}


def mutated(name: str, case: PagedCase, got: Buffers, seed: int = 0) -> dict[str, Array] | None:
    table = SCALAR if len(case.q) == 1 else GROUPED
    return table[name](*case.arrays, **case.scales, got=got, rng=np.random.default_rng(seed))


def caught_by(case: PagedCase, right: Buffers, wrong: Buffers) -> set[str]:
    """The bounds of kernels/CONTRACT.md that distinguish the wrong result from the right one."""
    total, state = splits.total_of(case.lengths), {**right, **wrong}
    if len(case.q) == 1:
        reference, active = scalar_fp64.scalar_fp64(*case.arrays, **case.scales), len(splits.partitions(total))
        precast = scalar_contract.scalar_merge(state["partial"], state["maximum"], state["sums"], total)
        workspace = {
            "partial": scalar_bounds.partial_error(state["partial"], reference, active),
            "lse": scalar_bounds.lse_error(state["maximum"], state["sums"], reference, active),
        }
    else:
        reference, active = fp64.grouped_fp64(*case.arrays, **case.scales), len(splits.splits(total))
        precast = merge.merge(state["partial"], state["lse"], case.lengths, total)
        workspace = {
            "partial": bounds.partial_error(state["partial"], state["lse"], reference, active),
            "lse": bounds.lse_error(state["lse"], reference, active),
        }
    workspace["precast"] = bounds.precast_error(precast, reference)
    workspace["final"] = bounds.final_error(state["out"], reference)
    caught = {name for name, (measured, bound) in workspace.items() if not (measured <= bound).all()}
    if any(state[name].tobytes() != right[name].tobytes() for name in wrong):
        caught.add("contract")
    if precast.astype(np.float16).tobytes() != state["out"].tobytes():
        caught.add("merge")
    return caught


PLAN = {
    "random": paged_case(129, rows=3, seed=1),
    "peaked": paged_case(257, rows=3, seed=2, query_size=12),
    "uniform": paged_case(129, rows=3, seed=3, query_size=0),
}
SCALAR_PLAN = {
    "random": scalar_case(300, seed=1),
    "two partitions": scalar_case(1300, seed=2, query_size=3),
    "uniform": scalar_case(129, seed=3, query_size=0),
}
RIGHT = {id(case): got_of(case) for case in (*PLAN.values(), *SCALAR_PLAN.values())}
ALL = {"contract", "precast", "partial", "lse", "final"}

CAUGHT = {
    "heaviest_token_dropped": ALL,
    "random_token_dropped": ALL,
    "length_one_short": ALL,
    "split_dropped": ALL,
    "split_not_merged": {"contract", "merge", "final"},
    "heads_shifted": ALL,
    "v_scale_twice": ALL - {"lse"},
    "residual_missing": ALL - {"lse"},
    "bf16_weights": ALL - {"lse"},
    "compensation_missing": {"contract"},
    "one_term_exp": {"contract"},
}
SCALAR_CAUGHT = {
    "heaviest_token_dropped": ALL,
    "random_token_dropped": ALL,
    "length_one_short": ALL,
    "partition_dropped": ALL,
    "partition_not_reduced": {"contract", "merge", "final"},
    "heads_shifted": ALL,
    "v_scale_twice": ALL - {"lse"},
    "f16_weights": ALL - {"lse"},
    "bf16_weights": ALL - {"lse"},
    "one_term_exp": {"contract"},
}


@pytest.mark.parametrize(
    ("plan", "name", "expected"),
    [(PLAN, *item) for item in CAUGHT.items()] + [(SCALAR_PLAN, *item) for item in SCALAR_CAUGHT.items()],
)
def test_which_bounds_catch_it(plan: Mapping[str, PagedCase], name: str, expected: set[str]) -> None:
    found = set[str]()
    for case in plan.values():
        right = RIGHT[id(case)]
        if wrong := mutated(name, case, right):
            found |= caught_by(case, right, wrong)
    assert found == expected


def test_the_tables_are_complete() -> None:
    assert set(CAUGHT) == set(GROUPED)
    assert set(SCALAR_CAUGHT) == set(SCALAR)
    assert len(GROUPED) == len(mutations.MUTATIONS)
    assert len(SCALAR) == len(scalar_mutations.MUTATIONS)


@pytest.mark.parametrize("name", {**GROUPED, **SCALAR})
def test_buffers_keep_their_form_and_their_poison(name: str) -> None:
    for table, plan in ((GROUPED, PLAN), (SCALAR, SCALAR_PLAN)):
        if name not in table:
            continue
        case = plan["random"]
        right = RIGHT[id(case)]
        before = {buffer: array.tobytes() for buffer, array in right.items()}
        wrong = mutated(name, case, right)
        assert wrong
        for buffer, array in wrong.items():
            assert buffer in ("partial", "lse", "maximum", "sums", "out")
            assert array.dtype == right[buffer].dtype
            assert array.shape == right[buffer].shape
            assert array.tobytes() != before[buffer]
            if buffer != "out":
                assert np.array_equal(array == POISON, right[buffer] == POISON)
                assert not np.isnan(array).any()
        assert {buffer: array.tobytes() for buffer, array in right.items()} == before


def test_what_cannot_show_is_none() -> None:
    uniform, right = PLAN["uniform"], RIGHT[id(PLAN["uniform"])]
    for name in ("heads_shifted", "residual_missing", "bf16_weights", "compensation_missing", "one_term_exp"):
        assert mutated(name, uniform, right) is None, name
    plain = PLAN["random"].changed(v_scale=np.float32(1))
    assert mutated("v_scale_twice", plain, got_of(plain)) is None
    one_head = paged_case(40, heads=1)
    assert mutated("heads_shifted", one_head, got_of(one_head)) is None
    for empty in (paged_case(0, lengths=[0, -1]), scalar_case(9, lengths=[0])):
        table = SCALAR if len(empty.q) == 1 else GROUPED
        assert all(mutated(name, empty, got_of(empty)) is None for name in table)
    alone = scalar_case(1025)
    assert mutated("length_one_short", alone, got_of(alone)) is None


def test_the_same_seed_draws_the_same_and_another_another() -> None:
    case, right = PLAN["random"], RIGHT[id(PLAN["random"])]
    first, again, other = (mutated("random_token_dropped", case, right, seed) for seed in (0, 0, 5))
    assert first["partial"].tobytes() == again["partial"].tobytes() != other["partial"].tobytes()


def test_every_row_is_one_short_wherever_it_ends() -> None:
    case = paged_case(200, rows=3, lengths=[70, 0, 200])
    right = got_of(case)
    wrong = mutated("length_one_short", case, right)
    changed = (wrong["lse"] != right["lse"]).any(axis=(2, 3))
    ends = [next(s for s, tokens in enumerate(splits.splits(200)) if last in tokens) for last in (69, 199)]
    assert np.argwhere(changed).tolist() == [[ends[0], 0], [ends[1], 2]]


def test_the_architecture_is_that_of_the_audited_kernel() -> None:
    """Splits that the fault does not touch, and a compensation that is not missing, must not show."""
    case, model = PLAN["random"], tensor_core.MODELS["sm_80"]
    found = vars(contract.grouped_contract(*case.arrays, **case.scales, model=model))
    options = {**case.scales, "got": found, "model": model}
    call = mutations.Call(*case.arrays, **options, rng=np.random.default_rng(0))
    assert mutations.mutation(lambda call: mutations._with_steps(call, contract.CONTRACT))(**vars(call)) is None
    dropped = GROUPED["random_token_dropped"](*case.arrays, **options, rng=np.random.default_rng(0))
    assert (dropped["lse"] != found["lse"])[found["written"]].any(axis=(1, 2)).sum() == 3


@pytest.mark.parametrize("rows", [1, 2])
def test_the_heaviest_token_is_the_one_that_is_dropped(rows: int) -> None:
    """Head 0 looks at token 50 a little, head 1 at token 77 alone."""
    keys = np.zeros((200, 64), np.float32)
    keys[50, :32], keys[77, 32:] = 1, 1
    case = paged_case(200, rows=rows, heads=2, keys=keys)
    q = np.zeros_like(case.q)
    q[:, 0, :32], q[:, 1, 32:] = 0.5, 6
    case = case.changed(q=q)
    call = mutations.Call(*case.arrays, **case.scales, got={}, rng=np.random.default_rng(0))
    assert mutations.heaviest_token(call) == 77
    right = got_of(case)
    wrong = mutated("heaviest_token_dropped", case, right)
    change = np.abs(wrong["out"].astype(np.float32) - right["out"]).max(axis=(0, 2))
    assert change[0] < 0.05
    assert change[1] > 0.5


# --- long contexts ---------------------------------------------------------------------------------------


@pytest.fixture
def _as_if_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutations, "WHOLE", 20)
    monkeypatch.setattr(scalar_mutations, "WHOLE", 20)


@pytest.mark.parametrize("name", CAUGHT)
@pytest.mark.parametrize("case", [PLAN["random"], PLAN["peaked"], paged_case(90, rows=3, lengths=[0, 1, 90])])
def test_the_cheap_way_is_close_to_the_contract(name: str, case: PagedCase, request: pytest.FixtureRequest) -> None:
    """Far closer to the contract with the fault in it than the fault is to the truth."""
    right = got_of(case)
    want = mutated(name, case, right)
    request.getfixturevalue("_as_if_long")
    got = mutated(name, case, right)
    if name in ("compensation_missing", "one_term_exp"):
        assert got is None
        return
    total = splits.total_of(case.lengths)
    merged = [merge.merge(*({**right, **x}[n] for n in ("partial", "lse")), case.lengths, total) for x in (got, want)]
    assert np.abs(merged[0] - merged[1]).max() <= 4e-6
    assert caught_by(case, right, got) == caught_by(case, right, want)
    if name in ("residual_missing", "bf16_weights"):
        assert "lse" not in got


@pytest.mark.usefixtures("_as_if_long")
def test_weights_are_taken_against_the_maximum_that_stays() -> None:
    """The same workspace with every maximum raised by 1: the same output, and the same with the fault."""
    case, right = PLAN["random"], RIGHT[id(PLAN["random"])]
    lse, fewer = right["lse"].copy(), np.float32(np.exp(-1))
    lse[..., 0] += 1
    lse[..., 1] *= fewer
    raised = {**right, "lse": np.where(right["lse"] == POISON, POISON, lse), "partial": right["partial"] * fewer}
    for name in ("residual_missing", "bf16_weights"):
        got, other = (mutated(name, case, base)["out"] for base in (right, raised))
        assert np.abs(got.astype(np.float32) - other).max() <= 2e-3


@pytest.mark.usefixtures("_as_if_long")
def test_scalar_tokens_are_dropped_at_any_length() -> None:
    case = SCALAR_PLAN["two partitions"]
    right = RIGHT[id(case)]
    for name in ("heaviest_token_dropped", "random_token_dropped", "length_one_short"):
        assert caught_by(case, right, mutated(name, case, right)) >= {"precast", "partial", "lse"}
    assert mutated("f16_weights", case, right) is None


# --- wrong steps -----------------------------------------------------------------------------------------


def test_bf16_rounds_to_nearest_even() -> None:
    x = np.float32([1, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, 0, 2**-130])
    assert wrong_steps.bf16_weights(x).tolist() == [1, 1, 1 + 2**-6, 1 + 2**-7, 0, 2**-130]


@pytest.mark.parametrize(("wrong", "low", "high"), [(wrong_steps.one_term_exp, 20, 64), (contract.exp32_floored, 0, 1)])
def test_one_term_exp_errs_by_tens_of_ulp(wrong: Callable[[Array], Array], low: float, high: float) -> None:
    x = -np.linspace(1, 80, 4000, dtype=np.float32)
    want = np.exp(x.astype(np.float64))
    error = np.abs(wrong(x) - want) / np.spacing(want.astype(np.float32))
    assert low <= error.max() <= high


def test_f16_weights_are_what_numpy_converts_to() -> None:
    """At every value of f16 in [0, 1], halfway between each two, and beside all of these; and at every 997th f32."""
    exact = np.arange(0x3C01, dtype=np.uint16).view(np.float16).astype(np.float32)
    around = np.concatenate([exact, (exact[1:] + exact[:-1]) / 2])
    every = np.arange(0, 0x3F800001, 997, dtype=np.uint32).view(np.float32)
    zero, one = np.float32(0), np.float32(1)
    p = np.concatenate([around, np.nextafter(around, zero), np.nextafter(around, one), every])
    expected = p.astype(np.float16).astype(np.float32)
    np.testing.assert_array_equal(wrong_steps.f16_weights(p).view(np.uint32), expected.view(np.uint32))
