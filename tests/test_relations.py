"""A softmax whose sums run in another order, under each relation: right and not the same, and a wrong twin of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from audit import plan as planning
from audit.checks import worst
from audit.errors import PlanError, ProjectError
from audit.plan import Selection
from audit.project import Project, find_project
from audit.records.run import RunRecord
from audit.records.verify import verify
from audit.relations import Bitwise, NoWorse, Relation, Ulps, Unrelated, Within, relation_from, relation_text
from audit.run import run

from .conftest import ROOT
from .gate import made

ORDERED = """
extern "C" __global__ void softmax_ordered(const float* x, float* y, int n) {
    const float* in = x + (long long)blockIdx.x * n;
    float top = -INFINITY, sum = 0.0f;
    for (int i = 0; i < n; i++) top = in[i] > top ? in[i] : top;
    for (int end = n; end > LAST; end -= 64) {
        float part = 0.0f;
        for (int i = end - 1; i >= LAST && i >= end - 64; i--) part += expf(in[i] - top);
        sum += part;
    }
    for (int i = threadIdx.x; i < n; i += 128) y[(long long)blockIdx.x * n + i] = expf(in[i] - top) / sum;
}
"""
RELATIONS: tuple[Relation, ...] = (Ulps(16), Within(1e-7, 1e-6), NoWorse(8.0), Unrelated())


def project(folder: Path, relation: str, *, skipped: int = 0) -> Project:
    """The softmax project with a variant that sums from the last element on; a wrong one skips some."""
    shutil.copytree(ROOT / "tests/projects/softmax", folder)
    (folder / "kernels/ordered.cu").write_text(ORDERED.replace("LAST", str(skipped)))
    file = folder / "kernels/softmax.py"
    text = file.read_text()
    text = text.replace("def variant(name, parent=None):", "def variant(name, parent=None, **more):")
    text = text.replace("parent=parent,", "parent=parent, **more,")
    text = text.replace('variant("wrong", "control")', f'variant("ordered", "control", relation={relation})')
    text = text.replace("from audit.spec", "from audit.relations import *\nfrom audit.spec")
    file.write_text(text)
    return find_project(folder)


def audited(found: Project) -> tuple[RunRecord, Path]:
    selection = Selection(variants=["ordered"], axes={"n": [4096]}, seeds=[1, 2])
    plan = planning.make_plan(found, "softmax", selection, arch="sm_90", time_limit=60)
    return run(found, plan, found.root / "runs", "test")


def verdict(record: RunRecord) -> str:
    return worst([audit.verdict for audit in record.audits if audit.variant == "ordered"])


def test_another_order_of_sums_is_not_bitwise(tmp_path: Path) -> None:
    record, _ = audited(project(tmp_path / "p", "Bitwise()"))
    assert verdict(record) == "fail"


@pytest.mark.parametrize("relation", RELATIONS, ids=relation_text)
def test_a_right_variant_passes_and_its_wrong_twin_fails(tmp_path: Path, relation: Relation) -> None:
    good = project(tmp_path / "good", repr(relation))
    record, folder = audited(good)
    (planned,) = [variant for variant in record.plan.variants if variant.name == "ordered"]
    assert (verdict(record), planned.relation) == ("pass", relation_text(relation))
    assert verify(folder, good).describe().startswith("complete, unaltered"), verify(folder, good).describe()
    shown = [
        one.detail
        for audit in record.audits
        for one in (*audit.results, *audit.notes)
        if audit.variant == "ordered" and one.check == "relation"
    ]
    assert all("as accurate as its parent, not the same" in text or "less accurate" in text for text in shown)
    assert len(shown) == 4
    wrong, _ = audited(project(tmp_path / "wrong", repr(relation), skipped=1))
    assert verdict(wrong) == "fail"


@pytest.mark.parametrize(
    ("forged", "what"),
    [
        ("unrelated", "is not the one that its declaration resolved to"),
        ("bitwise", "is not the one that its declaration resolved to"),
        ("ulps=1000000", "is not the one that its declaration resolved to"),
    ],
)
def test_a_relation_exchanged_in_the_record_is_a_contradiction(tmp_path: Path, forged: str, what: str) -> None:
    found = project(tmp_path / "p", "Ulps(16)")
    _, folder = audited(found)

    def forge(record: RunRecord) -> RunRecord:
        variants = tuple(
            msgspec.structs.replace(one, relation=forged) if one.name == "ordered" else one
            for one in record.plan.variants
        )
        return msgspec.structs.replace(record, plan=msgspec.structs.replace(record.plan, variants=variants))

    made.rewrite(folder, forge)
    checked = verify(folder, found)
    assert checked.verdict == "fail"
    assert what in checked.describe()


def test_a_result_of_the_relation_left_out_of_a_record_is_missed(tmp_path: Path) -> None:
    found = project(tmp_path / "p", "Ulps(16)")
    _, folder = audited(found)

    def forge(record: RunRecord) -> RunRecord:
        audits = tuple(
            msgspec.structs.replace(audit, results=tuple(one for one in audit.results if one.check != "relation"))
            for audit in record.audits
        )
        return msgspec.structs.replace(record, audits=audits)

    made.rewrite(folder, forge)
    assert "relation in live, restore, which it lacks" in verify(folder, found).describe()


def test_a_looser_relation_makes_a_record_stale(tmp_path: Path) -> None:
    found = project(tmp_path / "p", "Ulps(16)")
    _, folder = audited(found)
    moved = shutil.move(folder, tmp_path / "kept")
    for relation in ("Ulps(17)", "Bitwise()", "Unrelated()"):
        name = relation.partition("(")[0].lower()
        changed = verify(Path(moved), project(tmp_path / f"{name}{relation[-3:-1].strip('(')}", relation))
        assert "relation of ordered" in changed.describe(), changed.describe()


@pytest.mark.parametrize(
    ("relation", "what"),
    [
        ("Ulps(-1)", "relation.n: expected an integer of at least 0, but got -1"),
        ("Ulps(1.5)", "relation.n: expected an int, but got 1.5"),
        ("Within(float('nan'), 0.0)", "relation.atol: expected a finite number of at least 0"),
        ("NoWorse(0.5)", "relation.factor: expected a finite number of at least 1, but got 0.5"),
        ("NoWorse(2.0, 'exact')", "relation.reference: expected a reference of 'fp64', but got 'exact'"),
        ("'ulps'", "relation: expected a Bitwise or a Ulps"),
        ("{}", "relation: expected a relation, or at least one by the name"),
        ("{'y': 2}", "relation['y']: expected a Bitwise"),
    ],
)
def test_what_is_no_relation_is_refused_when_the_project_loads(tmp_path: Path, relation: str, what: str) -> None:
    with pytest.raises(ProjectError) as refused:
        _ = project(tmp_path / "p", relation).operators
    assert what in str(refused.value)


def test_a_relation_without_a_parent_is_refused(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "tests/projects/softmax", tmp_path / "p")
    file = tmp_path / "p/kernels/softmax.py"
    file.write_text(
        "from audit import Ulps\n" + file.read_text().replace("parent=parent,", "parent=parent, relation=Ulps(1),")
    )
    with pytest.raises(ProjectError, match="expected the default where there is no parent"):
        _ = find_project(tmp_path / "p").operators


@pytest.mark.parametrize("relation", [Bitwise(), Ulps(2), Within(1e-5, 1e-6), NoWorse(1.5), Unrelated()])
def test_a_relation_in_words_is_read_back(relation: Relation) -> None:
    assert relation_from(relation_text(relation)) == relation


def test_relations_by_buffer_say_what_the_others_are() -> None:
    assert relation_text({"y": Ulps(2), "a": Unrelated()}) == "a: unrelated, y: ulps=2, others: bitwise"


@pytest.mark.parametrize(
    "text", ["", "ulps", "ulps=", "ulps=-1", "ulps=1.5", "within=1", "within=nan,1", "no-worse=0.9", "bitwise=1", "x=1"]
)
def test_other_words_are_refused(text: str) -> None:
    with pytest.raises(PlanError, match="--relation: expected bitwise, ulps=N"):
        relation_from(text)
