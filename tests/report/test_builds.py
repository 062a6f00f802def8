"""What the compiler says of a cubin stands in the page; what nobody said is no zero there."""

from __future__ import annotations

import re

import msgspec
import pytest

from audit.compile.identity import CodeRecord, KernelRecord
from audit.records import run as run_record
from audit.records.run import RunRecord
from audit.report.tables import build_rows

from ..gate.retained import newest
from .rendered import render


@pytest.fixture(scope="module")
def old() -> RunRecord:
    """Evidence of a GPU as it was before anything was recorded of its code."""
    evidence = run_record.KIND.load(newest())
    builds = {key: msgspec.structs.replace(build, code=None) for key, build in evidence.builds.items()}
    audits = tuple(msgspec.structs.replace(audit, dynamic_shared={}) for audit in evidence.audits)
    return msgspec.structs.replace(evidence, builds=builds, audits=audits)


def described(evidence: RunRecord, code: CodeRecord, asked: tuple[int, ...]) -> RunRecord:
    """The evidence with a record of its first build's code, audits asking for `asked` bytes in turn."""
    key = evidence.audits[0].build
    assert key
    mine = [audit for audit in evidence.audits if audit.build == key]
    audits = tuple(
        msgspec.structs.replace(audit, dynamic_shared={"splits<6>": size})
        for audit, size in zip(mine, asked, strict=False)
    )
    build = msgspec.structs.replace(evidence.builds[key], code=code)
    return msgspec.structs.replace(evidence, audits=audits, builds={key: build})


def cells(page: str) -> list[str]:
    (row,) = re.findall(r'title="_Z6splits">.*?</tr>', page, re.DOTALL)
    return re.findall(r'<td class="number">(.*?)</td>', row)


def test_every_figure_is_in_its_column(old: RunRecord) -> None:
    kernel = KernelRecord("splits<6>", "_Z6splits", 101, 960, 8, 16, 1276, 12)
    code = CodeRecord((kernel,), "nvdisasm V13.5.37", "5" * 64, ("HMMA.16816.F32", "HMMA.1688.F32"))
    evidence = described(old, code, (29_952, 97_536, 29_952))
    assert [row.kernels for row in build_rows(evidence)] == [((kernel, 97_536),)]
    page = render(evidence)
    assert cells(page) == ["101", "960", "97,536", "8", "16", "1,276", "12"]
    for words in ("HMMA.16816.F32, HMMA.1688.F32", "5" * 64, "nvdisasm V13.5.37", "splits&lt;6&gt;"):
        assert words in page
    assert "say nothing about the occupancy or speed of a launch" in page


def test_what_is_not_known_is_said(old: RunRecord) -> None:
    page = render(described(old, CodeRecord((KernelRecord("splits<6>", "_Z6splits"),)), ()))
    assert cells(page) == ["–"] * 7
    assert "unknown: this machine had no nvdisasm that reads the code" in page


def test_evidence_without_it_has_no_such_table(old: RunRecord) -> None:
    assert build_rows(old) == []
    assert 'id="cubins"' not in render(old)
