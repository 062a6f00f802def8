"""A variant that is its parent: in no case of a plan does it launch anything else.

In one case a variant may well launch what its parent launches: it chooses between kernels by size, say. In all cases
nothing was compared with anything.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from audit.checks.result import Result, worst
from audit.plan import Plan
from audit.records.run import Audit


def without_copies(plan: Plan, audits: Sequence[Audit]) -> tuple[Audit, ...]:
    """The audits of a plan; `identity` fails in those of each variant that launches the very same in all its cases."""
    code = {(audit.case, audit.variant): audit.launched_code for audit in audits}
    copies = {}
    for variant in plan.variants:
        parent = next((one for one in plan.variants if one.label == variant.parent), None)
        mine = [audit for audit in audits if audit.variant == variant.label]
        if parent is None or parent.revision or not mine:
            continue
        if all(one.launched_code and one.launched_code == code.get((one.case, parent.label)) for one in mine):
            copies[variant.label] = parent.label
    return tuple(_marked(audit, copies[audit.variant]) if audit.variant in copies else audit for audit in audits)


def _marked(audit: Audit, parent: str) -> Audit:
    detail = (
        f"compared with itself: in every case, every launch of the parent {parent} has the same machine code, "
        "configuration and arguments"
    )
    results = tuple(
        Result("identity", "fail", detail) if result.check == "identity" else result for result in audit.results
    )
    return msgspec.structs.replace(audit, results=results, verdict=worst([result.verdict for result in results]))
