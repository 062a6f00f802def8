"""An exception that nothing expected accuses no kernel: the project's line is named, or this tool is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from audit.cli.crash import describe_crash
from audit.cli.main import main
from audit.environment_reads import PROJECT

from ..conftest import Ran

Audit = Callable[..., Ran]


def test_a_line_of_the_project(softmax_project: Path, audit: Audit) -> None:
    source = softmax_project / "kernels/softmax.py"
    text = source.read_text()
    broken = "launches=lambda c: [Launch"
    assert text.count(broken) == 1
    source.write_text(text.replace(broken, "launches=lambda c: {}[c.n] or [Launch"))
    ran = audit(softmax_project, "freeze", "frozen", "--variant", "control")
    (line,) = [number for number, words in enumerate(source.read_text().splitlines(), 1) if "{}[c.n]" in words]
    assert (ran.code, ran.out) == (2, "")
    (last,) = ran.err.splitlines()
    assert "launches of control raised KeyError" in last
    assert f"softmax.py:{line})" in last


def test_a_line_of_the_project_outside_of_a_hook() -> None:
    module = {"__name__": f"{PROJECT}softmax"}
    exec(compile("\n\ndef late(): return {}['n']", "softmax.py", "exec"), module)
    with pytest.raises(KeyError) as raised:
        module["late"]()  # type: ignore[operator]
    sentence, code = describe_crash(raised.value)
    assert code == 2
    assert sentence.startswith("softmax.py:3: this line of the project raised KeyError")


def test_a_bug_of_this_tool(
    softmax_project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("audit.plan.check_arch", lambda _: None)  # an AttributeError in make_plan
    monkeypatch.setattr("sys.argv", ["audit", "run", "--project", str(softmax_project)])
    with pytest.raises(SystemExit) as ended:
        main()
    captured = capsys.readouterr()
    assert (ended.value.code, captured.out) == (3, "")
    *lines, last = captured.err.splitlines()
    assert "Traceback" in lines[0]
    assert "AttributeError" in lines[-1]
    assert last.endswith("a bug in kernel-audit; nothing was judged. Report it with the lines above")
