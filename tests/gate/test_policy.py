"""What a policy must say to be one, and what it inherits."""

from __future__ import annotations

from pathlib import Path

import pytest

from audit.errors import ProjectError
from audit.gate.policy import load_policy
from audit.project import Project, find_project

from ..conftest import ROOT


def test_release_is_everyday_with_one_word_changed(project: Project) -> None:
    everyday, release = load_policy(project, "everyday"), load_policy(project, "release")
    assert (everyday.stale, release.stale) == ("warn", "fail")
    assert everyday.audits == release.audits
    assert everyday.sanitizers == release.sanitizers


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('stale = "warn"', 'stale = "ignore"', "Invalid enum value 'ignore'"),
        ('stale = "warn"', 'stail = "warn"', "unknown field `stail`; known keys: audits, sanitizers, retained"),
        ('device = "cuda"', 'device = "rocm"', "Invalid enum value 'rocm'"),
        ('tools = ["synccheck"]', 'tools = ["helgrind"]', "Invalid enum value 'helgrind'"),
        ('shapes = ["softmax"]', 'shapes = ["q6"]', "shapes: expected some of softmax, but got 'q6'"),
        ('shapes = ["softmax"]', "", "required field `shapes`"),
        ("minimum = { cases = 2", 'minimum = { cases = "2"', "Expected `int`, got `str`"),
        ('stale = "warn"', 'retained = ["../elsewhere"]', "expected a folder inside the project"),
    ],
)
def test_what_is_not_a_policy_is_refused(project: Project, old: str, new: str, words: str) -> None:
    settings = project.root / "pyproject.toml"
    text = settings.read_text()
    assert old in text
    settings.write_text(text.replace(old, new))
    with pytest.raises(ProjectError, match=words) as refused:
        load_policy(find_project(project.root), "everyday")
    assert "gate.everyday]" in str(refused.value)


def test_a_circle_is_refused(project: Project) -> None:
    settings = project.root / "pyproject.toml"
    settings.write_text(settings.read_text().replace('stale = "warn"', 'like = "release"'))
    with pytest.raises(ProjectError, match="like: expected another policy"):
        load_policy(find_project(project.root), "release")


def test_an_unknown_policy_names_those_there_are(project: Project) -> None:
    with pytest.raises(ProjectError, match=r"a policy of \['everyday', 'release'\]"):
        load_policy(project, "nightly")


def test_a_project_without_policies_says_what_to_write(softmax_project: Path) -> None:
    with pytest.raises(ProjectError, match=r"expected a table \[tool.kernel-audit.gate.everyday\]"):
        load_policy(find_project(softmax_project), "everyday")


@pytest.mark.parametrize("name", ["everyday", "release"])
def test_this_project_has_both(name: str) -> None:
    policy = load_policy(find_project(ROOT), name)
    shapes = {shape for rule in policy.audits if rule.device == "cuda" for shape in rule.shapes}
    assert shapes == {f"q{rows}" for rows in range(1, 9)}
    assert policy.stale == {"everyday": "warn", "release": "fail"}[name]
    assert {tool for rule in policy.sanitizers for tool in rule.tools} >= {"memcheck", "synccheck"}
    for rule in policy.audits:
        for shape in rule.shapes:
            assert rule.plan(find_project(ROOT), shape).audits > 0
