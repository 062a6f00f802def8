"""A copy of this very project with the evidence that a GPU left of it, and a policy that asks for what is there."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from audit.plan import Plan
from audit.project import find_project
from audit.records import packing, sanitize
from audit.records import run as run_record
from audit.records.verify import find_records

from ..conftest import ROOT

POLICY = """
[tool.kernel-audit]
kernels = "kernels"
references = "references"
captures = "fixtures/captures"

[tool.kernel-audit.gate.everyday]
stale = "warn"

[[tool.kernel-audit.gate.everyday.audits]]
shapes = ["q1"]
device = "cuda"
variants = {variants}
contexts = [129]

[[tool.kernel-audit.gate.everyday.audits]]
shapes = ["q1"]
device = "cuda"
variants = {variants}
captures = ["all"]
minimum = {{ captures = 9 }}

[tool.kernel-audit.gate.release]
like = "everyday"
stale = "fail"
"""
HOST = """
[[tool.kernel-audit.gate.everyday.audits]]
shapes = ["q1"]
variants = ["control", "shared_kv"]
contexts = [1]
"""
SESSION = """
[[tool.kernel-audit.gate.everyday.sanitizers]]
shapes = ["{shape}"]
device = "cuda"
variants = {variants}
tools = {tools}
cases = {cases}
"""
ADMISSIONS = """

for _operator, _recorded in {recorded}.items():
    for _name, _admission in ADMISSIONS[_operator].items():
        if _admission.status == "admitted" and _name not in _recorded:
            ADMISSIONS[_operator][_name] = _admission._replace(status="experimental")
"""


def newest(shape: str = "q1") -> Path:
    """The newest evidence of a shape on a GPU that is retained, of its whole default plan."""
    found = []
    for file in (ROOT / "reports").rglob(f"{run_record.KIND.file}*"):
        plan = json.loads(packing.read_unpacked(file.parent, run_record.PLAN))
        if (plan["shape"], plan["backend"], plan["pruned"]) == (shape, "cuda", False):
            found.append(file.parent)
    return max(found, key=lambda folder: folder.name)


def newest_session() -> Path:
    """The newest retained session of a GPU's sanitizers that passed."""
    found = []
    for file in (ROOT / "reports").rglob(f"{sanitize.KIND.file}*"):
        record = sanitize.KIND.load(file)
        if record.plan.backend == "cuda" and record.summary.verdict == "pass":
            found.append(file.parent)
    return max(found, key=lambda folder: folder.name)


def copy(home: Path) -> Path:
    """The project with the newest evidence of q1, and all that its variants name as what admits or closes them."""
    for name in ("kernels", "references", "fixtures/captures"):
        shutil.copytree(ROOT / name, home / name, ignore=shutil.ignore_patterns("__pycache__"))
    project = find_project(ROOT)
    named = {
        ROOT / folder
        for operator in project.operators.values()
        for variant in operator.variants
        for folder in variant.evidence
    }
    records = {record for folder in named if folder.is_dir() for record in find_records(folder)}
    few = {record for record in records if re.search("-(q1|q6)-", record.name)}  # of each topic and operator
    kept = sorted({newest(), *few})
    for folder in kept:
        shutil.copytree(folder, home / folder.relative_to(ROOT))
    settle(home, [run_record.KIND.load(folder).plan for folder in kept if packing.lies(folder, run_record.KIND.file)])
    ran = {variant.name for variant in run_record.KIND.load(newest()).plan.variants}
    live = [v.name for v in project.operators["scalar"].variants if v.status != "closed" and v.name in ran]
    assert {"control", "shared_kv"} <= set(live)
    (home / "pyproject.toml").write_text(POLICY.format(variants=json.dumps(live)))
    return home


def settle(home: Path, plans: list[Plan]) -> None:
    """A variant that was admitted, or made a default, after the newest evidence is neither in the copy."""
    project = find_project(ROOT)
    recorded = {
        operator: {variant.name for plan in plans if plan.operator == operator for variant in plan.variants}
        for operator in project.operators
    }
    admission = home / "kernels/admission.py"
    admission.write_text(admission.read_text() + ADMISSIONS.format(recorded=recorded))
    for operator in project.operators.values():
        if operator.default not in recorded[operator.name]:
            (*_, last) = [v.name for v in operator.variants if v.name in recorded[operator.name]]
            file = home / project.declared_in(operator.name).relative_to(ROOT)
            text, plain = file.read_text(), f'default="{operator.default}"'
            assert text.count(plain) == 1
            file.write_text(text.replace(plain, f'default="{last}"'))


def add(home: Path, rule: str) -> None:
    """Add a rule to the policy `everyday`."""
    settings = home / "pyproject.toml"
    release = "[tool.kernel-audit.gate.release]"
    settings.write_text(settings.read_text().replace(release, f"{rule}\n{release}"))


def add_session(home: Path) -> None:
    """The newest session of a GPU's sanitizers, and a rule that asks for all that it ran."""
    folder = newest_session()
    if not (home / folder.relative_to(ROOT)).is_dir():
        shutil.copytree(folder, home / folder.relative_to(ROOT))
    plan = sanitize.KIND.load(folder).plan
    rule = SESSION.format(
        shape=plan.shape,
        variants=json.dumps(plan.variants),
        tools=json.dumps(plan.tools),
        cases=json.dumps([case.id for case in plan.cases]),
    )
    add(home, rule)
