"""torch against numpy, field by field, on torch's CPU device, whose arithmetic is that of its other devices."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from audit.project import find_project
from audit.spec import kernels_on_gpu

from . import exact
from .paged_case import PagedCase, paged_case
from .project_references import array_library, attention, fp64, mutations, omissions, scalar_fp64, splits
from .test_mutations import GROUPED, POISON, SCALAR, caught_by, got_of

torch = pytest.importorskip("torch", reason="torch is an extra")
TORCH = array_library.TorchLibrary("cpu")
SMALL_STEPS = array_library.TorchLibrary("cpu", most=8 * 6 * 256 * 100)
EMPTY_ROWS = paged_case(200, rows=4, lengths=[0, 37, 200, -3])
PEAKED = paged_case(700, rows=3, query_size=12)
GROUPED_CASES = {
    "one token": paged_case(1),
    "no token": paged_case(0, lengths=[0, -7]),
    "rows of length 0 and below": EMPTY_ROWS,
    "NaN in q of rows that see nothing": EMPTY_ROWS.changed(
        q=np.where(EMPTY_ROWS.lengths[:, None, None] > 0, EMPTY_ROWS.q, np.float16(np.nan))
    ),
    "a row that sees nothing of the later splits": paged_case(513, rows=3, lengths=[40, 513, 0]),
    "before the first boundary": paged_case(128, page=16),
    "behind the first boundary": paged_case(129, page=16),
    "80 splits and one token": paged_case(5121, page=848),
    "peaked": PEAKED,
    "one token is all": paged_case(300, query_size=400),
    "uniform": paged_case(257, query_size=0),
    "equal V": paged_case(300, values=np.full((300, 64), 1.125, np.float32)),
    "V cancels": paged_case(320, query_size=0, values=np.where(np.arange(320)[:, None] % 2, 1, -1) * np.ones(64)),
    "large V": paged_case(200, query_size=20, values=np.full((200, 64), 448.0, np.float32)),
    "headline geometry": paged_case(1649, rows=4, heads=6, dims=256, page=1648, query_size=2),
}
SCALAR_CASES = {
    **{f"{total} tokens": paged_case(total, rows=1, page=848, query_size=3) for total in (1, 1024, 1025, 2049)},
    "no token": paged_case(8, rows=1, lengths=[0]),
    "below the floor of exp": paged_case(1100, rows=1, query_size=400),
}
ALL = {**{f"grouped: {name}": case for name, case in GROUPED_CASES.items()}} | {
    f"scalar: {name}": case for name, case in SCALAR_CASES.items()
}


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """The cases are small, so more threads of torch would only wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def fields(case: PagedCase, library: array_library.ArrayLibrary) -> dict[str, np.ndarray]:
    compute = scalar_fp64.scalar_fp64 if len(case.q) == 1 else fp64.grouped_fp64
    return vars(compute(*case.arrays, **case.scales, library=library))


@pytest.mark.parametrize("name", ALL)
def test_every_field_agrees_with_numpy(name: str) -> None:
    want = fields(ALL[name], array_library.NUMPY)
    for library in (TORCH, SMALL_STEPS):
        got = fields(ALL[name], library)
        assert got.keys() == want.keys()
        for field, expected in want.items():
            assert got[field].dtype == np.float64
            assert got[field].shape == expected.shape
            assert np.array_equal(np.isneginf(got[field]), np.isneginf(expected))
            if field.endswith(("seen", "reach")):
                np.testing.assert_allclose(got[field], expected, rtol=1e-15)
            elif field.endswith("lse"):
                np.testing.assert_allclose(got[field], expected, rtol=1e-14, atol=1e-14)
            else:  # sums over V, also where they cancel: relative to A
                mass = np.linalg.norm(want["partial_mass" if field.startswith("partial") else "mass"], axis=-1)
                error = np.linalg.norm(got[field] - expected, axis=-1)
                assert (error <= 0.1 * attention.FP64_ERROR * mass).all(), field


def test_the_cases_lose_small_probabilities() -> None:
    """Otherwise the tests above would not cover `loss`."""
    for name in ("grouped: peaked", "grouped: large V", "scalar: below the floor of exp"):
        assert fields(ALL[name], TORCH)["partial_loss"].any()
    assert fields(ALL["grouped: large V"], TORCH)["loss"].max() > 1e-10


def test_torch_is_within_1e_13_of_exact() -> None:
    got, dims = fields(PEAKED, TORCH), range(0, 64, 5)
    want = exact.exact_head(
        PEAKED.q[2, 1], PEAKED.k, PEAKED.v, PEAKED.table, int(PEAKED.lengths[2]), **PEAKED.scales, dims=dims
    )
    reference = np.array([float(x) for x in want.out])
    assert np.linalg.norm(got["out"][2, 1, ::5] - reference) <= attention.FP64_ERROR * np.linalg.norm(reference)
    assert got["lse"][2, 1] == pytest.approx(float(want.lse), rel=1e-14)


def test_equal_calls_give_equal_bytes() -> None:
    case = GROUPED_CASES["headline geometry"]
    first, again = fields(case, TORCH), fields(case, TORCH)
    assert all(first[field].tobytes() == again[field].tobytes() for field in first)


# --- a library that computes something else is refused ---------------------------------------------------


class WrongDecoder(array_library.ArrayLibrary):
    def decoded(self, codes: np.ndarray) -> np.ndarray:
        return super().decoded(codes) * (1 + 1e-12)


class Binary32Library(array_library.ArrayLibrary):
    def mean_of_maximum(self, weights: np.ndarray, values: np.ndarray, center: np.ndarray) -> np.ndarray:
        return super().mean_of_maximum(weights, values, center).astype(np.float32).astype(np.float64)


class NanLibrary(array_library.ArrayLibrary):
    def full(self, shape: tuple[int, ...], value: float) -> np.ndarray:
        return super().full(shape, value) * np.nan


@pytest.mark.parametrize(
    ("library", "field"), [(WrongDecoder(), "partial"), (Binary32Library(), "partial_spread"), (NanLibrary(), "")]
)
def test_a_library_that_does_not_compute_in_binary64_is_refused(
    library: array_library.ArrayLibrary, field: str
) -> None:
    part = len(splits.splits(700)) - 1
    with pytest.raises(attention.ProjectError, match=rf"by numpy: expected {field}.*\[{part}, 2\] within 1e-13"):
        fields(PEAKED, library)


# --- vacuity ---------------------------------------------------------------------------------------------

LONG = {
    "a split longer than the contract reference is given": paged_case(24_577, rows=2, heads=2, page=848),
    "rows that see nothing": paged_case(400, rows=4, lengths=[0, 301, 400, -3], query_size=3),
    "scalar": paged_case(2100, rows=1, page=848),
}


@pytest.mark.parametrize("name", LONG)
def test_mutations_do_not_depend_on_the_place(name: str) -> None:
    case = LONG[name]
    right, table = short_of_contract(case), SCALAR if len(case.q) == 1 else GROUPED
    checked = 0
    for mutation, apply in table.items():
        ours, theirs = (
            apply(*case.arrays, **case.scales, got=right, rng=np.random.default_rng(3), library=library)
            for library in (array_library.NUMPY, TORCH)
        )
        assert (ours is None) == (theirs is None)
        if ours is None:
            continue
        checked += 1
        assert ours.keys() == theirs.keys()
        for buffer, expected in ours.items():  # p is rounded to f32 from numbers that differ in the last bit of f64
            np.testing.assert_allclose(theirs[buffer], expected, rtol=2e-6, atol=1e-6)
        assert caught_by(case, right, ours) == caught_by(case, right, theirs), mutation
    assert checked >= 7


def short_of_contract(case: PagedCase) -> dict[str, np.ndarray]:
    """Results of a sound kernel; rounded FP64 where the contract reference takes long."""
    if splits.total_of(case.lengths) < 10_000:
        return got_of(case)
    left = {"partial": np.full((80, 8, *case.q.shape[1:]), POISON)}
    left["lse"] = np.full((*left["partial"].shape[:3], 2), POISON)
    call = mutations.Call(*case.arrays, **case.scales, got=left, rng=np.random.default_rng())
    active = range(len(splits.splits(call.total)))
    return mutations._laid_over(call, *mutations._in_fp64(call, active), active)


@pytest.mark.parametrize("name", ["peaked", "rows of length 0 and below", "no token", "one token is all"])
def test_the_share_of_omissions_does_not_depend_on_the_place(name: str) -> None:
    case = GROUPED_CASES[name]
    reference = fp64.grouped_fp64(*case.arrays, **case.scales)
    ours, theirs = (
        omissions.omission_share(*case.arrays, **case.scales, fp64=reference, library=library)
        for library in (array_library.NUMPY, TORCH)
    )
    assert ours == theirs


# --- the choice ------------------------------------------------------------------------------------------


def test_without_a_gpu_numpy_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    array_library._chosen.cache_clear()
    assert array_library.gpu_library() is array_library.NUMPY
    monkeypatch.setitem(sys.modules, "torch", None)  # as if it were not installed
    array_library._chosen.cache_clear()
    assert array_library.gpu_library() is array_library.NUMPY
    array_library._chosen.cache_clear()


@pytest.mark.parametrize("shape", ["q1", "q6"])
def test_long_cases_on_a_gpu_are_the_only_ones_that_ask_for_it(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    operator, named = find_project(Path(__file__).resolve().parents[2]).shape(shape)
    reference = operator.references[0]
    acceptance = importlib.import_module(reference.compute.__module__)
    monkeypatch.setitem(acceptance.library_name.__globals__, "gpu_library", lambda: TORCH)

    def named_by(context: int, gpu: bool) -> str:
        case = operator.case(named, {"context": context, "page": 1648})
        with kernels_on_gpu(gpu):
            return reference.computed_by(case)

    assert named_by(261_888, True) == TORCH.name
    assert named_by(261_888, False) == named_by(8197, True) == "numpy"
    assert TORCH.name.startswith("torch ")
