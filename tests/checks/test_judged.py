"""What is judged in an input family, and what a right kernel may show there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.strangers import HEAD

from ..conftest import Ran

ROWS = "int r = blockIdx.x, t = threadIdx.x; const float* p = x + r * n; (void)p;"
Audit = Callable[..., Ran]


def kernel(name: str, body: str) -> str:
    return f'extern "C" __global__ void {name}(const float* x, float* y, int n) {{ {ROWS} {body} }}\n'


def each(expression: str) -> str:
    """A kernel's body that computes every element from the one of its index, `v`."""
    return f"for (int i = t; i < n; i += 32) {{ float v = p[i]; y[r * n + i] = {expression}; }}"


def ran(folder: Path, audit: Audit, cuda: str, declaration: str, *options: str) -> dict[str, Any]:
    """The record of a run of one operator, `k`."""
    (folder / "kernels").mkdir()
    (folder / "pyproject.toml").write_text('[tool.kernel-audit]\nkernels = "kernels"\n')
    (folder / "kernels/k.cu").write_text(cuda)
    (folder / "kernels/k.py").write_text(f"{HEAD}\nNAME = 'k'\n{declaration}\n")
    done = audit(folder, "run", "--json", *options)
    assert done.code in (0, 1), done.out + done.err
    assert audit(folder, "verify", done.json["evidence"]).code == 0
    record: dict[str, Any] = json.loads((Path(done.json["evidence"]) / "evidence.json").read_text())
    return record


def failed(record: dict[str, Any], variant: str = "k") -> set[tuple[str, str]]:
    return {
        (result["check"].partition(":")[0], result["step"])
        for audit in record["audits"]
        for result in audit["results"]
        if audit["variant"] == variant and result["verdict"] == "fail"
    }


def notes(record: dict[str, Any], step: str) -> str:
    return "; ".join(
        note["detail"] for audit in record["audits"] for note in audit["notes"] if note.get("step") == step
    )


def test_a_family_accuses_where_the_data_are_well_conditioned(tmp_path: Path, audit: Audit) -> None:
    declaration = "o = op([X, Y], normal, lambda c, i: {'y': np.abs(f(i))}, [close('y', 1e-6, 1e-6)], row)"
    record = ran(tmp_path, audit, kernel("k", each("fabsf(v)")), declaration)
    assert failed(record) == set()
    wrong = kernel("k", "float m = 0; for (int i = 0; i < n; ++i) m = fmaxf(m, p[i]); " + each("m > 0 ? fabsf(v) : v"))
    other = tmp_path / "other"
    other.mkdir()
    assert failed(ran(other, audit, wrong, declaration)) >= {("error", "negative")}


def test_data_that_are_too_ill_conditioned_for_a_bound_are_not_judged(tmp_path: Path, audit: Audit) -> None:
    mean = "float s = 0; for (int i = 0; i < n; ++i) s += p[i]; float m = s / n; s = 0; "
    body = mean + "for (int i = 0; i < n; ++i) s += (p[i] - m) * (p[i] - m); " + each("(v - m) * rsqrtf(s / n + 1e-5f)")
    reference = "(lambda x: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5))(f(i))"
    declaration = (
        "inputs = lambda c, r: {'x': r.normal(3, 1, (c.rows, c.n))}\n"
        f"def shifted(c, i):\n    return {{'y': {reference}}}\n"
        "o = op([X, Y], inputs, shifted, [RelL2('y', 2e-6)], row)"
    )
    record = ran(tmp_path, audit, kernel("k", body), declaration, "--family", "close", "--family", "ones")
    assert failed(record) == set()
    found = notes(record, "close") + notes(record, "ones")
    assert "not judged: " in found
    assert "of the limit" in found


def test_a_family_whose_reference_raises_or_is_not_finite_is_left_out_with_the_reason(
    tmp_path: Path, audit: Audit
) -> None:
    declaration = (
        "def reference(c, i):\n"
        "    x = f(i)\n"
        "    if (x <= 0).all():\n        raise ValueError('no positive element')\n"
        "    return {'y': 1 / x}\n"
        "o = op([X, Y], normal, reference, [close('y', 0, 1e-6)], row)"
    )
    record = ran(tmp_path, audit, kernel("k", each("1 / v")), declaration)
    assert failed(record) == set()
    (case,) = record["cases"]
    assert "no positive element" in case["left_out"]["negative"]
    assert "array y is not finite" in case["left_out"]["denormal"]
    assert not {"negative", "denormal"} & {*case["steps"]}


def test_what_the_operator_does_not_admit_is_left_out(tmp_path: Path, audit: Audit) -> None:
    declaration = (
        "def admit(c, i):\n    if (np.asarray(i['x']) == 0).any():\n        raise InputError('a zero')\n"
        "o = op([X, Y], normal, lambda c, i: {'y': f(i)}, [exact('y')], row, admit_inputs=admit)"
    )
    record = ran(tmp_path, audit, kernel("k", each("v")), declaration)
    (case,) = record["cases"]
    assert "a zero" in case["left_out"]["zeros"]
    assert "zeros" not in case["steps"]
    assert "ties" in case["steps"]


SOFTMAX = "float s = 0; for (int i = 0; i < n; ++i) s += expf(p[i]); " + each("expf(v) / s")
STABLE = (
    "float m = -INFINITY; for (int i = 0; i < n; ++i) m = fmaxf(m, p[i]); "
    "float s = 0; for (int i = 0; i < n; ++i) s += expf(p[i] - m); " + each("expf(v - m) / s")
)


@pytest.mark.parametrize("first", ["stable", "plain"])
def test_values_out_of_range_accuse_by_comparison_alone(first: str, tmp_path: Path, audit: Audit) -> None:
    names = ("stable", "plain") if first == "stable" else ("plain", "stable")
    declaration = f"o = op([X, Y], normal, lambda c, i: {{'y': softmax(f(i))}}, [RelL2('y', 1e-5)], row, {names})"
    record = ran(tmp_path, audit, kernel("stable", STABLE) + kernel("plain", SOFTMAX), declaration)
    assert failed(record, "stable") == set()
    assert failed(record, "plain") == ({("error", "huge"), ("finite", "huge")} if first == "stable" else set())
    if first == "plain":
        assert "the first variant, plain, fails finite there as well" in notes(record, "huge")


def test_denormals_are_not_judged_where_a_variant_flushes_them(tmp_path: Path, audit: Audit) -> None:
    flushed = each("fabsf(v) < 1.2e-38f ? 0.f : v")
    declaration = "o = op([X, Y], normal, lambda c, i: {'y': f(i)}, [exact('y')], row, ('whole', 'fast'))\n"
    fast = (
        "from dataclasses import replace\n"
        "o = replace(o, variants=[o.variants[0], replace(o.variants[1], code=Source('kernels/k.cu', "
        "flags=('--use_fast_math',)))])\n"
    )
    cuda = kernel("whole", each("v")) + kernel("fast", flushed)
    assert failed(ran(tmp_path, audit, cuda, declaration), "fast") == {("error", "denormal")}
    other = tmp_path / "other"
    other.mkdir()
    record = ran(other, audit, cuda, declaration + fast)
    assert failed(record, "fast") == set()
    assert "compiled with --use_fast_math" in notes(record, "denormal")


def test_safety_is_judged_in_every_family(tmp_path: Path, audit: Audit) -> None:
    unwritten = each("v").replace("y[r * n + i] = v;", "if (p[i] < 1000) y[r * n + i] = v;")
    declaration = "o = op([X, Y], normal, lambda c, i: {'y': f(i)}, [exact('y')], row)"
    record = ran(tmp_path, audit, kernel("k", unwritten), declaration)
    assert ("workspace", "huge") in failed(record)


def test_a_step_of_the_operator_has_precedence(tmp_path: Path, audit: Audit) -> None:
    declaration = (
        "steps = lambda c, i: {'live': {}, 'zeros': {'x': np.asarray(i['x']) * 2}, 'restore': {}}\n"
        "o = op([X, Y], normal, lambda c, i: {'y': f(i)}, [exact('y')], row, steps=steps)"
    )
    record = ran(tmp_path, audit, kernel("k", each("v")), declaration)
    (case,) = record["cases"]
    assert case["steps"].count("zeros") == 1
    assert case["left_out"]["zeros"] == "the operator has a step of this name"


def test_an_operator_without_a_reference_is_judged_by_comparison(tmp_path: Path, audit: Audit) -> None:
    declaration = "o = op([X, Y], normal, None, [], row, ('k', 'l'), parents={'l': 'k'})"
    cuda = kernel("k", each("v / (v + 3)")) + kernel("l", each("v == 0 ? 7.f : v / (v + 3)"))
    record = ran(tmp_path, audit, cuda, declaration)
    assert failed(record, "k") == set()
    assert ("bytes", "zeros") in failed(record, "l")


def test_what_a_cpu_lacks_on_the_inputs_of_a_family_alone_leaves_the_family_out(tmp_path: Path, audit: Audit) -> None:
    """Conversions of floats beyond an integer's range differ between devices, so the CPU refuses them."""
    declaration = "o = op([X, Y], normal, lambda c, i: {'y': np.trunc(f(i) * 1e7)}, [close('y', 1, 1e-6)], row)"
    record = ran(tmp_path, audit, kernel("k", each("(float)(int)(v * 1e7f)")), declaration)
    assert {audit["verdict"] for audit in record["audits"]} == {"pass"}
    (case,) = record["cases"]
    assert "not supported here" in case["left_out"]["huge"]
    assert "negative" in case["steps"]
    assert "huge" not in case["steps"]
