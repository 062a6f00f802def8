"""The working set that `audit bench` times: the attention layers of a model late in a long context."""

from collections.abc import Mapping

import msgspec

from audit import AxisValue, Bench, Case, Inputs

from .inputs import live_lengths
from .peers import PEERS
from .storage import table_entries

_AXES: Mapping[str, AxisValue] = {"page": 1648, "layout": "interleaved"}
_CONTEXTS = (1_024, 32_768, 65_536, 131_072, 261_888)


def at_context(case: Case, _inputs: Inputs, context: int) -> Inputs:
    """The row lengths of a live round at `context` tokens; all other inputs stay."""
    return {"lengths": live_lengths(_at(case, context))}


def moved_bytes(case: Case, context: int) -> int:
    """Bytes of the visible K and V, of their table entries, and of q, lengths and out, each counted once."""
    slots = case.rows * case.heads
    return int(2 * context * case.dim + 4 * table_entries(_at(case, context)) + 4 * slots * case.dim + 4 * case.rows)


def _at(case: Case, context: int) -> Case:
    return msgspec.structs.replace(case, axes={**case.axes, "context": context})


BENCH = Bench("context", _CONTEXTS, _AXES, at_context, moved_bytes, peers=PEERS)
