"""A variant that is its parent: from the same sources it launches nothing else, in no case of a plan.

In one case a variant may well launch what its parent launches: it chooses between kernels by size, say. Other sources
that give the same machine code were compared, with nothing to find; a note says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from audit.checks.result import Note, Result, worst
from audit.compile.identity import BuildIdentity
from audit.plan import Plan
from audit.records.run_schema import Audit, same_code, same_sources

_WHAT = "every launch of the parent {} has the same machine code, configuration and arguments"


def without_copies(plan: Plan, audits: Sequence[Audit], builds: Mapping[str, BuildIdentity]) -> tuple[Audit, ...]:
    """The audits of a plan; `identity` fails in those of each variant that is its parent in all its cases."""
    marked = []
    parents = {one.label: one.parent for one in plan.variants}
    past = {one.label for one in plan.variants if one.revision}
    for audit in audits:
        parent = parents.get(audit.variant)
        if parent is None or parent in past or not same_code(audits, audit.variant, parent):
            marked.append(audit)
        elif same_sources(audits, builds, audit.variant, parent):
            marked.append(_failed(audit, f"compared with itself: in every case, {_WHAT.format(parent)}"))
        else:
            note = Note("identity", f"other sources, but in every case {_WHAT.format(parent)}")
            marked.append(msgspec.structs.replace(audit, notes=(*audit.notes, note)))
    return tuple(marked)


def _failed(audit: Audit, detail: str) -> Audit:
    results = tuple(
        Result("identity", "fail", detail) if result.check == "identity" else result for result in audit.results
    )
    return msgspec.structs.replace(audit, results=results, verdict=worst([result.verdict for result in results]))
