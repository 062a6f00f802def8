"""Sessions of a GPU's sanitizers, which cannot be run here: each thing that one lacks turns the gate, with why."""

from __future__ import annotations

import shutil
from datetime import date

import msgspec
import pytest

from audit.gate.verdict import Gate
from audit.project import Project, find_project
from audit.records.sanitize import SanitizeRecord, Tool

from .made import RACE, condition, judge, session, write_session, wrong
from .test_decision import SUPPRESSION, only

RULE = """
[[tool.kernel-audit.gate.everyday.sanitizers]]
shapes = ["softmax"]
device = "cuda"
variants = ["control", "fast"]
tools = ["memcheck", "synccheck"]
minimum = { cases = 1, canaries = 1 }
"""
TOOLS: tuple[Tool, ...] = ("memcheck", "synccheck")
CLEAN = {"memcheck softmax on cuda": "2 clean", "synccheck softmax on cuda": "2 clean"}


@pytest.fixture
def asked(project: Project) -> Project:
    """The project with a rule for a GPU's sanitizers, and nothing retained that speaks for it."""
    settings = project.root / "pyproject.toml"
    release = "[tool.kernel-audit.gate.release]"
    settings.write_text(settings.read_text().replace(release, f"{RULE}\n{release}"))
    return find_project(project.root)


def retain(project: Project, evidence: SanitizeRecord) -> None:
    write_session(evidence, project.root / "reports")


def on_device(gate: Gate) -> dict[str, str]:
    """What does not hold of the sanitizers on the GPU."""
    return {name: standing for name, standing in wrong(gate).items() if "cuda" in name and "audits" not in name}


@pytest.mark.parametrize("policy", ["everyday", "release"])
def test_a_whole_session_passes(asked: Project, policy: str) -> None:
    retain(asked, session(asked, backend="cuda", tools=TOOLS))
    gate = judge(asked, policy)
    assert (gate.verdict, wrong(gate)) == ("pass", {})
    assert {name: condition(gate, name).measured for name in CLEAN} == CLEAN
    assert condition(gate, "launches memcheck softmax on cuda").measured == "4"
    assert condition(gate, "canaries synccheck softmax on cuda").required == "all 1 found, at least 1 a session"
    assert condition(gate, "cases of sanitizers softmax on cuda").measured == "1"


def test_without_a_session_it_is_inconclusive(asked: Project) -> None:
    gate = judge(asked)  # the host's own session does not speak for the GPU
    assert (gate.verdict, on_device(gate)) == ("inconclusive", dict.fromkeys(CLEAN, "inconclusive"))
    assert condition(gate, "memcheck softmax on cuda").measured == "0 clean, 2 missing"


def test_a_tool_that_did_not_run(asked: Project) -> None:
    retain(asked, session(asked, backend="cuda", tools=TOOLS[1:]))
    gate = judge(asked)
    assert (gate.verdict, on_device(gate)) == ("inconclusive", {"memcheck softmax on cuda": "inconclusive"})
    assert "no evidence of control in softmax/seed1" in condition(gate, "memcheck softmax on cuda").detail


def test_one_canary_not_found(asked: Project) -> None:
    retain(asked, session(asked, backend="cuda", tools=TOOLS, found=False))
    gate = judge(asked)
    assert gate.verdict == "inconclusive"
    assert on_device(gate) == {
        "synccheck softmax on cuda": "inconclusive",
        "canaries synccheck softmax on cuda": "inconclusive",
    }
    assert condition(gate, "canaries synccheck softmax on cuda").detail == "divergent barrier: what was shown"


def test_fewer_canaries_than_the_policy_asks_for(asked: Project) -> None:
    retain(asked, session(asked, backend="cuda", tools=TOOLS))
    settings = asked.root / "pyproject.toml"
    settings.write_text(settings.read_text().replace("canaries = 1", "canaries = 2"))
    gate = judge(asked)
    names = {f"canaries {tool} softmax on cuda" for tool in TOOLS}
    assert on_device(gate) == dict.fromkeys(names, "inconclusive")
    assert condition(gate, "canaries memcheck softmax on cuda").detail.endswith(": 1 ran")


def test_fewer_cases_than_the_policy_asks_for(asked: Project) -> None:
    retain(asked, session(asked, backend="cuda", tools=TOOLS))
    settings = asked.root / "pyproject.toml"
    settings.write_text(settings.read_text().replace("{ cases = 1, canaries", "{ cases = 2, canaries"))
    assert on_device(judge(asked)) == {"cases of sanitizers softmax on cuda": "inconclusive"}


def test_launches_that_were_not_seen(asked: Project) -> None:
    whole = session(asked, backend="cuda", tools=TOOLS)
    unseen = tuple(msgspec.structs.replace(one, launches=1, verdict="inconclusive") for one in whole.checked[:1])
    summary = msgspec.structs.replace(
        whole.summary, verdict="inconclusive", clean=3, inconclusive=1, launches=7, reasons=("as it was shown",)
    )
    retain(asked, msgspec.structs.replace(whole, checked=(*unseen, *whole.checked[1:]), summary=summary))
    gate = judge(asked)
    assert on_device(gate) == {
        "memcheck softmax on cuda": "inconclusive",
        "launches memcheck softmax on cuda": "inconclusive",
    }
    launches = condition(gate, "launches memcheck softmax on cuda")
    assert (launches.measured, launches.required) == ("3", "4 seen")


@pytest.mark.parametrize(("policy", "standing"), [("everyday", "warn"), ("release", "fail")])
def test_a_stale_source(asked: Project, policy: str, standing: str) -> None:
    retain(asked, session(asked, backend="cuda", tools=TOOLS))
    source = asked.root / "kernels/fast.cu"
    source.write_text(source.read_text() + "\n")
    gate = judge(asked, policy)
    assert {name: on_device(gate)[name] for name in on_device(gate) if "check" in name} == {
        f"sources {tool} softmax on cuda": standing for tool in TOOLS
    }
    assert "kernels/fast.cu has changed" in condition(gate, "sources memcheck softmax on cuda").detail


def test_a_suppression_that_expired_since(asked: Project) -> None:
    settings = asked.root / "pyproject.toml"
    settings.write_text(settings.read_text() + SUPPRESSION.format("2026-11-30"))
    fresh = find_project(asked.root)
    retain(fresh, session(fresh, RACE, backend="cuda", tools=TOOLS))
    shutil.rmtree(only(asked.root / "given", "sanitize.json"))
    write_session(session(fresh), asked.root / "given")
    gate = judge(fresh)
    assert (gate.verdict, wrong(gate)) == ("pass", {})
    assert [found.accepted for found in gate.found] == ["the other threads have left"]
    late = judge(fresh, today=date(2026, 12, 1))
    assert wrong(late) == {"synccheck softmax on cuda": "fail", "suppressions": "fail"}
    assert "expired on 2026-11-30" in condition(late, "suppressions").detail
