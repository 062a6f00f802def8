"""The structured probes: sound results pass and named faults fail, in numpy and in the control kernel itself.

`softmax_by_hand` is another computation of what the probes expect, from the tokens as the pages hold them, in FP64 and
token by token. A fault is planted in it, or in the kernel's source.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from audit import arena, bundle, formats
from audit.backends import Completed, host
from audit.compile.host import build_host
from audit.project import find_project
from audit.spec import Array, Case, Inputs, Measured, Probe, Shape

ROOT = Path(__file__).resolve().parents[2]
OPERATOR = find_project(ROOT).operators["grouped"]
ANCHOR = OPERATOR.written.__module__.partition(".kernels.")[0]
designs = importlib.import_module(f"{ANCHOR}.kernels.paged.probes")
grouped = importlib.import_module(f"{ANCHOR}.kernels.grouped.probes")
storage = importlib.import_module(f"{ANCHOR}.kernels.paged.storage")
contract = importlib.import_module(f"{ANCHOR}.references.contract")
tensor_core = importlib.import_module(f"{ANCHOR}.references.tensor_core")
PROBES: dict[str, Probe] = {probe.name: probe for probe in grouped.GROUPED_PROBES}
SCALES = ("scale", "k_scale", "v_scale")


def case_of(context: int, rows: int = 6, **axes: int) -> Case:
    return OPERATOR.case(Shape("s", {"rows": rows}), {"context": context, "heads": 3, "dim": 64, **axes})


def inputs_of(name: str, case: Case) -> Inputs:
    return PROBES[name].inputs(case, case.rng())


def passes(name: str, case: Case, given: Inputs, got: Mapping[str, Array]) -> bool:
    with np.errstate(all="ignore"):
        measured: Measured = PROBES[name].expect(case, given, got)
        return bool((measured.value <= measured.limit).all())


# ---- Another computation, and faults in it ----------------------------------------------------------------------


@dataclass(frozen=True)
class Computation:
    """The parameters of the computation in numpy; the defaults are right, and a changed field is a fault."""

    parts: tuple[tuple[int, int], ...]  # the tokens of each split
    lengths: tuple[int, ...]
    heads: tuple[int, ...]  # whose query each head takes
    rows: tuple[int, ...]
    source: tuple[int, ...]  # the token that is read in each token's place
    dims: int  # of q.k
    score: float = 1.0
    gain: float = 1.0
    base: float = float(np.e)
    ignored: frozenset[int] = frozenset()  # tokens without a weight
    value: Callable[[Array], Array] = np.asarray  # on V
    weight: Callable[[Array], Array] = np.asarray  # on the weights that meet V


def right_computation(case: Case) -> Computation:
    total = case.context
    active = 1 if total <= 128 else min(80, -(-total // 64))
    tiles = -(-total // 32)
    sizes = [32 * (tiles // active + (s < tiles % active)) for s in range(active)]
    ends = np.cumsum(sizes)
    parts = tuple((int(end) - size, min(int(end), total)) for end, size in zip(ends, sizes, strict=True))
    lengths = tuple(max(0, total - case.rows + 1 + row) for row in range(case.rows))
    everything = tuple(range(case.heads)), tuple(range(case.rows)), tuple(range(total))
    return Computation(parts, lengths, *everything, case.dim)


def softmax_by_hand(case: Case, given: Inputs, computation: Computation) -> dict[str, Array]:
    """The results of a kernel that computes in FP64 and stores into the contract's buffers."""
    k, v = (tokens_of(case, given, view)[list(computation.source)] for view in storage.views(case, given))
    v = computation.value(v)
    scale, k_scale, v_scale = (given[name] for name in SCALES)
    partial = np.full((80, 8, case.heads, case.dim), np.nan, np.float32)
    lse = np.full((80, 8, case.heads, 2), np.nan, np.float32)
    precast = np.zeros((case.rows, case.heads, case.dim))
    for row, length in enumerate(computation.lengths):
        for head in range(case.heads):
            q = np.asarray(given["q"])[computation.rows[row], computation.heads[head]].astype(np.float64)
            top, whole, numerator = [], [], []
            for split, (start, stop) in enumerate(computation.parts):
                shown = [t for t in range(start, min(stop, length)) if t not in computation.ignored]
                dots = k[shown, : computation.dims] @ q[: computation.dims] if shown else np.zeros(0)
                scores = (dots.astype(np.float32) * (scale * k_scale)).astype(np.float64) * computation.score
                top.append(scores.max(initial=-1e30))
                weights = computation.base ** np.maximum(scores - top[-1], -80)
                whole.append(weights.sum())
                numerator.append(computation.weight(weights) @ v[shown] * float(v_scale) * computation.gain)
                partial[split, row, head] = numerator[-1]
                lse[split, row, head] = top[-1], whole[-1]
            if length > 0:
                shares = computation.base ** np.maximum(np.array(top) - max(top), -80)
                precast[row, head] = shares @ np.array(numerator) / (shares @ np.array(whole))
    return {
        "partial": partial,
        "lse": lse,
        "precast": precast.astype(np.float32),
        "out": precast.astype(np.float32).astype(np.float16),
    }


def tokens_of(case: Case, given: Inputs, view: Array) -> Array:
    pages = np.asarray(given["table"])[0]
    codes = [view[pages[t // case.page], t % case.page, 0] for t in range(case.context)]
    return formats.decode_e4m3(np.array(codes)).astype(np.float64)


def _swapped(values: tuple[int, ...]) -> tuple[int, ...]:
    return (*values[:-2], values[-1], values[-2])


def _next_page(case: Case, computation: Computation) -> Computation:
    moved = tuple((t + case.page) % (case.context // case.page * case.page) for t in computation.source)
    return replace(computation, source=moved)


def _overlapping(_case: Case, computation: Computation) -> Computation:
    total = computation.parts[-1][1]
    return replace(computation, parts=tuple((start, min(stop + 32, total)) for start, stop in computation.parts))


def _moved_border(_case: Case, computation: Computation) -> Computation:
    (start, stop), (_, after), *others = computation.parts
    return replace(computation, parts=((start, stop - 32), (stop - 32, after), *others))


def _signless(v: Array) -> Array:
    return np.abs(v)


def _first_two_exchanged(v: Array) -> Array:
    return v[[1, 0, *range(2, len(v))]]


def _half(p: Array) -> Array:
    return p.astype(np.float16).astype(np.float64)


def _448_as_480(v: Array) -> Array:
    return np.where(v == 448, 480, v)


# fault -> the computation of a faulty kernel, and the probes that must find it (others may)
FAULTS: dict[str, tuple[Callable[[Case, Computation], Computation], str]] = {
    "page table shifted": (_next_page, "uniform position heads one_hot tiles"),
    "V of two tokens exchanged": (
        lambda _case, p: replace(p, value=_first_two_exchanged),
        "position heads tiles",
    ),
    "heads exchanged": (lambda _case, p: replace(p, heads=_swapped(p.heads)), "position heads two_keys tiles"),
    "rows exchanged": (lambda _case, p: replace(p, rows=_swapped(p.rows)), "position heads two_keys tiles"),
    "splits overlap": (_overlapping, "uniform heads one_hot one_hot_high two_keys tiles sparse"),
    "border moved": (_moved_border, "uniform position heads one_hot one_hot_high two_keys tiles sparse"),
    "token 70 dropped": (
        lambda _case, p: replace(p, ignored=frozenset({70})),
        "uniform heads one_hot one_hot_high two_keys tiles sparse",
    ),
    "last token dropped": (
        lambda _case, p: replace(p, lengths=tuple(n - 1 for n in p.lengths)),
        "uniform position heads one_hot one_hot_high two_keys tiles sparse",
    ),
    "mask one too wide": (
        lambda case, p: replace(p, lengths=tuple(min(n + 1, case.context) for n in p.lengths)),
        "uniform heads one_hot one_hot_high two_keys tiles sparse",
    ),
    "half of the dimensions": (lambda _case, p: replace(p, dims=32), "position heads two_keys tiles"),
    "v_scale twice": (lambda _case, p: replace(p, gain=1.37), " ".join(PROBES)),
    "k_scale dropped": (lambda _case, p: replace(p, score=1 / 0.291), "position heads two_keys tiles"),
    "scale off by 0.1%": (lambda _case, p: replace(p, score=1.001), "position heads two_keys tiles"),
    "exponents of 2": (lambda _case, p: replace(p, base=2.0), "two_keys tiles"),
    "sign of V lost": (lambda _case, p: replace(p, value=_signless), "uniform dimensions biased two_keys tiles"),
    "448 decoded as 480": (lambda _case, p: replace(p, value=_448_as_480), "dimensions"),
    "residual missing": (lambda _case, p: replace(p, weight=_half), "dimensions biased two_keys tiles"),
}


@pytest.mark.parametrize("name", PROBES)
@pytest.mark.parametrize(
    ("rows", "context", "axes"),
    [
        (6, 2, {}),
        (2, 33, {}),
        (8, 129, {"heads": 6}),
        (6, 150, {"page": 48, "layout": "interleaved"}),
        (3, 417, {"page": 16, "dim": 256}),
    ],
)
def test_another_computation_agrees(name: str, rows: int, context: int, axes: dict[str, int]) -> None:
    case = case_of(context, rows, **axes)
    given = inputs_of(name, case)
    assert OPERATOR.admit_inputs is not None
    OPERATOR.admit_inputs(case, given)
    assert passes(name, case, given, softmax_by_hand(case, given, right_computation(case)))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_shows_in_the_probes_meant_for_it(fault: str) -> None:
    case = case_of(195)  # 4 splits of 2, 2, 2 and 1 tiles
    damage, meant = FAULTS[fault]
    for name in meant.split():
        given = inputs_of(name, case)
        got = softmax_by_hand(case, given, damage(case, right_computation(case)))
        assert not passes(name, case, given, got), name


# ---- The kernel itself ------------------------------------------------------------------------------------------


def ran(root: Path, case: Case, given: Inputs, folder: Path) -> dict[str, Array]:
    """The results of `control`, with the sources of `root`, in its first step, and the pre-cast output."""
    variant = OPERATOR.variant("control")
    folder.mkdir()
    written = bundle.write_bundle(folder, OPERATOR, variant, case, given, {"live": {}})
    outcome = host.run(folder, written, build_host(root, root / variant.code.path, written.entries), 60, 2)
    assert isinstance(outcome, Completed), outcome
    got = {
        buffer.name: arena.typed(
            arena.read_slot(outcome.files["live"][buffer.name], written.slot(buffer.name)), buffer, case
        )
        for buffer in OPERATOR.buffers(case)
        if buffer.role != "in"
    }
    return {**got, "precast": OPERATOR.derived["precast"](case, given, got)}


@pytest.mark.parametrize("context", [2, 33, 129])
def test_control_passes_every_probe(context: int, tmp_path: Path) -> None:
    case = case_of(context)
    for name in PROBES:
        given = inputs_of(name, case)
        assert passes(name, case, given, ran(ROOT, case, given, tmp_path / name)), name


def test_exchanged_heads_in_the_source_show(own_project: Path, tmp_path: Path) -> None:
    source = own_project / "kernels/grouped/control.cu"
    text = source.read_text()
    planted = text.replace("q[slot * D + i % D]", "q[(slot - slot % G + (slot + 1) % G) * D + i % D]")
    assert planted != text
    source.write_text(planted)
    case = case_of(129)
    caught = set()
    for name in PROBES:
        given = inputs_of(name, case)
        if not passes(name, case, given, ran(own_project, case, given, tmp_path / name)):
            caught.add(name)
    assert caught == {"position", "heads", "two_keys", "tiles"}


@pytest.mark.parametrize("arch", ["sm_70", "sm_80", "sm_90"])
@pytest.mark.parametrize("name", ["uniform", "position", "heads", "dimensions", "two_keys", "biased", "tiles"])
def test_the_limits_hold_for_every_model_of_the_tensor_core(name: str, arch: str) -> None:
    case = case_of(129, 3)
    given = inputs_of(name, case)
    k, v = storage.views(case, given)
    got = contract.grouped_contract(
        *(given["q"], k, v, given["table"], given["lengths"]),
        **{scale: given[scale] for scale in SCALES},
        model=tensor_core.MODELS[arch],
    )
    assert passes(name, case, given, vars(got))


# ---- The designs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("context", [1, 2, 33, 1649, 3297])
@pytest.mark.parametrize("addressed", ["position", "heads"])
def test_an_own_class_lies_far_above_all_others(addressed: str, context: int) -> None:
    case = case_of(context, page=1648)
    design = designs.heads(case) if addressed == "heads" else designs.position(case, [])
    scores = design.dots * float(design.scale) * float(designs.K_SCALE)
    own = np.take_along_axis(scores, design.own[..., None], axis=-1)
    others = np.arange(scores.shape[-1]) != design.own[..., None]
    assert (np.broadcast_to(own, scores.shape) - scores)[others].min(initial=np.inf) >= 90


def test_position_designates_borders_and_every_rows_last_token() -> None:
    case = case_of(1649, heads=6, page=1648)
    own = designs.position(case, [64, 128]).own
    assert len(set(own.ravel().tolist())) == own.size
    assert own[:, 0].tolist() == [1643, 1644, 1645, 1646, 1647, 1648]
    assert {0, 63, 64, 127, 128} <= set(own.ravel().tolist())
    values = designs.position(case, []).values
    assert len({row.tobytes() for row in values}) == case.context


@pytest.mark.parametrize(("context", "dim"), [(129, 64), (4096, 64), (3297, 256)])
def test_one_hot_and_one_hot_high_together_tell_every_token(context: int, dim: int) -> None:
    case = case_of(context, dim=dim)
    low, high = designs.one_hot(case).classes, designs.one_hot_high(case).classes
    assert len(set(zip(low.tolist(), high.tolist(), strict=True))) == context


def test_dimensions_holds_every_finite_code() -> None:
    for dim, kinds in ((256, 254), (64, 64)):
        values = designs.dimensions(case_of(33, dim=dim)).values
        assert (values == values[0]).all()
        assert len(set(values[0].tolist())) == kinds
        assert not np.isnan(formats.decode_e4m3(values)).any()


@pytest.mark.parametrize("dim", [64, 256])
def test_a_tile_has_one_score_of_0_and_31_whose_weight_f16_cannot_hold(dim: int) -> None:
    case = case_of(64, dim=dim)
    design = designs.tiles(case)
    dots = design.dots[..., design.classes].reshape(case.rows, case.heads, 2, 32)
    assert ((dots == 0).sum(axis=-1) == 1).all()
    assert ((dots == -25).sum(axis=-1) == 31).all()
    weight = np.exp(-25 * float(design.scale) * float(designs.K_SCALE))
    assert abs(weight * 2**22 - 1406.5) < 0.01


def test_two_keys_give_every_line_another_difference_of_exact_scores() -> None:
    case = case_of(2, heads=6, dim=256)
    design = designs.two_keys(case)
    differences = (design.dots[..., 1] - design.dots[..., 0]).ravel()
    assert len(set(differences.tolist())) == differences.size
    assert (design.dots * 128 == np.rint(design.dots * 128)).all()
    assert (differences > 0).any()
    assert (differences < 0).any()
    assert np.abs(differences * float(design.scale) * float(designs.K_SCALE)).max() < 30


def test_scales_are_unequal_and_no_powers_of_two() -> None:
    for name in PROBES:
        given = inputs_of(name, case_of(33))
        scales = [float(given[scale]) for scale in SCALES]
        assert len(set(scales)) == 3
        assert all(np.frexp(scale)[0] != 0.5 for scale in scales)


def test_rows_that_see_nothing_hold_nan() -> None:
    given = inputs_of("uniform", case_of(2))
    assert np.isnan(np.asarray(given["q"])).all(axis=(1, 2)).tolist() == [True] * 4 + [False] * 2


# ---- Measuring --------------------------------------------------------------------------------------------------


def test_worst_takes_what_exceeds_its_limit_before_what_does_not() -> None:
    def one(value: float, limit: float) -> Measured:
        return Measured(np.array([value]), np.array([limit]), ("x",))

    near, over, nan, none = one(0.9, 1), one(1e-9, 0), one(np.nan, 1), one(0, 0)
    assert designs.worst(none, near) is near
    assert designs.worst(near, over) is over
    assert designs.worst(near, nan, none) is nan


def test_output_may_be_any_rounding_of_what_the_limit_admits() -> None:
    expected, step = np.array([1.0]), 2.0**-10
    for distance, limit, within in [(0, 0, True), (1, 0, False), (1, 0.6 * step, True), (2, 0.6 * step, False)]:
        got = np.array([1 + distance * step], np.float16)
        measured = designs.output(got, expected, np.array([limit]))
        assert bool((measured.value <= measured.limit).all()) is within
    lost = designs.output(np.array([np.nan], np.float16), expected, np.array([1.0]))
    assert not (lost.value <= lost.limit).any()
