"""The case ran to its end, and the audited kernels were launched exactly as often as planned."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from audit.backends.outcome import Completed, Crashed, TimedOut
from audit.checks.result import Figure, Result
from audit.checks.view import View


def completion(view: View) -> Iterator[Result]:
    """A crash or time-out is a finding; so is a launch that was planned and not seen, or seen and not planned."""
    match view.outcome:
        case TimedOut(limit, after):
            yield Result(
                "completion",
                "fail",
                f"time-out: killed after {limit:g} s; last seen: {after}",
                limit=Figure.of(limit),
            )
        case Crashed(kind, message):
            yield Result("completion", "fail", f"crashed ({kind}): {message}")
        case Completed(launches):
            planned = [
                (step.name, launch.entry, prod(launch.grid), prod(launch.block))
                for step in view.bundle.steps
                for launch in view.bundle.launches
            ]
            seen = [(launch.step, launch.entry, launch.blocks, launch.threads) for launch in launches]
            verdict = "pass" if seen == planned else "fail"
            yield Result(
                "completion",
                "pass" if verdict == "pass" else "fail",
                f"{len(seen)} launches seen, {len(planned)} planned"
                + ("" if seen == planned else f"; seen {seen}, planned {planned}"),
                measured=Figure.of(len(seen)),
                limit=Figure.of(len(planned)),
            )
