"""Nothing that others wrote moves a terminal's cursor, turns round text, or commands GitHub's runner, in any output."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.gate.formats import FORMATS
from audit.gate.formats.github import commands
from audit.gate.verdict import SCHEMA, Condition, Gate, GateFinding, SourceLine, overall
from audit.printable import one_line, printable, printable_json, without_commands
from audit.records import folder as folders

from ..conftest import ROOT, Ran

MOVES = "\x00\x07\x08\x1b[2J\x7f\x9b31m\x85\u200b\u200e\u202e\u2028\u2066\ufeff\U000e0041"
COMMANDS = (
    "\n::error::planted\r::set-output name=a::b\n  \t::add-mask::c\n\u3000::stop-commands::d\n##[set-env name=x]y"
)
HOSTILE = f"{MOVES}{COMMANDS}"
COMMAND = re.compile(r"^\s*::|##\[", re.MULTILINE)
OURS = re.compile(r"::(?:error|warning) (?:file=|title=)")
TERMINAL = "audit/cli/terminal.py"
NOTICE = "audit/records/folder.py"
CHILDREN = ("audit/backends/replay.py", "audit/bench/worker.py", "audit/sanitize/device/target.py")


def harmless(text: str) -> bool:
    """Whether a text holds nothing that a terminal or a runner obeys."""
    return (
        not COMMAND.search(text)
        and not set(text) & set(MOVES.replace("[2J", "").replace("31m", ""))
        and "\r" not in text
    )


@given(st.text(st.sampled_from(HOSTILE + "ab: \\#[")))
def test_any_text_becomes_harmless_and_stays_readable(text: str) -> None:
    assert harmless(printable(text))
    assert harmless(one_line(text))
    assert printable(text).count("a") >= text.count("a")


@given(
    st.recursive(st.text(st.sampled_from(HOSTILE + "a")), lambda each: st.dictionaries(st.text(), each), max_leaves=4)
)
def test_json_becomes_harmless_and_keeps_its_meaning(value: object) -> None:
    shown = printable_json(msgspec.json.encode(value))
    assert json.loads(shown) == value
    assert harmless(shown)
    assert "\n" not in shown


def gate() -> Gate:
    conditions = (Condition(f"audits {HOSTILE}", HOSTILE, HOSTILE, "fail", HOSTILE, HOSTILE),)
    found = (
        GateFinding(
            f"check/{HOSTILE}",
            "error",
            HOSTILE,
            HOSTILE,
            HOSTILE,
            (SourceLine(HOSTILE, 3, HOSTILE),),
            "0" * 16,
            HOSTILE,
        ),
    )
    return Gate(
        schema=SCHEMA, kind="gate", tool="0", policy=HOSTILE, started="2026-11-01T10:00:00+00:00", commit=HOSTILE,
        verdict=overall(conditions), conditions=conditions, found=found, evidence=(HOSTILE,),
    )  # fmt: skip


@pytest.mark.parametrize("kind", list(FORMATS))
def test_every_format_of_the_gate_is_harmless(kind: str) -> None:
    rendered = without_commands(FORMATS[kind](gate()))  # as it goes to stdout
    assert harmless(rendered), [found[0] for found in COMMAND.finditer(rendered)]
    if kind in ("json", "sarif"):
        json.loads(rendered)
    if kind == "junit":
        ET.fromstring(rendered)


def test_a_workflow_command_is_one_line_of_our_own() -> None:
    lines = commands(gate())
    assert lines
    for line in lines:
        assert OURS.match(line)
        assert harmless(line.removeprefix("::"))
        assert "\n" not in line


def prints(tree: ast.AST) -> list[int]:
    """Lines that write to stdout or stderr by themselves."""
    ways = (
        "print",
        "click.echo",
        "click.secho",
        "sys.stdout.write",
        "sys.stderr.write",
        "traceback.print_exc",
        "error.show",
    )
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call.lineno for call in calls if ast.unparse(call.func) in ways]


def test_there_is_one_way_out() -> None:
    """Of all commands; the programs that they run as children have their streams read by their parents."""
    others = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted((ROOT / "audit").rglob("*.py"))
        if str(path.relative_to(ROOT)) not in (TERMINAL, NOTICE, *CHILDREN)
        for line in prints(ast.parse(path.read_text()))
    ]
    shown = [line for line in others if not line.startswith("audit/cli/main.py")]  # click's own message, into a text
    assert shown == []
    assert len(others) == 1
    assert prints(ast.parse((ROOT / TERMINAL).read_text()))


def test_a_page_that_was_not_written_is_reported_harmlessly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The one line that a record's folder writes by itself."""
    assert len(prints(ast.parse((ROOT / NOTICE).read_text()))) == 1

    def fail() -> dict[str, bytes]:
        raise ValueError(HOSTILE)

    folders.add_pages(tmp_path / "a\n::error::x", fail)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "was not written" in said
    assert harmless(said)


def test_a_compilers_message_is_no_command(softmax_project: Path, audit: Callable[..., Ran]) -> None:
    kernel = softmax_project / "kernels/control.cu"
    kernel.write_text(
        f"{kernel.read_text()}\n#error \x1b[31m\\\n::error::planted\n::set-output name=a::b\n##[error]c\n"
    )
    ran = audit(softmax_project, "run", "--axis", "n=33", GITHUB_ACTIONS="true")
    assert ran.code in (1, 3)
    assert "planted" in ran.out
    assert harmless(ran.out)
    assert harmless(ran.err)
    assert harmless(audit(softmax_project, "run", "--axis", "n=33", "--json").out)


def test_a_kernels_output_is_no_command(softmax_project: Path, audit: Callable[..., Ran]) -> None:
    kernel = softmax_project / "kernels/control.cu"
    text = kernel.read_text()
    says = '  if (threadIdx.x == 0) { printf("::error::planted\\n\\x1b[2J##[error]x\\n"); }\n'
    at = text.index("{", text.index("__global__")) + 1
    kernel.write_text(f"#include <cstdio>\n{text[:at]}\n{says}{text[at:]}")
    ran = audit(softmax_project, "run", "--axis", "n=33", "--variant", "control")
    assert harmless(ran.out)
    assert harmless(ran.err)


@pytest.mark.parametrize(
    "words",
    [("run", "--shape", HOSTILE[1:]), ("verify", HOSTILE[1:]), (HOSTILE[1:],)],
)
def test_words_of_the_command_line_come_back_harmless(
    softmax_project: Path, audit: Callable[..., Ran], words: tuple[str, ...]
) -> None:
    ran = audit(softmax_project, *words)
    assert ran.code == 2
    assert ran.err
    assert harmless(ran.err)


def test_the_path_of_a_project_comes_back_harmless(softmax_project: Path, audit: Callable[..., Ran]) -> None:
    hostile = softmax_project.parent / "a\x1b[31m\n::error::x"
    shutil.move(softmax_project, hostile)
    for words in (("list",), ("verify", "."), ("report", "--index", ".")):
        ran = audit(hostile, *words)
        assert harmless(ran.out + ran.err), ran.out + ran.err
    (hostile / "kernels/softmax.py").write_text('raise ValueError("\\x1b[31m\\n::error::x")')
    ran = audit(hostile, "list")
    assert ran.code == 2
    assert harmless(ran.out + ran.err)


def test_a_traceback_of_the_project_is_harmless() -> None:
    """The crash of last resort prints the exception's own text."""
    code = (
        "import sys, importlib; m = importlib.import_module('audit.cli.main'); sys.argv=['audit', 'list']\n"
        "def crash(*a, **k): raise RuntimeError('\\x1b[31m\\n::error::x')\n"
        "m.cli.main = crash; m.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "RuntimeError" in done.stderr
    assert harmless(done.stderr)


def test_foreign_evidence_is_shown_harmless(softmax_project: Path, audit: Callable[..., Ran]) -> None:
    """What a record says in free text: its command, its commit, details of its checks."""
    ran = audit(softmax_project, "run", "--axis", "n=33")
    home = Path(next(line.split()[1] for line in ran.out.splitlines() if line.startswith("evidence ")))
    record = json.loads((home / "evidence.json").read_text())
    record["command"] = record["commit"] = HOSTILE
    record["machine"] = {
        name: HOSTILE if isinstance(value, str) else value for name, value in record["machine"].items()
    }
    for one in record["audits"]:
        for result in one["results"]:
            result["detail"] = result["where"] = HOSTILE
    (home / "statement.json").unlink()
    (home / "evidence.json").write_text(json.dumps(record))
    files = {file.name: file.read_bytes() for file in home.iterdir() if file.name != folders.SUMS}
    (home / folders.SUMS).write_bytes(folders.sums(files))
    for words in (("verify", str(home)), ("diff", str(home), str(home)), ("report", str(home), "-o", "p.html")):
        shown = audit(softmax_project, *words)
        assert harmless(shown.out + shown.err), shown.out + shown.err
    page = (softmax_project / "p.html").read_text()
    assert not set(page) & {"\x1b", "\u202e", "\u200b", "\x9b"}
