"""The case ran to its end, and its launches are exactly the planned ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from audit.backends.outcome import Completed, Crashed, LaunchCount, TimedOut, Unsupported, ending
from audit.checks.result import Figure, Result
from audit.checks.view import View
from audit.checks.workspace import steps_to_repeat


def completion(view: View) -> Iterator[Result]:
    """A crash or time-out is a finding. So is a planned launch that did not run, or an unplanned one that did.

    What the backend cannot run at all is inconclusive.
    """
    match view.outcome:
        case TimedOut(limit):
            yield Result(
                "completion",
                "fail",
                ending(view.outcome),
                limit=Figure.of(limit),
            )
        case Crashed():
            yield Result("completion", "fail", ending(view.outcome))
        case Unsupported():
            yield Result("completion", "inconclusive", ending(view.outcome))
        case Completed(launches, printed=printed):
            steps = [step.name for step in view.bundle.steps]
            device_output = f"; device code printed: {printed}" if printed else ""
            yield _as_planned(view, steps, launches, "", device_output)
            again = steps_to_repeat(view)
            for execution, launched in view.launched.items():
                yield _as_planned(view, again if execution == "again" else steps, launched, f" ({execution})")


def _as_planned(
    view: View, steps: Sequence[str], launches: Sequence[LaunchCount], which: str, device_output: str = ""
) -> Result:
    planned = [
        (step, launch.entry, prod(launch.grid), prod(launch.block)) for step in steps for launch in view.bundle.launches
    ]
    actual = [(launch.step, launch.entry, launch.blocks, launch.threads) for launch in launches]
    return Result(
        "completion",
        "pass" if actual == planned else "fail",
        f"{len(actual)} launches seen, {len(planned)} planned{which}"
        + ("" if actual == planned else f"; seen {actual}, planned {planned}")
        + device_output,
        measured=Figure.of(len(actual)),
        limit=Figure.of(len(planned)),
    )
