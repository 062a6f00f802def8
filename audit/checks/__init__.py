"""The checks, each a sentence about one variant in one case; in the order in which they are reported."""

from collections.abc import Callable, Iterator, Mapping

from audit.checks.bytes import bytes_, repeat
from audit.checks.completion import completion
from audit.checks.device import graph, host
from audit.checks.error import error, probe
from audit.checks.finite import finite
from audit.checks.guards import guards
from audit.checks.identity import identity
from audit.checks.inputs import inputs
from audit.checks.result import Figure, Result, Verdict, worst
from audit.checks.view import Step, View
from audit.checks.workspace import workspace

CHECKS: Mapping[str, Callable[[View], Iterator[Result]]] = {
    "completion": completion,
    "identity": identity,
    "bytes": bytes_,
    "workspace": workspace,
    "guards": guards,
    "inputs": inputs,
    "finite": finite,
    "repeat": repeat,
    "graph": graph,
    "host": host,
    "error": error,
    "probe": probe,
}

__all__ = ["CHECKS", "Figure", "Result", "Step", "Verdict", "View", "worst"]
