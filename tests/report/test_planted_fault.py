"""From the page alone: the first differing element of a planted fault, where all of them lie, and the command that
shows it again, which is executed as it is printed."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from audit import faults

from ..conftest import ROOT, Ran
from .conftest import Opened

FIRST = re.compile(r"the first (\S+\[.*?\]) is (0x[0-9a-f]+), parent (\S+) has (0x[0-9a-f]+)")


def planted(own_project: Path, softmax_project: Path, name: str) -> tuple[Path, str, str]:
    """A project with a fault of the catalogue in it (or softmax, whose `wrong` variant is one), its shape, variant."""
    if name == "softmax":
        return softmax_project, "softmax", "wrong"
    (fault,) = [fault for fault in faults.load_faults(ROOT / "fixtures/faults") if fault.name == name]
    file = own_project / fault.file
    text = file.read_text()
    assert text.count(fault.find) == 1
    file.write_text(text.replace(fault.find, fault.replace))
    return own_project, fault.shape, fault.variant


@pytest.mark.parametrize("name", ["softmax", pytest.param("neighbours_added_first", marks=pytest.mark.slow)])
def test_the_page_leads_to_the_fault_and_its_command_shows_it_again(
    name: str, own_project: Path, softmax_project: Path, audit: Callable[..., Ran], visit: Callable[..., Opened]
) -> None:
    project, shape, variant = planted(own_project, softmax_project, name)
    axis = ["--axis", "n=33"] if name == "softmax" else ["--context", "33"]
    evidence = audit(project, "run", "--shape", shape, "--variant", variant, *axis, "--json").json["evidence"]
    first = page_of(visit, Path(evidence))
    shutil.rmtree(evidence)
    command = first.pop("command").split(" ", 1)
    assert command[0] == "audit"
    again = audit(project, *shlex.split(command[1]), "--json")
    assert again.code == 1
    assert again.json["failed"] == 1
    second = page_of(visit, Path(again.json["evidence"]))
    assert second.pop("command").split(" ", 1) == command
    assert first == second


def page_of(visit: Callable[..., Opened], evidence: Path) -> dict[str, str]:
    """What a reader finds: one click from the first screen to the finding, its element, both values, map, command."""
    opened = visit({"report.html": (evidence / "report.html").read_bytes()})
    opened.page.click(".ranked td.fail a >> text=bytes")
    finding = opened.page.locator("article.failure:target")
    text = finding.inner_text()
    found = FIRST.search(text)
    assert found, text
    element, value, parent, expected = found.groups()
    assert value != expected
    drawing = finding.locator("svg.heat").first
    assert drawing.is_visible()
    assert drawing.locator("path:not(.h0)").count() > 0
    assert (opened.said, len(opened.asked)) == ([], 1)
    command = finding.locator(".again code").inner_text()
    label = drawing.get_attribute("aria-label") or ""
    return {
        "element": element,
        "value": value,
        "parent": parent,
        "expected": expected,
        "command": command,
        "map": label,
    }
