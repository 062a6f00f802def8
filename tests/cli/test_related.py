"""`audit run` says of a variant with other bytes that it is as accurate, and not the same: text, JSON and page."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from ..conftest import Ran
from ..test_relations import project

RUN = ("run", "--shape", "softmax", "--variant", "ordered", "--axis", "n=4096", "--seed", "1")


def test_text_json_and_page_never_call_other_bytes_equal(tmp_path: Path, audit: Callable[..., Ran]) -> None:
    home = project(tmp_path / "p", "Ulps(64)").root
    text = audit(home, *RUN)
    (line,) = [each for each in text.out.splitlines() if each.startswith("relation ")]
    assert "ordered (ulps=64): " in line
    assert "accurate" in line
    assert "differs from control in 1 of 1 cases, by at most " in line
    assert "relative L2 error " in line
    found = json.loads(audit(home, *RUN, "--json").out)
    (each,) = found["relations"]
    assert (each["variant"], each["parent"], each["relation"], each["verdict"]) == (
        "ordered", "control", "ulps=64", "pass",
    )  # fmt: skip
    assert each["error"] != each["parents_error"]
    page = Path(found["page"] if Path(found["page"]).is_absolute() else home / found["page"]).read_text()
    section = page[page.index('<h2 id="relations">') :]
    section = section[: section.index("</table>")]
    assert "ulps=64" in section
    assert "accurate" in section
    assert "equal" not in section


def test_a_bitwise_variant_has_no_such_line(tmp_path: Path, audit: Callable[..., Ran]) -> None:
    home = project(tmp_path / "p", "Bitwise()").root
    ran = audit(home, "run", "--shape", "softmax", "--variant", "fast", "--axis", "n=33", "--json")
    assert json.loads(ran.out)["relations"] == []
