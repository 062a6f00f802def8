"""The list of checks, in the order in which they are reported: what each is called and what a pass of it means."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from audit.checks.bytes import bytes_, repeat
from audit.checks.completion import completion
from audit.checks.device import graph, host
from audit.checks.error import error, probe
from audit.checks.finite import finite
from audit.checks.guards import guards
from audit.checks.identity import identity
from audit.checks.inputs import inputs
from audit.checks.judged import judged
from audit.checks.relation import relation
from audit.checks.result import Result
from audit.checks.view import View
from audit.checks.workspace import workspace


@dataclass(frozen=True)
class Check:
    """One check: its name in results, what it runs, and what a pass means, in a sentence."""

    name: str
    run: Callable[[View], Iterator[Result]]
    meaning: str
    needs_gpu: bool = False


CATALOGUE: tuple[Check, ...] = (
    Check(
        "completion",
        completion,
        "The program ended within its time limit, and it launched the kernels exactly as often as planned.",
    ),
    Check(
        "identity",
        identity,
        "The binary that ran is the one that was built. In some case its launches differ from the parent's in their "
        "machine code, configuration or arguments.",
    ),
    Check("bytes", judged(bytes_), "Every bit that the parent writes, in outputs and workspaces, is the same."),
    Check(
        "relation",
        judged(relation),
        "The results are as close to the parent's as the declared relation asks.",
    ),
    Check(
        "workspace",
        workspace,
        "Everything that must be written was written, and everything else still holds its poison.",
    ),
    Check("guards", guards, "Nothing before or behind any buffer was written."),
    Check("inputs", inputs, "No input was changed."),
    Check(
        "finite", judged(finite), "What was written holds no NaN and no infinity, except where the operator means them."
    ),
    Check(
        "repeat",
        repeat,
        "The step “restore” left the bytes of the step “live”. So did a second run with another schedule of threads, "
        "other poison and other addresses.",
    ),
    Check("graph", graph, "One captured CUDA graph, replayed, left the bytes of the plain launches.", needs_gpu=True),
    Check(
        "host",
        judged(host),
        "The CPU, from the same source and inputs, left the bytes of the GPU, as the operator promises.",
        needs_gpu=True,
    ),
    Check("error", judged(error), "Every element lies within the declared bound on its error against the reference."),
    Check("probe", probe, "Structured inputs gave the result that their closed form predicts."),
)
