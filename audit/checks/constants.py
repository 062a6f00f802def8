"""`__constant__` variables that nobody fills: the kernel reads zeros, which is rarely what its author means."""

from __future__ import annotations

from collections.abc import Iterator

from audit.checks.result import Note
from audit.checks.view import View


def constant_notes(view: View) -> Iterator[Note]:
    """A note for each `__constant__` variable without an initialiser and without a buffer."""
    if view.build is None:
        return
    filled = {name.rpartition("::")[2] for name in view.bundle.constants}
    for name in view.build.unset_constants:
        if name not in filled:
            yield Note(
                "constant",
                f"nothing fills the __constant__ variable {name}, so it holds zeros; declare "
                f'Buffer("{name}", dtype, dims, "constant") and return its contents from inputs()',
            )
