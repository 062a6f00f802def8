"""Accepted findings: what the file must say, what it accepts, and that an entry which is no longer true fails."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from audit.errors import ProjectError
from audit.gate import baseline
from audit.project import Project, find_project

from .made import judge, rewrite, wrong
from .test_decision import fails, only

REASON = 'reason = "known"\n'
EXPIRES = "expires = 2026-12-31\n"
WHAT = 'check = "check/bytes"\nvariant = "fast"\ncase = "a"\nfound = "fail"\n'
ENTRY = f'[[accepted]]\nfingerprint = "{{}}"\n{WHAT}{REASON}{EXPIRES}'


def with_baseline(project: Project, text: str) -> Project:
    settings = project.root / "pyproject.toml"
    table = "[tool.kernel-audit.gate.everyday]"
    settings.write_text(
        settings.read_text().replace(table, f'[tool.kernel-audit.gate]\nbaseline = "gate.toml"\n{table}')
    )
    (project.root / "gate.toml").write_text(text)
    return find_project(project.root)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f'[[accepted]]\nfingerprint = "0123456789abcdef"\n{WHAT}{EXPIRES}', "required field `reason`"),
        (f'[[accepted]]\nfingerprint = "0123456789abcdef"\n{WHAT}{REASON}', "required field `expires`"),
        (f"[[accepted]]\n{WHAT}{REASON}{EXPIRES}", "required field `fingerprint`"),
        *(
            (ENTRY.format("0123456789abcdef").replace(line, ""), f"required field `{line.split()[0]}`")
            for line in WHAT.splitlines(keepends=True)
        ),
        (ENTRY.format("0123456789abcdef").replace('"known"', '"  "'), "reason"),
        (ENTRY.format("*"), "fingerprint"),
        (ENTRY.format("0123456789abcdef").replace("2026-12-31", '"soon"'), "expires"),
        (ENTRY.format("0123456789abcdef") + "colour = 1\n", "unknown field `colour`"),
        (ENTRY.format("0123456789abcdef") * 2, "accepted twice"),
        ("[[accepted]", "gate.toml"),
    ],
)
def test_what_is_incomplete_is_refused(project: Project, text: str, words: str) -> None:
    with pytest.raises(ProjectError, match=words):
        baseline.load_baseline(with_baseline(project, text))


def test_a_baseline_that_is_not_there_is_refused(project: Project) -> None:
    with_baseline(project, "")
    Path(project.root / "gate.toml").unlink()
    with pytest.raises(ProjectError, match=r"gate\.toml"):
        baseline.load_baseline(find_project(project.root))


def test_an_accepted_finding_warns_and_expires(project: Project) -> None:
    rewrite(only(project.root / "reports"), fails)
    (found,) = judge(project).found
    with_baseline(project, f"{found.entry}\n{REASON}{EXPIRES}")
    gate = judge(project)
    assert (gate.verdict, wrong(gate)) == ("pass", {"audits softmax on cuda": "warn"})
    assert [one.accepted for one in gate.found] == ["known"]
    late = judge(project, today=date(2027, 1, 1))
    assert wrong(late) == {"audits softmax on cuda": "fail", "baseline": "fail"}


def test_an_entry_that_matches_nothing_fails(project: Project) -> None:
    with_baseline(project, ENTRY.format("0123456789abcdef"))
    gate = judge(project)
    assert (gate.verdict, wrong(gate)) == ("fail", {"baseline": "fail"})


def test_the_gate_never_writes_it(project: Project) -> None:
    text = ENTRY.format("0123456789abcdef")
    rewrite(only(project.root / "reports"), fails)
    with_baseline(project, text)
    assert judge(project).verdict == "fail"
    assert (project.root / "gate.toml").read_text() == text
