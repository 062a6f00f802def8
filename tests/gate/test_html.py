"""The gate's page: what does not hold first, with where to look; everything escaped; links only where a page exists."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from audit.gate.formats.html import html, links_from
from audit.gate.verdict import Condition

from .test_formats import CONDITIONS, FOUND, gate

RETAINED = Condition("audits q2 on cuda", "3 passed", "2 passed", "inconclusive", "one is missing", "reports/a b")


def test_what_does_not_hold_comes_first_and_the_rest_is_folded() -> None:
    page = html(gate())
    order = [page.index(name) for name in ("audits q1 on host", "canaries memcheck", "sources q6", "audits q6 on host")]
    assert order == sorted(order)
    assert order[2] < page.index("<summary>1 condition holds</summary>") < order[3]
    for words in ("20 passed, 1 failed", "21 passed", "kernels/k.cu:12", "1" * 16, "known until summer"):
        assert words in page
    assert page.count('class="failure') == 3 + 2  # conditions, open findings


def test_names_from_records_are_escaped() -> None:
    page = html(gate())
    assert "<script>\\u0000" not in page
    assert "&lt;script&gt;" in page
    assert "\u202e" not in page


def test_sections_with_nothing_in_them_vanish() -> None:
    page = html(msgspec.structs.replace(gate(CONDITIONS[:1], ()), evidence=()))
    for anchor in ("findings", "accepted", "records"):
        assert f'id="{anchor}"' not in page
        assert f'href="#{anchor}"' not in page
    assert "What does not hold" not in page
    assert "nothing was shown" in html(gate((), ()))


def test_a_record_is_linked_where_its_page_is_and_else_rendered_by_a_command(tmp_path: Path) -> None:
    verdict = msgspec.structs.replace(
        gate((*CONDITIONS, RETAINED), FOUND), evidence=("runs/x", "runs/y", "reports/a b", "r")
    )
    (tmp_path / "runs/y").mkdir(parents=True)
    (tmp_path / "runs/y/report.html").write_text("a page")
    linked = html(verdict, links_from(tmp_path / "runs", tmp_path))
    assert re.search(r'href="y/report.html">\s*runs/y<', linked)
    assert "<code>audit report runs/x</code>" in linked
    assert "<code>audit report &#39;reports/a b&#39;</code>" in linked
    assert "href=" not in re.sub(r'href="#\w+"', "", html(verdict))
    assert "<code>audit report runs/y</code>" in html(verdict)


def test_a_file_of_the_project_is_named_and_not_linked(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    suppressions = Condition("suppressions", "each in force", "1 complaint", "fail", "expired", "pyproject.toml")
    page = html(gate((suppressions,), ()), links_from(tmp_path, tmp_path))
    assert '<span class="mono">pyproject.toml</span>' in page


def test_findings_that_do_not_fit_are_counted() -> None:
    many = tuple(msgspec.structs.replace(FOUND[1], fingerprint=f"{n:016x}") for n in range(501))
    page = html(gate(found=many))
    assert "And 1 more; <code>audit gate --format json</code> lists all." in page
    assert "more; <code>" not in html(gate(found=many[:500]))
