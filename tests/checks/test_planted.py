"""Each check catches a fault planted in a user's softmax, and says where."""

from __future__ import annotations

from pathlib import Path

import pytest

from audit import plan as planning
from audit.checks import Result
from audit.plan import Selection
from audit.project import find_project
from audit.records.run import RunRecord
from audit.run import run

STORE = "out[i] = expf(in[i] - top) / total;"


def audit(project: Path, time_limit: float = 60, variants: tuple[str, ...] = ("fast",)) -> RunRecord:
    found = find_project(project)
    selection = Selection(variants=variants, axes={"n": [33]})
    plan = planning.make_plan(found, "softmax", selection, arch="sm_90", time_limit=time_limit)
    return run(found, plan, project / "runs", "test")[0]


def failures(evidence: RunRecord, variant: str = "fast") -> dict[str, Result]:
    """The first failed result of each check."""
    found: dict[str, Result] = {}
    for one in evidence.audits:
        for result in one.results:
            if one.variant == variant and result.verdict == "fail":
                found.setdefault(result.check.partition(":")[0], result)
    return found


def plant(project: Path, old: str, new: str, file: str = "fast.cu") -> None:
    source = project / "kernels" / file
    text = source.read_text()
    assert old in text
    source.write_text(text.replace(old, new))


def test_clean_twin(softmax_project: Path) -> None:
    evidence = audit(softmax_project)
    assert evidence.summary.verdict == "pass"
    assert {result.check.partition(":")[0] for result in evidence.audits[1].results} == set(evidence.plan.checks) - {
        "relation", "probe", "graph", "host"
    }  # fmt: skip
    assert evidence.summary.vacuous == ()


@pytest.mark.parametrize(
    ("check", "old", "new", "words", "where"),
    [
        ("workspace", STORE, f"if (i != 5) {STORE}", "not written", "y[rows=0, n=5]"),
        (
            "guards",
            STORE,
            f"{{ {STORE} if (i == 0) y[(long long)gridDim.x * n] = 1; }}",
            "0 bytes past the end of y (924 bytes)",
            "y",
        ),
        (
            "inputs",
            STORE,
            f"{{ {STORE} if (i == 3) const_cast<float*>(in)[i] = 2; }}",
            "of the input x",
            "x[rows=0, n=3]",
        ),
        (
            "finite",
            STORE,
            "out[i] = i == 7 ? NAN : expf(in[i] - top) / total;",
            "NaN or infinite",
            "y[rows=0, n=7]",
        ),
        ("bytes", "/ total", "* (1.0f / total)", " ulp, y[", None),
        ("repeat", STORE, "out[i] = 1e-9f * (__float_as_uint(out[i]) % 97);", "differ", None),
        ("error", STORE, "out[i] = 1.001f * expf(in[i] - top) / total;", "outside the bound", None),
    ],
)
def test_planted_fault(softmax_project: Path, check: str, old: str, new: str, words: str, where: str | None) -> None:
    plant(softmax_project, old, new)
    evidence = audit(softmax_project)
    found = failures(evidence)
    assert evidence.summary.verdict == "fail"
    assert words in found[check].detail
    assert where is None or found[check].where == where
    assert not failures(evidence, "control")


def test_a_race_that_the_usual_schedule_hides(softmax_project: Path) -> None:
    """Thread 32 reads what thread 31 wrote with no barrier between: in order that works."""
    plant(
        softmax_project,
        "const float total = tree_sum(scratch, t);",
        "float total = tree_sum(scratch, t); __syncthreads(); scratch[t] = total; if (t == 32) total = scratch[31];",
    )
    found = failures(audit(softmax_project))
    assert set(found) == {"repeat"}
    assert "live under another schedule" in found["repeat"].detail


def test_an_input_changed_in_one_step_alone(softmax_project: Path) -> None:
    """The next step would load the input afresh and hide it."""
    source = softmax_project / "kernels/softmax.py"
    text = source.read_text()
    steps = 'steps=lambda c, x: {"live": {}, "zero": {"x": 0 * x["x"]}, "restore": {}},\n    variants=['
    source.write_text(text.replace("variants=[", steps))
    plant(softmax_project, STORE, f"{{ {STORE} if (in[i] == 0) const_cast<float*>(in)[i] = 1; }}")
    found = failures(audit(softmax_project))
    assert set(found) == {"inputs"}
    assert found["inputs"].step == "zero"


def test_a_fault_in_both_arms_is_left_to_the_error(softmax_project: Path) -> None:
    for file in ("control.cu", "fast.cu"):
        plant(softmax_project, "/ total", "/ (1.001f * total)", file)
    evidence = audit(softmax_project)
    assert set(failures(evidence)) == set(failures(evidence, "control")) == {"error"}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (STORE, "*(volatile int*)16 = 1;", "address 0x10, which no buffer covers"),
        ("top = tree_max(scratch, t);", "top = tree_max(scratch, t); if (t == 5) __syncthreads();", "barrier"),
        ("__shared__ float scratch[128];", "__shared__ float scratch[128]; assert(n != 33);", "assert"),
    ],
)
def test_a_crash_is_a_finding_with_its_reason(softmax_project: Path, old: str, new: str, words: str) -> None:
    plant(softmax_project, old, new)
    evidence = audit(softmax_project)
    assert set(failures(evidence)) == {"completion"}
    assert words in failures(evidence)["completion"].detail


def test_what_a_cpu_cannot_build_is_no_failure_of_the_kernel(softmax_project: Path) -> None:
    plant(softmax_project, STORE, 'asm("mov.u32 %0, %%laneid;" : "=r"(n));')
    evidence = audit(softmax_project)
    assert not failures(evidence)
    (result,) = evidence.audits[1].results
    assert (result.check, result.verdict) == ("completion", "inconclusive")
    assert result.detail.startswith("not supported here: kernels/fast.cu:")
    assert result.detail.count("mov.u32") == 1 + result.detail.count("|      ")  # once, beside the line it quotes
    assert evidence.summary.verdict == "inconclusive"


def test_a_hang_is_a_time_out(softmax_project: Path) -> None:
    plant(softmax_project, STORE, "{ volatile bool waiting = true; while (waiting) {} }")
    evidence = audit(softmax_project, time_limit=3)
    assert "time-out: killed after 3 s" in failures(evidence)["completion"].detail


def test_a_crashed_parent_leaves_the_bytes_inconclusive(softmax_project: Path) -> None:
    plant(softmax_project, STORE, "*(volatile int*)16 = 1;", "control.cu")
    evidence = audit(softmax_project)
    assert set(failures(evidence, "control")) == {"completion"}
    (result,) = [result for result in evidence.audits[1].results if result.check == "bytes"]
    assert result.verdict == "inconclusive"
    assert evidence.audits[1].verdict == "inconclusive"


def test_a_variant_compared_with_itself_is_found_out(softmax_project: Path) -> None:
    plant(softmax_project, 'variant("fast", "control")', 'Variant("fast", Source("kernels/control.cu"), '
          'parent="control", launches=variant("control").launches)', "softmax.py")  # fmt: skip
    found = failures(audit(softmax_project))
    assert "compared with itself" in found["identity"].detail


def test_nothing_to_compare_with_is_inconclusive(softmax_project: Path) -> None:
    plant(softmax_project, 'bounds=[RelL2("y", 1e-6)],', "", "softmax.py")
    evidence = audit(softmax_project, variants=("control",))
    assert [one.verdict for one in evidence.audits] == ["inconclusive"]
    assert evidence.summary.verdict == "inconclusive"


def test_without_any_bound_a_parent_is_only_a_baseline(softmax_project: Path) -> None:
    plant(softmax_project, 'bounds=[RelL2("y", 1e-6)],', "", "softmax.py")
    evidence = audit(softmax_project)
    assert [variant.baseline_only for variant in evidence.plan.variants] == [True, False]
    assert evidence.summary.verdict == "pass"
