"""The command line as a user meets it: exit codes, one clear message, machine-readable output."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ..conftest import ROOT, Ran

Audit = Callable[..., Ran]


def test_help_imports_neither_torch_nor_numpy() -> None:
    code = (
        "import sys; sys.argv = ['audit', '--help']\n"
        "from audit.cli.main import main\n"  # not the supervisor, whose child would import it
        "try: main()\n"
        "except SystemExit as leave: assert leave.code == 0\n"
        "heavy = {'torch', 'numpy', 'mpmath', 'jinja2', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for command in ("run", "list", "report", "capture", "doctor"):
        assert f"  {command} " in done.stdout


def test_findings_exit_1_and_json_is_one_object(softmax_project: Path, audit: Audit) -> None:
    ran = audit(softmax_project, "run", "--shape", "softmax", "--axis", "n=33", "--json")
    assert ran.code == 1
    assert set(ran.json) == {
        "shape", "verdict", "planned", "ran", "passed", "failed", "inconclusive", "seconds", "vacuous",
        "indistinguishable", "cases", "families", "relations", "findings",
        "evidence", "page",
    }  # fmt: skip
    assert (ran.json["verdict"], ran.json["planned"], ran.json["ran"]) == ("fail", 3, 3)
    assert (ran.json["passed"], ran.json["failed"]) == (2, 1)
    assert ran.failed() == {"bytes"}
    assert (softmax_project / ran.json["page"]).is_file()
    (finding,) = ran.json["findings"]
    assert (finding["check"], finding["variant"], finding["verdict"]) == ("bytes", "wrong", "fail")
    assert (finding["case"], finding["steps"]) == ("softmax/seed1/rows=7,n=33", ["live", "restore"])
    assert "; the first y[rows=" in finding["detail"]
    assert (int(finding["measured"]) > 0, finding["limit"]) == (True, "0")
    assert finding["where"].startswith("y[rows=")
    assert "[3/3] 2 passed, 1 failed" in ran.err


def test_json_of_a_pass_has_no_findings(softmax_project: Path, audit: Audit) -> None:
    ran = audit(softmax_project, "run", "--axis", "n=33", "--variant", "fast", "--json")
    assert (ran.code, ran.json["findings"]) == (0, [])


def test_json_of_sanitizers_has_findings(softmax_project: Path, audit: Audit) -> None:
    source = softmax_project / "kernels/wrong.cu"
    text = source.read_text()
    start = text.index("{", text.index("softmax_wrong")) + 1
    source.write_text(f"{text[:start]}\n  if (threadIdx.x == 0) __syncthreads();{text[start:]}")
    ran = audit(softmax_project, "sanitize", "--tool", "synccheck", "--variant", "wrong", "--json")
    assert ran.code == 1, ran.out + ran.err
    assert (ran.json["shape"], ran.json["verdict"]) == ("softmax", "fail")
    assert (softmax_project / ran.json["page"]).is_file()
    findings = [finding for finding in ran.json["findings"] if finding["variant"] == "wrong"]
    assert findings
    for finding in findings:
        assert set(finding) == {"check", "variant", "case", "steps", "verdict", "detail", "measured", "limit", "where"}
        assert (finding["check"], finding["verdict"], finding["limit"]) == ("synccheck", "fail", "0")
        assert "kernels/wrong.cu:" in finding["where"]


def test_json_of_a_tool_that_is_missing_gives_the_reason(softmax_project: Path, audit: Audit, tmp_path: Path) -> None:
    ran = audit(
        softmax_project, "sanitize", "--tool", "synccheck", "--variant", "control", "--json",
        PATH=str(tmp_path), KERNEL_AUDIT_CACHE=str(tmp_path / "cache"),
    )  # fmt: skip
    assert ran.code == 3, ran.out + ran.err
    (finding,) = ran.json["findings"]
    assert (finding["verdict"], finding["measured"], finding["where"]) == ("inconclusive", None, "")
    assert "g++" in finding["detail"]


def test_text_output_names_the_failure_and_the_report(softmax_project: Path, audit: Audit) -> None:
    ran = audit(softmax_project, "run", "--shape", "softmax", "--axis", "n=33", "--variant", "wrong", NO_COLOR="1")
    assert ran.code == 1
    assert "bytes: wrong, softmax/seed1/rows=7,n=33, steps live, restore" in ran.out
    assert "the first y[rows=" in ran.out
    assert "\x1b" not in ran.out + ran.err
    (report,) = [line.split()[-1] for line in ran.out.splitlines() if line.startswith("report ")]
    assert Path(report).is_file()


def test_pass_exits_0(softmax_project: Path, audit: Audit) -> None:
    ran = audit(softmax_project, "run", "--shape", "softmax", "--variant", "fast", "--seed", "3", "--axis", "n=1")
    assert ran.code == 0, ran.out
    assert "pass: 2 passed, 0 failed, 0 inconclusive, of 2 planned, 2 ran" in ran.out


def test_inconclusive_exits_3(softmax_project: Path, audit: Audit) -> None:
    source = softmax_project / "kernels/softmax.py"
    source.write_text(source.read_text().replace('bounds=[RelL2("y", 1e-6)],', ""))
    ran = audit(softmax_project, "run", "--shape", "softmax", "--axis", "n=33", "--variant", "control")
    assert ran.code == 3
    assert "inconclusive: 0 passed, 0 failed, 1 inconclusive" in ran.out


def refused(ran: Ran, words: str) -> None:
    """Exit 2, one message on stderr that says it, nothing on stdout, no traceback."""
    assert ran.code == 2, ran.out + ran.err
    assert words in ran.err
    assert ran.out == ""
    assert "Traceback" not in ran.err
    assert len([line for line in ran.err.splitlines() if line.startswith("audit: ")]) == 1


def test_unknown_shape(audit: Audit) -> None:
    refused(audit(ROOT, "run", "--shape", "q99"), "--shape: expected one of")


def test_context_beyond_capacity(audit: Audit) -> None:
    refused(audit(ROOT, "run", "--shape", "q6", "--context", "262153"), "at most 262,152, but got 262153")


def test_altered_capture(own_project: Path, audit: Audit) -> None:
    file = next((own_project / "fixtures/captures/smollm2-135m").glob("*.safetensors"))
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    refused(
        audit(own_project, "run", "--shape", "q6", "--capture", "all", "--out", str(own_project / "r")),
        file.name,
    )


def test_project_without_kernels(softmax_project: Path, audit: Audit) -> None:
    shutil.rmtree(softmax_project / "kernels")
    refused(audit(softmax_project, "run", "--shape", "softmax"), "which does not exist")


def test_no_project(tmp_path: Path, audit: Audit) -> None:
    refused(audit(tmp_path, "list"), "no project here")


def test_malformed_table(softmax_project: Path, audit: Audit) -> None:
    (softmax_project / "pyproject.toml").write_text("[tool.kernel-audit]\nkernals = 'kernels'\n")
    refused(audit(softmax_project, "run", "--shape", "softmax"), "unknown field `kernals`; known keys:")


@pytest.mark.parametrize("out", ["/proc/nowhere", "pyproject.toml/below"])
def test_output_that_cannot_be_written(softmax_project: Path, audit: Audit, out: str) -> None:
    refused(audit(softmax_project, "run", "--shape", "softmax", "--out", out), "evidence cannot be written there")


def test_no_compiler_says_what_to_install(softmax_project: Path, audit: Audit, tmp_path: Path) -> None:
    ran = audit(
        softmax_project,
        "run",
        "--shape",
        "softmax",
        PATH=str(tmp_path),
        KERNEL_AUDIT_CACHE=str(tmp_path / "cache"),
    )
    refused(ran, "apt-get install g++")


def test_inputs_outside_the_domain(own_project: Path, audit: Audit) -> None:
    source = own_project / "kernels/paged/inputs.py"
    text = source.read_text()
    old = "view[page, slot, 0] = codes"
    assert text.count(old) == 1
    source.write_text(text.replace(old, "view[page[:-1], slot[:-1], 0] = codes[:-1]"))
    ran = audit(own_project, "run", "--shape", "q6", "--context", "33")
    refused(ran, "context=33,page=16: k, token 32, dim 0: expected a number")


def test_list_shows_what_is_declared(audit: Audit) -> None:
    ran = audit(ROOT, "list")
    assert ran.code == 0
    for words in ("operator grouped", "shared_kv", "parent control", "q2, q3", "smollm2-135m/layer18/rank1"):
        assert words in ran.out
    assert re.search(r"head_halves +closed +parent token_ahead .*\n +slower than token_ahead.*\(reports/", ran.out)
    listed = audit(ROOT, "list", "--json").json
    assert {"project", "operators", "captures"} == set(listed)
    for operator in listed["operators"]:
        assert all(variant["why"] for variant in operator["variants"] if variant["status"] == "closed")


def test_report_renders_the_newest(softmax_project: Path, audit: Audit, tmp_path: Path) -> None:
    evidence = audit(softmax_project, "run", "--shape", "softmax", "--axis", "n=1", "--json").json["evidence"]
    assert audit(softmax_project, "report").out.strip() == f"{evidence}/report.html"
    page = tmp_path / "page.html"
    assert audit(softmax_project, "report", evidence, "-o", str(page)).code == 0
    assert page.read_text() == Path(evidence, "report.html").read_text()


def test_report_opens_in_the_users_browser(softmax_project: Path, audit: Audit, tmp_path: Path) -> None:
    evidence = audit(softmax_project, "run", "--shape", "softmax", "--axis", "n=1", "--json").json["evidence"]
    browser, asked = tmp_path / "browser", tmp_path / "asked"
    browser.write_text(f'#!/bin/sh\necho "$1" > {asked}\n')
    browser.chmod(0o755)
    ran = audit(softmax_project, "report", "--open", BROWSER=f"{browser} %s")
    assert ran.code == 0, ran.err
    assert asked.read_text().strip() == (softmax_project / evidence / "report.html").resolve().as_uri()


def test_doctor_tries_what_it_reports(audit: Audit, tmp_path: Path) -> None:
    ran = audit(ROOT, "doctor")
    assert ran.code == 0
    assert "ok       host backend: built a kernel" in ran.out
    assert "racecheck on this CPU: uses ThreadSanitizer" in ran.out
    assert "more CUDA C++ on this CPU: " in ran.out
    assert "initcheck on this CPU: " in ran.out
    assert "sanitizers on a GPU: " in ran.out
    lacking = audit(ROOT, "doctor", PATH=str(tmp_path))
    assert lacking.code == 2
    assert "MISSING  host backend" in lacking.out
