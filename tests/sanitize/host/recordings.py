"""The recorded runs of `fixtures/host_sanitizers`, as what `audit.sanitize.host.tools.run` gave."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from audit.backends import Completed, Crashed, Outcome, child
from audit.bundle import Bundle, BundledLaunch, BundledStep
from audit.records.sanitize import Observation
from audit.sanitize.host.output import observe_host_run
from audit.sanitize.host.tools import HostRun

FOLDER = Path(__file__).resolve().parents[3] / "fixtures/sanitizers/host"
NAMES = sorted(path.parent.name for path in FOLDER.glob("*/how.json"))
SOURCES = (
    *("barriers.cu", "memory.cu", "races.cu", "uninitialised.cu", "kernels/x/k.cu", "kernels/x/inner.cuh"),
    *(f"kernels/scalar/{name}" for name in ("compact_page_map.cu", "decode.cuh", "pages.cuh", "partition.cuh")),
)


class HostRecording(NamedTuple):
    """One recorded run, and a bundle of the one launch that it was to do."""

    run: HostRun
    bundle: Bundle

    def observed(
        self, *, log: str | None = None, report: tuple[str, ...] | None = None, outcome: Outcome | None = None
    ) -> Observation:
        """What `observe` makes of it, or of what it would be with another part."""
        run = self.run
        changed = HostRun(
            run.tool,
            run.command,
            run.outcome if outcome is None else outcome,
            run.log if log is None else log,
            run.report if report is None else report,
        )
        return observe_host_run(changed, self.bundle, SOURCES)


@cache
def host_recording(name: str) -> HostRecording:
    """The recording of that name."""
    how = json.loads((FOLDER / name / "how.json").read_text())
    report = tuple(how["report"])
    counts = child.launches(report)
    accused = re.search(r" kernel (.+?), block", report[-1])
    entry = counts[0].entry if counts else accused[1] if accused else "wild"
    outcome: Outcome = Crashed(how["ended"], how["message"], how["seconds"])
    if how["ended"] == "completed":
        outcome = Completed(counts, report[0].split()[1], {}, how["seconds"])
    launch = BundledLaunch(entry, (1, 1, 1), tuple(how["block"]), 0, ())
    bundle = Bundle(1, "recorded", entry, (), (launch,), (BundledStep("live", {}, {}),))
    log = (FOLDER / name / "log.txt").read_text()
    return HostRecording(HostRun(how["tool"], tuple(how["command"].split()), outcome, log, report), bundle)
