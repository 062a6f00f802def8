"""In a pipe, a line at every tenth of the way; on a terminal, a bar."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from audit.checks.result import Verdict
from audit.cli.progress import Progress

from .test_terminal import on_a_terminal

BAR = (
    "import sys; sys.stderr = sys.stdout\n"
    "from audit.cli.progress import Progress\n"
    "class Ran: verdict, variant, case = 'pass', 'fast', 'softmax/seed1'\n"
    "with Progress('softmax', 2) as progress:\n"
    "    progress.advance(Ran())\n"
    "    progress._bar.refresh()\n"
)


@dataclass(frozen=True)
class Outcome:
    """A result as progress sees it."""

    verdict: Verdict = "pass"
    variant: str = "fast"
    case: str = "softmax/seed1"


def lines(capsys: pytest.CaptureFixture[str], *results: Outcome) -> list[str]:
    with Progress("q6", len(results)) as progress:
        for result in results:
            progress.advance(result)
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def test_ten_lines_for_many(capsys: pytest.CaptureFixture[str]) -> None:
    written = lines(capsys, *[Outcome()] * 259)
    numbers = [int(re.fullmatch(r"q6 \[(\d+)/259\] .*", line)[1]) for line in written]  # type: ignore[index]
    assert numbers == [26, 52, 78, 104, 130, 156, 182, 208, 234, 259]


@pytest.mark.parametrize("total", [1, 3, 10])
def test_a_line_for_each_of_few(capsys: pytest.CaptureFixture[str], total: int) -> None:
    assert len(lines(capsys, *[Outcome()] * total)) == total


def test_a_line_counts_verdicts(capsys: pytest.CaptureFixture[str]) -> None:
    last = lines(capsys, Outcome(), Outcome("fail"), Outcome("inconclusive"), Outcome())[-1]
    assert last.startswith("q6 [4/4] 2 passed, 1 failed, 1 inconclusive; ")


class SlowOutcome(Outcome):
    """A result that lets other threads run while it is counted."""

    def __getattribute__(self, name: str) -> object:
        if name == "verdict":
            time.sleep(0.001)
        return super().__getattribute__(name)


def test_threads_may_share_it(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("q6", 40) as progress, ThreadPoolExecutor(8) as pool:
        list(pool.map(progress.advance, [SlowOutcome()] * 40))
    written = capsys.readouterr().err
    assert [int(number) for number in re.findall(r"\[(\d+)/40\]", written)] == [4, 8, 12, 16, 20, 24, 28, 32, 36, 40]


def test_a_terminal_has_a_bar() -> None:
    written = on_a_terminal("-c", BAR)
    assert "1/2" in written
    assert "fast softmax/seed1" in written
    assert "[1/2]" not in written
