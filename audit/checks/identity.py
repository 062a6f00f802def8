"""The binary that ran is the one that was built, and it is not the parent's."""

from __future__ import annotations

from collections.abc import Iterator

from audit.backends.outcome import Completed
from audit.checks.result import Result
from audit.checks.view import View
from audit.spec import Binary


def identity(view: View) -> Iterator[Result]:
    """The process hashes what it executes: its own program, or the cubin that it loads. Parent and candidate must have
    different binaries, entry points and builds, and different function names inside the cubins.

    The replay itself checks that every node of a captured graph is a function of the loaded cubin.
    """
    build = view.build
    if not isinstance(view.outcome, Completed) or build is None:
        return
    if view.outcome.ran_fnv != build.binary_fnv:
        yield Result(
            "identity",
            "fail",
            f"expected the built binary to run, whose hash is {build.binary_fnv}, but the one that ran has "
            f"{view.outcome.ran_fnv}",
        )
        return
    if view.parent is None:
        yield Result("identity", "pass", f"ran the built binary {build.binary_sha256[:16]}")
        return
    other = view.parent.build
    if other is None:
        yield Result("identity", "inconclusive", f"no build of the parent {view.parent.variant.name} to compare with")
        return
    # An earlier revision or a frozen program has the same entry points; binary and build must still differ.
    names_differ = view.parent.revision is None and not isinstance(view.parent.variant.code, Binary)
    if view.parent.revision and build.binary_sha256 == other.binary_sha256:
        what = "sources" if other.key == build.key else "machine code, from other sources,"
        yield Result("identity", "pass", f"built from the same {what} as {view.parent.revision[:12]}")
        return
    same = [
        what
        for what, mine, theirs in (
            ("binary", {build.binary_sha256}, {other.binary_sha256}),
            ("entry point", set(view.bundle.entries), set(view.parent.bundle.entries) if names_differ else set()),
            ("function", _functions(view), _functions(view.parent) if names_differ else set()),
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
    """The launched kernels' names inside their cubin; empty on the host, whose program calls them through a table."""
    code = view.build.code if view.build else None
    return {kernel.symbol for kernel in code.kernels if kernel.entry in view.bundle.entries} if code else set()
