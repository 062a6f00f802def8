"""On a GPU: one captured graph, and the CPU, leave the bytes of the plain launches."""

from __future__ import annotations

from collections.abc import Iterator

from audit.checks.bytes import compare
from audit.checks.result import Result
from audit.checks.view import View


def graph(view: View) -> Iterator[Result]:
    """One graph, captured before the first step and replayed for each, gives the bytes of the plain launches."""
    for step, plain in zip(view.graph, view.steps, strict=False):
        yield compare(view, step, view, plain, "graph", "plain launches")


def host(view: View) -> Iterator[Result]:
    """The host backend, from the same source and inputs, gives the bytes of the device."""
    for step, on_host in zip(view.steps, view.on_host, strict=False):
        yield compare(view, step, view, on_host, "host", "the host")
