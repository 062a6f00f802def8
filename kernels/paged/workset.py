"""The working set that `audit bench` times: that of a model's attention layers late in a long context."""

from collections.abc import Mapping

import msgspec

from audit import AxisValue, Bench, Case, Inputs

from .inputs import live_lengths
from .peers import PEERS
from .storage import table_entries

_AXES: Mapping[str, AxisValue] = {"context": 261_888, "page": 1648, "layout": "interleaved"}
_CONTEXTS = (1_024, 32_768, 65_536, 131_072, 261_888)


def see(case: Case, _inputs: Inputs, context: int) -> Inputs:
    """Row lengths of a live round at `context` tokens; everything else stays as it lies."""
    return {"lengths": live_lengths(_at(case, context))}


def moved(case: Case, context: int) -> int:
    """Bytes of K and V that some row sees, of their table entries, of q, lengths and out, each once."""
    slots = case.rows * case.heads
    return int(2 * context * case.dim + 4 * table_entries(_at(case, context)) + 4 * slots * case.dim + 4 * case.rows)


def _at(case: Case, context: int) -> Case:
    return msgspec.structs.replace(case, axes={**case.axes, "context": context})


BENCH = Bench(_AXES, _CONTEXTS, see, moved, peers=PEERS)
