"""The binary that ran is the one that was built, and what it launches is not what the parent launches."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from audit.backends.outcome import Completed
from audit.bundle import BundledLaunch
from audit.checks.result import Result
from audit.checks.view import View


def identity(view: View) -> Iterator[Result]:
    """The process hashes what it executes: its own program, or the cubin that it loads.

    Parent and candidate may share a file, a kernel or a whole binary, and in some cases launch the very same. What they
    do in all cases of a plan is left to `audit.copies`.

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
    if view.parent.revision and view.launched_code == view.parent.launched_code:
        what = "sources" if other.key == build.key else "machine code, from other sources,"
        yield Result("identity", "pass", f"built from the same {what} as {view.parent.revision[:12]}")
        return
    ran = f"ran the built binary {build.binary_sha256[:16]}"
    if view.launched_code == view.parent.launched_code:
        yield Result("identity", "pass", f"{ran}, which in this case launches what {view.parent.variant.name} launches")
        return
    differs = _difference(view, view.parent)
    yield Result("identity", "pass", f"{ran}; what it launches differs from the parent's in {differs}")


def _difference(view: View, parent: View) -> str:
    """What tells the launches of a variant from its parent's, in words."""
    mine, theirs = view.bundle.launches, parent.bundle.launches
    if len(mine) != len(theirs):
        return f"their number, {len(mine)} against {len(theirs)}"
    pairs = list(zip(mine, theirs, strict=True))
    others = sum(view.code_of(one.entry) != parent.code_of(other.entry) for one, other in pairs)
    found = {
        f"the machine code of {others} of {len(mine)}": others > 0,
        "the configuration": any(_configuration(one) != _configuration(other) for one, other in pairs),
        "the arguments": any(one.args != other.args for one, other in pairs),
    }
    return " and ".join(what for what, holds in found.items() if holds)


def _configuration(launch: BundledLaunch) -> BundledLaunch:
    return msgspec.structs.replace(launch, entry="", args=())
