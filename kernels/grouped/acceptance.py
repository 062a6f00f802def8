"""What results of the grouped operator must satisfy: references, domain, bounds 1 to 5 of kernels/CONTRACT.md.

`references/` defines each bound; this file applies them to the operator's buffers.
"""

from collections.abc import Mapping

import numpy as np

from audit import Array, Bound, Case, Expected, Got, Inputs, Measured, Reference

from ...references import bounds, mutations
from ...references.contract import grouped_contract
from ...references.domain import check_domain
from ...references.fp64 import GroupedFP64, grouped_fp64
from ...references.merge import merge
from ...references.omissions import omission_share
from ...references.splits import splits, total_of
from ...references.tensor_core import MODELS
from ..paged.acceptance import FP64_OWN_ERROR, MERGE, arrays, as_mutations, differing, library_for, library_name, scales

_LINE = ("row", "head")
_SPLIT = ("split", "row", "head")
_WHOLE = 300  # tokens; beyond, the contract reference computes only chosen splits


def admit(case: Case, inputs: Inputs) -> None:
    """Refuse inputs outside the contract's domain."""
    check_domain(*arrays(case, inputs), **scales(inputs))


def precast(_case: Case, inputs: Inputs, got: Mapping[str, Array]) -> Array:
    """The FP32 output before its rounding to f16: the contract's merge of the audited workspace."""
    lengths = np.asarray(inputs["lengths"])
    return merge(got["partial"], got["lse"], lengths, total_of(lengths))


def _fp64(case: Case, inputs: Inputs) -> Mapping[str, Array]:
    with library_for(case) as library:
        found = grouped_fp64(*arrays(case, inputs), **scales(inputs), model=MODELS[case.arch], library=library)
    return vars(found)


def _contract(case: Case, inputs: Inputs) -> Mapping[str, Array]:
    """The contract bit for bit; of a long context only the first, the last and two drawn splits."""
    active = _active(inputs)
    whole = _is_short(inputs)
    chosen = None if whole else {0, active - 1, *case.rng().integers(0, active, 2).tolist()}
    return vars(grouped_contract(*arrays(case, inputs), **scales(inputs), chosen=chosen, model=MODELS[case.arch]))


def _active(inputs: Inputs) -> int:
    return len(splits(total_of(np.asarray(inputs["lengths"]))))


def _workspace(_case: Case, inputs: Inputs, got: Got, expected: Expected) -> Measured:
    """Bound 1 for partial and lse: elements that differ from the contract reference, [split, row, head]."""
    rows = len(inputs["lengths"])
    written = expected["written"][:, :rows, None]
    wrong = [differing(got[name], expected[name])[:, :rows].sum(axis=-1) for name in ("partial", "lse")]
    value = np.where(written, sum(wrong), 0).astype(np.float64)
    return Measured(value, np.zeros_like(value), _SPLIT)


def _is_short(inputs: Inputs) -> bool:
    return total_of(np.asarray(inputs["lengths"])) <= _WHOLE


def _out(_case: Case, inputs: Inputs, got: Got, expected: Expected) -> Measured | None:
    """Bound 1 for the output. Beyond `_WHOLE` tokens the contract reference has no output; bound 2 covers it."""
    if not _is_short(inputs):
        return None
    value = differing(got["out"], expected["out"]).astype(np.float64)
    return Measured(value, np.zeros_like(value), ("row", "head", "dim"))


def _precast(_case: Case, _inputs: Inputs, got: Got, expected: Expected) -> Measured:
    return Measured(*bounds.precast_error(got["precast"], GroupedFP64(**expected)), _LINE)


def _partial(_case: Case, inputs: Inputs, got: Got, expected: Expected) -> Measured:
    reference = GroupedFP64(**expected)
    return Measured(*bounds.partial_error(got["partial"], got["lse"], reference, _active(inputs)), _SPLIT)


def _lse(_case: Case, inputs: Inputs, got: Got, expected: Expected) -> Measured:
    return Measured(*bounds.lse_error(got["lse"], GroupedFP64(**expected), _active(inputs)), _SPLIT)


def _final(_case: Case, _inputs: Inputs, got: Got, expected: Expected) -> Measured:
    return Measured(*bounds.final_error(got["out"], GroupedFP64(**expected)), _LINE)


REFERENCES = (Reference("fp64", _fp64, FP64_OWN_ERROR, library_name), Reference("contract", _contract, "bit for bit"))
BOUNDS = (
    Bound("contract_workspace", _workspace, reference="contract"),
    Bound("contract_out", _out, reference="contract"),
    MERGE,
    Bound("precast", _precast),
    Bound("partial", _partial),
    Bound("lse", _lse),
    Bound("final", _final),
)
MUTATIONS = as_mutations(mutations.MUTATIONS)


def omissions(case: Case, inputs: Inputs, references: Mapping[str, Mapping[str, Array]]) -> float:
    """The share of single tokens whose omission the bounds could show in this case."""
    reference = GroupedFP64(**references["fp64"])
    with library_for(case) as library:
        return omission_share(*arrays(case, inputs), **scales(inputs), fp64=reference, library=library)
