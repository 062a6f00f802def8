"""One list of checks: what a case runs, what a fault can be for, and what the documentation says."""

from __future__ import annotations

import re

from audit import faults
from audit.checks import CATALOGUE, CHECKS

from ..conftest import ROOT


def test_what_runs_is_what_is_listed() -> None:
    assert {check.name: check.run for check in CATALOGUE} == dict(CHECKS)
    assert len(CHECKS) == len(CATALOGUE)
    for check in CATALOGUE:
        assert re.fullmatch(r"[A-Z].*\.", check.meaning), check.name


def test_a_fault_is_for_a_check_that_a_cpu_runs() -> None:
    gpu = {check.name for check in CATALOGUE if check.needs_gpu}
    assert gpu == {"graph", "host"}
    assert tuple(check.name for check in CATALOGUE if check.name not in gpu) == faults._ON_CPU


def test_the_documentation_has_the_same_checks_in_the_same_order() -> None:
    text = (ROOT / "docs/checks.md").read_text()
    table = text[text.index("## What a pass means") : text.index("## Vacuity")]
    assert re.findall(r"^\| `(\w+)", table, re.MULTILINE) == [check.name for check in CATALOGUE]
