"""`audit sanitize` as a user runs it: what makes it exit 0, 1 and 3 over this repository's own kernels."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from audit.records import sanitize as store
from audit.records.sanitize import SanitizeRecord, describe_finding
from audit.sanitize.canaries.planted import CANARIES

from ..conftest import ROOT, Ran

Audit = Callable[..., Ran]
SOURCE = "kernels/grouped/control.cu"
ONE_CHECK = ("--tool", "racecheck", "--variant", "control", "--case", "context=65,")
NO_LIBTSAN = """#!/bin/sh
for word; do [ "$word" = -print-file-name=libtsan.so ] && echo libtsan.so && exit; done
exec "{compiler}" "$@"
"""


def session(ran: Ran) -> SanitizeRecord:
    """The evidence that a command wrote, which it must have told in its last line but one."""
    (path,) = (line.split()[1] for line in ran.out.splitlines() if line.startswith("evidence "))
    return store.KIND.load(Path(path))


def line(text: list[str], words: str) -> int:
    """The number of the one line that holds these words."""
    (number,) = (number for number, written in enumerate(text, 1) if words in written)
    return number


def test_a_barrier_taken_out_exits_1_with_both_lines(own_project: Path, audit: Audit) -> None:
    source = own_project / SOURCE
    text = source.read_text().splitlines()
    barrier = line(text, "kahan_qk<D>(m, warp);")  # the next line
    assert text[barrier].strip() == "__syncthreads();"
    text[barrier] = ""
    source.write_text("\n".join(text))
    ran = audit(own_project, "sanitize", "--shape", "q6", *ONE_CHECK)
    assert ran.code == 1, ran.out + ran.err
    written, read = line(text, "store_matrix_sync(&m.score[0]"), line(text, "? m.score[row][lane] * score_scale")
    (checked,) = session(ran).checked
    (race,) = checked.findings
    assert {(side.file, side.line) for side in race.sides} == {(SOURCE, written), (SOURCE, read)}
    assert describe_finding(race) in ran.out


def test_without_the_sanitizer_s_library_nothing_is_clean(audit: Audit, tmp_path: Path) -> None:
    """Where the compiler does not find it, and where a program that was built with it cannot load it."""
    wrapper = tmp_path / "g++"
    wrapper.write_text(NO_LIBTSAN.format(compiler=shutil.which("g++")))
    wrapper.chmod(0o755)
    (tmp_path / "libtsan.so.2").touch()
    unavailable = {
        "a host program for `thread` needs libtsan.so": {"CXX": str(wrapper)},
        "error while loading shared libraries": {"LD_LIBRARY_PATH": str(tmp_path)},
    }
    for words, environment in unavailable.items():
        ran = audit(ROOT, "sanitize", "--shape", "q6", *ONE_CHECK, "--out", str(tmp_path / "runs"), **environment)
        assert ran.code == 3, ran.out + ran.err
        (checked,) = session(ran).checked
        assert (checked.verdict, checked.launches) == ("inconclusive", 0)
        assert words in checked.reason
        assert words in ran.out


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("shape", ["q1", "q6"])
def test_every_planned_check_of_a_shape_is_clean(shape: str, audit: Audit, tmp_path: Path) -> None:
    ran = audit(ROOT, "sanitize", "--shape", shape, "--out", str(tmp_path / "runs"))
    assert ran.code == 0, ran.out
    evidence = session(ran)
    assert {canary.name for canary in evidence.canaries if canary.found and canary.twin_clean} == {
        canary.name for canary in CANARIES
    }
    assert evidence.summary.clean == evidence.summary.planned == len(evidence.checked)
    assert all(one.launches == one.planned_launches > 0 for one in evidence.checked)
    assert all(tool.gaps for tool in evidence.tools)
