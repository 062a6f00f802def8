"""A result that depends on what nobody wrote differs between the arms, though it passes over NaN."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from audit import arena, formats
from audit.arena import PoisonKind
from audit.spec import DTYPES, PACKED, Buffer, Case

from .projects import RESTORED, audit, make, results

UNWRITTEN = {
    "maximum": ("f32", "value = fmaxf(value, w[5] > 1e6f || w[5] != w[5] ? w[5] : value);", ""),
    "fmaxf": ("f32", "value = fmaxf(value, w[4]);", ""),
    "fmaxf_at_an_odd_place": ("f32", "value = fmaxf(value, w[7]);", ""),
    "fmaxf_of_a_sum": ("f32", "value = fmaxf(value, w[4] + w[5]);", ""),
    "fminf": ("f32", "value = fminf(value, w[4]);", RESTORED),
    "nan_left_out": ("f32", "if (w[6] == w[6]) value += w[6];", ""),
    "nan_skipped": ("f32", "if (!(w[6] == w[6])) ; else value = w[6];", ""),
    "isnan_skipped": ("f32", "if (!isnan(w[4])) value = w[4];", ""),
    "compared": ("f32", "if (w[4] > value) value = w[4];", ""),
    "fmax_f64": ("f64", "value = (float)fmin(1e30, fmax((double)value, w[4]));", ""),
    "half": ("f16", "{ float h = __half2float(w[5]); if (h > value) value = h; }", ""),
    "code": ("e4m3", "if (w[5] != 0x7f && w[5] != 0xff) value = w[5];", ""),
    "flag": ("i32", "if (w[4] != 0) value += 0; else value = 0;", ""),
    "signed_maximum": ("i32", "value += max(w[5], 0) > 0;", ""),
    "negative": ("i32", "if (w[4] < 0) value = 1;", RESTORED),
    "odd": ("u32", "value += w[4] & 1;", ""),
    "unsigned_threshold": ("u32", "if (w[5] > 0x7fffffffu) value += 1;", ""),
    "unsigned_minimum": ("u64", "value += min(w[4], 7ull) < 7ull;", ""),
    "flag_of_64_bits": ("i64", "if (w[4]) value += 0; else value = -value;", ""),
    "byte": ("u8", "value += w[5] > 127;", ""),
}
BEHIND = {
    "fmaxf_behind_an_input": ("f32", "value = fmaxf(value, x[n]);", ""),
    "fmaxf_behind_a_workspace": ("f32", "value = fmaxf(value, w[8]);", ""),
    "fmaxf_far_behind": ("f32", "value = fmaxf(value, x[n + 1000]);", ""),
    "fmaxf_in_front": ("f32", "value = fmaxf(value, x[-1]);", ""),
    "skipped_behind": ("f32", "if (x[n] == x[n]) value = x[n];", ""),
    "half_behind": ("f16", "{ float h = __half2float(w[8]); if (h > value) value = h; }", ""),
    "integer_behind": ("i32", "value += max(w[9], 0) > 0;", ""),
}


@pytest.mark.parametrize("fault", [*UNWRITTEN.values(), *BEHIND.values()], ids=[*UNWRITTEN, *BEHIND])
def test_a_read_of_what_nobody_wrote_shows(tmp_path: Path, fault: tuple[str, str, str]) -> None:
    dtype, take, more = fault
    record = audit(make(tmp_path / "project", dtype, take, more=more))
    assert record.summary.verdict == "fail"
    assert results(record, "fail").keys() & {"repeat", "error:rel_l2(y)", "bytes"}
    assert "repeat" in results(record, "fail")
    assert not results(record, "fail", "control")


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_clean_twin_passes(tmp_path: Path, dtype: str) -> None:
    record = audit(make(tmp_path / "project", dtype, "", more=RESTORED))
    assert record.summary.verdict == "pass", [one.results for one in record.audits]


CASE = Case("s", "op", {"n": 64})


def slot(dtype: str) -> arena.Slot:
    return arena.lay_out([Buffer("b", dtype, "n", "out")], CASE, "salt")[0]


def values(dtype: str, word: str) -> np.ndarray:
    laid = np.frombuffer(bytes.fromhex(word), np.uint8)
    return laid if dtype in ("bool", *PACKED) else formats.stored_values(dtype, laid.view(DTYPES[dtype]))


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64", "bf16", "e4m3", "e5m2"])
def test_floats_are_nan_or_large_and_finite(dtype: str) -> None:
    least = {"f16": 57_344, "f32": 1e30, "f64": 1e300, "bf16": 9e29, "e4m3": 352, "e5m2": 32_768}[dtype]
    for salt in map(str, range(200)):
        nan, high, low = (values(dtype, arena.poison(slot(dtype), salt, 0, kind)) for kind in ("nan", "high", "low"))
        assert np.isnan(nan).all()
        assert np.isfinite(high).all()
        assert np.isfinite(low).all()
        assert min(high.min(), -low.max()) >= least * 0.999999
    quiet = {"f16": 0x200, "f32": 0x400000, "f64": 1 << 51}
    if dtype in quiet:
        word = bytes.fromhex(arena.poison(slot(dtype), "salt", 0))
        assert (np.frombuffer(word, DTYPES[dtype].str.replace("f", "u")) & quiet[dtype]).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_no_two_kinds_share_a_word_and_every_step_and_salt_has_its_own(dtype: str) -> None:
    kinds: dict[PoisonKind, list[bytes]] = {"nan": [], "high": [], "low": []}
    for kind, found in kinds.items():
        for salt in map(str, range(50)):
            found += [bytes.fromhex(arena.poison(slot(dtype), salt, step, kind)) for step in range(5)]
    size = DTYPES[dtype].itemsize
    elements = {
        kind: {word[at : at + size] for word in found for at in range(0, 8, size)} for kind, found in kinds.items()
    }
    assert not elements["nan"] & elements["high"]
    assert not elements["nan"] & elements["low"]
    assert not elements["high"] & elements["low"]
    distinct = {kind: len(set(found)) for kind, found in kinds.items()}
    assert distinct["low"] > 150
    assert distinct["nan"] > 100  # e4m3 has two NaN, which make 256 words
    assert distinct["high"] > 150 or DTYPES[dtype].itemsize == 8


@pytest.mark.parametrize("dtype", DTYPES)
def test_guards_are_of_the_kind_of_their_arm(dtype: str) -> None:
    def guard(kind: PoisonKind) -> np.ndarray:
        return values(dtype, arena.lay_out([Buffer("b", dtype, "n", "in")], CASE, "s", kind=kind)[0].guard)

    nan, high = guard("nan"), guard("high")
    assert (nan != high).all()
    if high.dtype.kind == "f":
        assert np.isnan(nan).all()
        assert np.isfinite(high).all()


def test_a_word_still_there_is_not_written_whatever_the_kind(tmp_path: Path) -> None:
    """The step `restore` has the third kind; a variant that leaves out an element of it fails there too."""
    take = "if (i == 7 && x[7] < 1e9f) continue;"
    found = results(audit(make(tmp_path / "project", "f32", take, more=RESTORED)), "fail")
    assert "not written" in found["workspace"].detail
    assert found.keys() >= {"workspace", "bytes", "repeat"}


def test_a_guard_file_fills_whole_pages() -> None:
    for size in (0, 1, 4095, 4096, 4097):
        made = arena.lay_out([Buffer("b", "u8", f"n={size}", "in", offset=8)], CASE, "s")[0]
        assert made.file_size % 4096 == 0
        assert made.file_size - made.offset - made.size >= 4096


BYTES = """
import numpy as np
from audit.spec import Axis, Bound, Buffer, Launch, Measured, Operator, Reference, Shape, Source, Variant


def variant(name, parent=None):
    def launches(c):
        return (Launch(name, (1,), (32,), 0, ("x", "y", c.n)),)

    return Variant(name, Source(f"kernels/{name}.cu"), launches, parent)


def differing(c, x, got, want):
    return Measured((got["y"] != want["y"]) * 1.0, np.zeros(c.n), ("n",))


operator = Operator(
    "twice", axes=[Axis("n", 4096)], shapes=[Shape("twice")],
    buffers=lambda c: (Buffer("x", "u8", "n", "in"), Buffer("y", "u8", "n", "out")),
    inputs=lambda c, r: {"x": r.integers(0, 256, c.n, np.uint8)},
    steps=lambda c, x: {"live": {}, "other": {"x": x["x"][::-1]}, "restore": {}},
    references=[Reference("exact", lambda c, x: {"y": x["x"] ^ 1})],
    bounds=[Bound("y", differing, reference="exact")],
    variants=[variant("control"), variant("fast", "control")],
)
"""
FLIP = """
extern "C" __global__ void NAME(const unsigned char* x, unsigned char* y, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    if (TAKE) y[i] = x[i] ^ 1;
}
"""


@pytest.mark.parametrize(
    ("take", "failed"), [("true", set()), ("i != 77", {"workspace", "bytes", "repeat", "error:y"})]
)
def test_a_byte_may_be_the_poison_by_right(tmp_path: Path, take: str, failed: set[str]) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "pyproject.toml").write_text("[tool.kernel-audit]\n")
    (tmp_path / "kernels/twice.py").write_text(BYTES)
    for name, condition in (("control", "true"), ("fast", take)):
        (tmp_path / f"kernels/{name}.cu").write_text(FLIP.replace("NAME", name).replace("TAKE", condition))
    record = audit(tmp_path)
    assert set(results(record, "fail")) == failed
    assert record.summary.verdict == ("fail" if failed else "pass")
    if failed:
        steps = {one.step for each in record.audits for one in each.results if one.check == "workspace"}
        assert steps >= {"live", "other", "restore"}
