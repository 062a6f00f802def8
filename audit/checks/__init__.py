"""The checks: each judges one variant in one case. `audit.checks.catalogue` lists them."""

from collections.abc import Callable, Iterator, Mapping

from audit.checks.catalogue import CATALOGUE, Check
from audit.checks.result import Figure, LargestDifference, Result, Verdict, worst
from audit.checks.view import Step, View

CHECKS: Mapping[str, Callable[[View], Iterator[Result]]] = {check.name: check.run for check in CATALOGUE}

__all__ = ["CATALOGUE", "CHECKS", "Check", "Figure", "LargestDifference", "Result", "Step", "Verdict", "View", "worst"]
