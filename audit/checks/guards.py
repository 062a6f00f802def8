"""Nothing was written outside a buffer, be it output, workspace or input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from audit.arena import Snapshot
from audit.checks.result import Figure, Result
from audit.checks.view import View


def guards(view: View) -> Iterator[Result]:
    """The guards before and behind each buffer are unchanged."""
    for step in (*view.steps, *view.again, *view.graph, *view.on_host):
        yield _intact(view, step.snapshots, step.name)
    yield _intact(view, view.final_inputs, "")


def _intact(view: View, snapshots: Mapping[str, Snapshot], step: str) -> Result:
    broken = {name: snapshot for name, snapshot in snapshots.items() if snapshot.broken_guards}
    if not broken:
        return Result("guards", "pass", f"guards of {len(snapshots)} buffers intact", step)
    name, snapshot = next(iter(broken.items()))
    size = view.bundle.slot(name).size
    at = snapshot.broken_guards[0]
    side = f"{-at} bytes before the start" if at < 0 else f"{at - size} bytes past the end"
    count = sum(len(snapshot.broken_guards) for snapshot in broken.values())
    return Result(
        "guards",
        "fail",
        f"{count} or more guard bytes overwritten around {', '.join(broken)}; first {side} of {name} ({size} bytes)",
        step,
        where=name,
        measured=Figure.of(count),
        limit=Figure.of(0),
    )
