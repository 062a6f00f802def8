"""Workers: one process for many bundles, as long as all ends well; no worker and no byte is given twice."""

from __future__ import annotations

import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from audit.backends import Completed, Crashed, Outcome, TimedOut
from audit.backends.workers import Workers
from audit.errors import MachineError

# Answers each folder as its file `do` says, and reports which process it was.
CODE = """
import os, pathlib, sys, time
for line in sys.stdin:
    folder = pathlib.Path(line.rstrip("\\n"))
    what = (folder / "do").read_text()
    (folder / "report").write_text(f"identity {os.getpid()}\\nstep live\\n")
    if what == "die":
        sys.exit("it died")
    if what == "sleep":
        time.sleep(60)
    with (folder / "report").open("a") as report:
        report.write("done\\n" if what == "well" else "error launch it was bad\\n")
    print(int(what != "well"), flush=True)
    if what != "well":
        sys.exit(1)
"""
COMMAND = (sys.executable, "-c", CODE)
ENV = dict(os.environ)


@pytest.fixture
def workers() -> Workers:
    return Workers(2, 10)


def use(
    workers: Workers, folder: Path, do: str = "well", env: dict[str, str] = ENV, need: int = 20, limit: float = 60
) -> Outcome:
    folder.mkdir(exist_ok=True)
    (folder / "do").write_text(do)
    with workers.one(COMMAND, env, need, 100) as worker:
        return worker.execute(folder, folder / "report", {}, limit)


def process(outcome: Outcome) -> str:
    assert isinstance(outcome, Completed), outcome
    return outcome.ran_fnv


def test_one_process_serves_bundle_after_bundle(workers: Workers, tmp_path: Path) -> None:
    assert len({process(use(workers, tmp_path / str(n))) for n in range(5)}) == 1
    workers.end()
    assert workers._idle == []


def test_what_ends_badly_ends_its_worker_and_no_other_bundle(workers: Workers, tmp_path: Path) -> None:
    first = process(use(workers, tmp_path / "a"))
    bad = use(workers, tmp_path / "b", "badly")
    assert isinstance(bad, Crashed)
    assert (bad.kind, bad.message) == ("launch", "it was bad")
    second = process(use(workers, tmp_path / "c"))
    died = use(workers, tmp_path / "d", "die")
    assert isinstance(died, Crashed)
    assert (died.kind, died.message) == ("exit 1", "after step live: it died")
    assert use(workers, tmp_path / "e", "sleep", limit=3) == TimedOut(3, "step live")
    third = process(use(workers, tmp_path / "f"))
    assert len({first, second, third}) == 3
    workers.end()


def test_a_report_of_an_earlier_bundle_counts_for_nothing(workers: Workers, tmp_path: Path) -> None:
    process(use(workers, tmp_path / "a"))
    (tmp_path / "a" / "report").write_text("identity 1\ndone\n")
    with workers.one(
        (sys.executable, "-c", "input(); print(0, flush=True); input()"), {**ENV, "X": "1"}, 1, 9
    ) as other:
        outcome = other.execute(tmp_path / "a", tmp_path / "a" / "report", {}, 5)
    assert isinstance(outcome, Crashed)
    assert outcome.kind == "exit 0"
    workers.end()


def test_one_that_was_left_at_work_serves_no_other_bundle(workers: Workers, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), workers.one(COMMAND, ENV, 20, 100) as left:
        raise KeyboardInterrupt
    assert left.ended
    process(use(workers, tmp_path / "a"))
    workers.end()


def test_another_environment_is_another_process(workers: Workers, tmp_path: Path) -> None:
    first = process(use(workers, tmp_path / "a"))
    assert process(use(workers, tmp_path / "b", env={**ENV, "ELSE": "1"})) != first
    workers.end()


def test_idle_workers_make_room_for_what_needs_it(workers: Workers, tmp_path: Path) -> None:
    with workers.one(COMMAND, ENV, 20, 100) as one, workers.one(COMMAND, ENV, 20, 100) as other:
        pass
    assert [one.ended, other.ended] == [False, False]
    process(use(workers, tmp_path / "a", need=90))
    assert [one.ended, other.ended] == [False, False]
    process(use(workers, tmp_path / "b", need=91))
    assert sorted([one.ended, other.ended]) == [False, True]
    workers.end()
    assert one.ended
    assert other.ended


def test_neither_workers_nor_bytes_are_given_twice() -> None:
    workers, lock = Workers(3, 1), threading.Lock()
    inside: list[int] = []
    seen: list[tuple[int, int]] = []

    def use(need: int) -> None:
        with workers.one(COMMAND, ENV, need, 100):
            with lock:
                inside.append(need)
                seen.append((len(inside), sum(inside)))
            time.sleep(0.02)
            with lock:
                inside.remove(need)

    needs = [60, 40, 60, 10, 100, 10, 10, 10, 10, 10, 60, 50]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, needs))
    workers.end()
    assert len(seen) == len(needs)
    assert max(running for running, _ in seen) in (2, 3)
    assert max(taken for _, taken in seen) == 100
    assert workers._free == 3
    assert workers._taken == 0


def test_a_command_that_cannot_start_frees_its_worker() -> None:
    workers = Workers(1, 1)
    for _ in range(2):
        with pytest.raises(MachineError, match="cannot be started"), workers.one(("/no/such/program",), ENV, 1, 1):
            pass
    assert (workers._free, workers._taken, workers._idle) == (1, 0, [])
