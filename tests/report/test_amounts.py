"""How much differs stands at the finding, in the list of conditions and on the first screen."""

from __future__ import annotations

import html
import re

import msgspec

from audit.checks.catalogue import CATALOGUE
from audit.checks.result import Figure, LargestDifference
from audit.records.run import RunRecord
from audit.report.conditions import MEANINGS, run_conditions

from .rendered import render
from .synthetic import synthetic


def with_largest(record: RunRecord, *largest: LargestDifference) -> RunRecord:
    """The record, with these amounts in every failed result of `bytes`."""
    audits = tuple(
        msgspec.structs.replace(
            audit,
            results=tuple(
                msgspec.structs.replace(result, largest=largest) if result.largest else result
                for result in audit.results
            ),
        )
        for audit in record.audits
    )
    return msgspec.structs.replace(record, audits=audits)


def finding(page: str) -> str:
    """The text of the first table of amounts."""
    (table, *_) = re.findall(r'<table class="dense amounts">.*?</table>', page, re.DOTALL)
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", table)).split())


def test_a_finding_says_how_much_each_buffer_is_off() -> None:
    page = render(synthetic(wrong={(0, 1)}))
    assert finding(page) == (
        "buffer elements that differ largest difference at largest in ulp at "
        "partial 120 0.0225 partial[split=4, row=2, head=1, dim=3] 7 partial[split=3, row=2, head=0, dim=0]"
    )
    assert "by at most 0.0225 (partial[split=4, row=2, head=1, dim=3]) and 7 ulp" in page


def test_integers_have_no_ulp_and_nan_no_difference() -> None:
    whole = LargestDifference("index", 3, Figure.of(2), "index[row=1]", None, "", 0, 0)
    nan = LargestDifference("y", 5, None, "", None, "", 4, 1)
    text = finding(render(with_largest(synthetic(wrong={(0, 1)}), whole, nan)))
    assert "NaN on one side NaN on both index 3 2 index[row=1] integers 0 0" in text
    assert text.endswith("y 5 no number on both sides no number on both sides 4 1")


def test_the_condition_tells_the_largest_of_all_audits() -> None:
    record = synthetic(wrong={(0, 1), (1, 2)})
    large = LargestDifference("lse", 1, Figure.of(3.5), "lse[row=1]", 90, "lse[row=1]", 0, 0)
    results = {result.check: result for result in record.audits[5].results}
    assert results["bytes"].verdict == "fail"
    worse = tuple(
        msgspec.structs.replace(result, largest=(large,)) if result.check == "bytes" else result
        for result in record.audits[5].results
    )
    audits = (*record.audits[:5], msgspec.structs.replace(record.audits[5], results=worse), *record.audits[6:])
    record = msgspec.structs.replace(record, audits=audits)
    (condition,) = [one for one in run_conditions(record) if one.name == "bytes"]
    assert condition.amount == "by at most 3.5 (90 ulp, lse[row=1])"
    first = render(record)
    assert condition.amount in first[: first.index('id="matrix"')]
    assert all(one.amount == "" for one in run_conditions(record) if one.name != "bytes")


def test_every_condition_has_a_meaning_that_can_be_opened() -> None:
    assert [check.name for check in CATALOGUE] == [name for name in MEANINGS if name not in ("coverage", "vacuity")]
    assert all(sentence.endswith(".") for sentence in MEANINGS.values())
    page = render(synthetic(wrong={(0, 1)}))
    table = page[page.index('<h2 id="conditions"') : page.index('<h2 id="variants"')]
    assert len(re.findall(r"<details><summary>[^<]+</summary><p>[^<]+</p></details>", table)) == 15
    assert re.search(r"<summary>error:final</summary><p>Every element lies within the declared bound", table)
    articles = page[page.index('<h2 id="failed"') : page.index('<h2 id="cases"')]
    assert f"<summary>What a pass of “bytes” means</summary><p>{MEANINGS['bytes']}</p>" in articles


def test_a_check_that_this_version_does_not_know_is_shown_without_a_meaning() -> None:
    record = synthetic()
    plan = msgspec.structs.replace(record.plan, checks=(*record.plan.checks, "spectrum"))
    assert re.search(r'<td class="meaning">\s*spectrum\s*</td>', render(msgspec.structs.replace(record, plan=plan)))
