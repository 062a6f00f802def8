"""The probes of the scalar operator in an audit: sound kernels pass, and faults planted in `control` fail."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from audit import plan as planning
from audit.plan import Selection
from audit.project import find_project
from audit.records.run import RunRecord
from audit.run import run

ROOT = Path(__file__).resolve().parents[2]
SOURCE = "kernels/scalar/control.cu"
NAMES = ("uniform", "position", "heads", "dimensions", "one_hot", "two_keys", "biased", "sparse")


def audit(root: Path, context: int, runs: Path) -> RunRecord:
    """`control` under every probe at one context, in the small geometry."""
    project = find_project(root)
    plan = planning.make_plan(project, "q1", Selection(variants=["control"], probes=NAMES), arch="sm_90", time_limit=60)
    assert {case.probe for case in plan.cases} == set(NAMES)
    axes = {"context": context, "heads": 3, "dim": 64, "page": 48}
    operator, shape = project.shape("q1")
    cases = tuple(operator.case(shape, axes, probe=name, first_step_only=True) for name in NAMES)
    cases = tuple(msgspec.structs.replace(case, arch="sm_90") for case in cases)
    return run(project, msgspec.structs.replace(plan, cases=cases), runs, "test")[0]


def probes(evidence: RunRecord) -> dict[str, str]:
    """The verdict of each probe."""
    results = [result for one in evidence.audits for result in one.results]
    return {
        result.check.removeprefix("probe:"): result.verdict for result in results if result.check.startswith("probe:")
    }


def test_every_probe_is_in_the_plan() -> None:
    assert [probe.name for probe in find_project(ROOT).operators["scalar"].probes] == list(NAMES)


@pytest.mark.parametrize("context", [1, 33, 1030])
def test_control_passes_every_probe(context: int, tmp_path: Path) -> None:
    evidence = audit(ROOT, context, tmp_path)
    assert probes(evidence) == dict.fromkeys(NAMES, "pass")
    assert evidence.summary.passed == len(NAMES)


# fault -> the context, the text of the source, that of a faulty one, and the probes that find it
FAULTS = {
    "scale twice": (
        33,
        "score_scale = scale * k_scale",
        "score_scale = scale * scale * k_scale",
        "position heads two_keys",
    ),
    "heads exchanged by the reducer": (
        33,
        "const int row = head * kPartitions;",
        "const int row = (head + 1) % static_cast<int>(gridDim.x) * kPartitions;",
        "position heads two_keys",
    ),
    "last token dropped": (
        33,
        "length - first < kPartitionTokens ? length - first :",
        "length - first < kPartitionTokens ? length - first - 1 :",
        "uniform position heads one_hot two_keys sparse",
    ),
    "V of a full partition's last token dropped": (
        1030,
        "for (int i = 0; i < tokens; ++i)",
        "for (int i = 0; i < tokens - tokens / 1024; ++i)",
        "uniform heads dimensions one_hot two_keys",
    ),
    "v_scale twice": (33, "(1.0f / sum) * v_scale", "(1.0f / sum) * v_scale * v_scale", " ".join(NAMES)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_shows(fault: str, own_project: Path, tmp_path: Path) -> None:
    context, sound, faulty, caught_by = FAULTS[fault]
    source = own_project / SOURCE
    text = source.read_text()
    assert text.count(sound) == 1
    source.write_text(text.replace(sound, faulty))
    found = probes(audit(own_project, context, tmp_path / "runs"))
    assert {name for name, verdict in found.items() if verdict == "fail"} == set(caught_by.split())
