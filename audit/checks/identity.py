"""The binary that ran is the one that was built, and it is not its parent's."""

from __future__ import annotations

from collections.abc import Iterator

from audit.backends.outcome import Completed
from audit.checks.result import Result
from audit.checks.view import View
from audit.spec import Binary


def identity(view: View) -> Iterator[Result]:
    """The process hashed what it executed: its own program, or the cubin that it loaded. Parent and candidate differ in
    source, binary and entry points, and in the names of their functions inside the cubins.

    That every node of a captured graph is a function of the loaded cubin, the replay itself makes sure of.
    """
    build = view.build
    if not isinstance(view.outcome, Completed) or build is None:
        return
    if view.outcome.ran_fnv != build.binary_fnv:
        yield Result(
            "identity",
            "fail",
            f"the binary that ran hashes to {view.outcome.ran_fnv}, built was {build.binary_fnv}",
        )
        return
    if view.parent is None:
        yield Result("identity", "pass", f"ran the built binary {build.binary_sha256[:16]}")
        return
    other = view.parent.build
    if other is None:
        yield Result("identity", "inconclusive", f"the parent {view.parent.variant.name} was not built")
        return
    # An earlier self, or a frozen one, has the same entry points; binary and build must still differ.
    named_apart = view.parent.revision is None and not isinstance(view.parent.variant.code, Binary)
    if view.parent.revision and other.key == build.key:
        yield Result("identity", "pass", f"built from the very sources of {view.parent.revision[:12]}: nothing changed")
        return
    same = [
        what
        for what, mine, theirs in (
            ("binary", {build.binary_sha256}, {other.binary_sha256}),
            ("entry point", set(view.bundle.entries), set(view.parent.bundle.entries) if named_apart else set()),
            ("function", _functions(view), _functions(view.parent) if named_apart else set()),
            ("build", {build.key}, {other.key}),
        )
        if mine & theirs
    ]
    yield Result(
        "identity",
        "fail" if same else "pass",
        f"compared with itself: parent {view.parent.variant.name} has the same {' and '.join(same)}"
        if same
        else f"binary {build.binary_sha256[:16]} against {other.binary_sha256[:16]}, "
        f"entries {', '.join(view.bundle.entries)} against {', '.join(view.parent.bundle.entries)}",
    )


def _functions(view: View) -> set[str]:
    """The names that the launched kernels have inside their cubin; none on the host, whose program holds a table."""
    code = view.build.code if view.build else None
    return {kernel.symbol for kernel in code.kernels if kernel.entry in view.bundle.entries} if code else set()
