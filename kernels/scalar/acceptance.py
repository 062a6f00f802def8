"""What results of the scalar operator must satisfy: references, domain, bounds 1 to 5 of kernels/CONTRACT.md."""

from collections.abc import Mapping

import numpy as np

from audit import Array, Bound, Case, Expected, Got, Inputs, Measured, Reference

from ...references import bounds, scalar_bounds, scalar_mutations
from ...references.domain import check_domain
from ...references.omissions import omission_share
from ...references.scalar_contract import scalar_contract, scalar_merge
from ...references.scalar_fp64 import ScalarFP64, scalar_fp64
from ..paged.acceptance import FP64_OWN_ERROR, MERGE, arrays, as_mutations, differing, library_for, library_name, scales

CAPACITY = 262_144
PARTITION = 1024
_LINE = ("row", "head")
_PART = ("partition", "row", "head")
_WHOLE = 8_197  # tokens; beyond, the contract reference computes only chosen partitions


def active_partitions(inputs: Inputs) -> int:
    """How many partitions have a token."""
    return -(-max(0, int(np.max(inputs["lengths"]))) // PARTITION)


def admit(case: Case, inputs: Inputs) -> None:
    """Refuse inputs outside the contract's domain."""
    check_domain(*arrays(case, inputs), **scales(inputs), capacity=CAPACITY)


def precast(_case: Case, inputs: Inputs, got: Mapping[str, Array]) -> Array:
    """The FP32 output before its rounding to f16: the contract's reducer over the audited workspace."""
    return scalar_merge(got["partial"], got["maximum"], got["sums"], int(np.asarray(inputs["lengths"])[0]))


def _fp64(case: Case, inputs: Inputs) -> Mapping[str, Array]:
    with library_for(case) as library:
        return vars(scalar_fp64(*arrays(case, inputs), **scales(inputs), library=library))


def _contract(case: Case, inputs: Inputs) -> Mapping[str, Array]:
    """The contract bit for bit; of a long context the first, the last and two drawn partitions."""
    active = active_partitions(inputs)
    whole = _is_short(inputs)
    chosen = None if whole else {0, active - 1, *case.rng().integers(0, active, 2).tolist()}
    return vars(scalar_contract(*arrays(case, inputs), **scales(inputs), chosen=chosen))


def _workspace(_case: Case, _inputs: Inputs, got: Got, expected: Expected) -> Measured:
    """Bound 1 for the workspace: elements that differ from the contract reference, [partition, row, head]."""
    partial = differing(got["partial"], expected["partial"]).sum(axis=-1)
    value = partial + differing(got["maximum"], expected["maximum"]) + differing(got["sums"], expected["sums"])
    value = np.moveaxis(np.where(expected["written"], value, 0), 2, 0).astype(np.float64)
    return Measured(value, np.zeros_like(value), _PART)


def _is_short(inputs: Inputs) -> bool:
    return int(np.max(inputs["lengths"])) <= _WHOLE


def _out(_case: Case, inputs: Inputs, got: Got, expected: Expected) -> Measured | None:
    """Bound 1 for the output. Beyond `_WHOLE` tokens the contract reference has no output; bound 2 covers it."""
    if not _is_short(inputs):
        return None
    value = differing(got["out"], expected["out"]).astype(np.float64)
    return Measured(value, np.zeros_like(value), ("row", "head", "dim"))


def _precast(_case: Case, _inputs: Inputs, got: Got, expected: Expected) -> Measured:
    return Measured(*bounds.precast_error(got["precast"], ScalarFP64(**expected)), _LINE)


def _partial(_case: Case, inputs: Inputs, got: Got, expected: Expected) -> Measured:
    return Measured(
        *scalar_bounds.partial_error(got["partial"], ScalarFP64(**expected), active_partitions(inputs)), _PART
    )


def _lse(_case: Case, inputs: Inputs, got: Got, expected: Expected) -> Measured:
    reference = ScalarFP64(**expected)
    return Measured(*scalar_bounds.lse_error(got["maximum"], got["sums"], reference, active_partitions(inputs)), _PART)


def _final(_case: Case, _inputs: Inputs, got: Got, expected: Expected) -> Measured:
    return Measured(*bounds.final_error(got["out"], ScalarFP64(**expected)), _LINE)


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
MUTATIONS = as_mutations(scalar_mutations.MUTATIONS)


def omissions(case: Case, inputs: Inputs, references: Mapping[str, Mapping[str, Array]]) -> float:
    """The share of single tokens whose omission the bounds could show in this case."""
    reference = ScalarFP64(**references["fp64"])
    with library_for(case) as library:
        return omission_share(*arrays(case, inputs), **scales(inputs), fp64=reference, library=library)
