"""Whether the relation of a variant to its parent admits what both left on the device, so that it may be timed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from audit.bench.arrays import Region
from audit.bench.workset import Contender, WorkingSet
from audit.checks.judgement import judge
from audit.declaration import masks_of, relation_to_parent
from audit.elements import codes_of
from audit.errors import AuditError
from audit.families import drawn_by
from audit.inputs import nearby_inputs
from audit.records.bench import ComparedBytes
from audit.relations import Bitwise, NoWorse, Relation, Unrelated, relation_text
from audit.spec import Array, Inputs, Variant, kernels_on_gpu


def admitted(
    work: WorkingSet, inputs: Sequence[Inputs], contenders: Mapping[str, Contender], compared: ComparedBytes
) -> ComparedBytes:
    """The comparison, judged by the variant's relation: `outside` counts the elements and rows that it does not permit.

    A relation other than `Bitwise` judges on the host: the results of the plain launches of every layer, and those of
    the graph. `inputs` are those of each layer.
    """
    mine, theirs = contenders[compared.variant], contenders[compared.parent]
    declared = relation_to_parent(mine.variant, work.case, work.buffers.values())
    text = relation_text(mine.variant.relation)
    if compared.variant == compared.parent or text == relation_text(Bitwise()):
        return compared
    outside = sum(
        _outside(work, mine.variant, layer, given, name, declared[name], pair)
        for layer, given in enumerate(inputs)
        for name, pair in _pairs(mine, theirs, layer, declared)
    )
    return msgspec.structs.replace(compared, relation=text, outside=outside)


def _pairs(
    mine: Contender, theirs: Contender, layer: int, declared: Mapping[str, Relation]
) -> list[tuple[str, tuple[Region, Region]]]:
    """The buffers to judge in one layer, beside the parent's: of the plain launches, and of a graph that differs."""
    judged = {name for name, relation in declared.items() if not isinstance(relation, Unrelated)}
    plain, of_graph, parents = mine.plain_outs[layer], mine.outs[layer], theirs.plain_outs[layer]
    found = [(name, (region, parents[name])) for name, region in plain.items() if name in judged]
    found += [
        (name, (region, parents[name]))
        for name, region in of_graph.items()
        if name in judged and not np.array_equal(region.get(), plain[name].get())
    ]
    if any(name in judged for name in mine.workspace):  # one workspace serves all layers, so both run again
        for contender in (mine, theirs):
            contender.run_layer(layer)
        found += [(name, (one, theirs.workspace[name])) for name, one in mine.workspace.items() if name in judged]
    return found


def _outside(
    work: WorkingSet,
    variant: Variant,
    layer: int,
    inputs: Inputs,
    name: str,
    relation: Relation,
    pair: tuple[Region, Region],
) -> int:
    case, buffer = work.cases[layer], work.buffers[name]
    written = masks_of(work.operator, case, inputs)[name]
    if not written.any():
        return 0
    one, other = (codes_of(region.get(), buffer.dtype).reshape(buffer.shape(case)) for region in pair)
    expected = _expected(work, layer, inputs, name, relation.reference) if isinstance(relation, NoWorse) else None
    if isinstance(relation, NoWorse) and expected is None:
        raise AuditError(
            f"operator {work.operator.name}: {variant.name} is {relation_text(relation)}: expected an array in f64 for "
            f"{name} from reference {relation.reference}, but it returns none"
        )
    outside = judge(relation, buffer, one, other, written, expected).outside
    if outside and isinstance(relation, NoWorse):  # the parent may have been lucky
        moved = nearby_inputs(work.operator, case, inputs, drawn_by(case, "nearby"))
        nearby = _expected(work, layer, moved, name, relation.reference)
        outside = judge(relation, buffer, one, other, written, expected, nearby).outside
    return outside


def _expected(work: WorkingSet, layer: int, inputs: Inputs, name: str, reference: str) -> Array | None:
    operator = work.operator
    for one in operator.references:
        if one.name == reference:
            with kernels_on_gpu(True):
                found = one.compute(work.cases[layer], inputs).get(operator.measured.get(name, name))
            return found if found is not None and found.dtype == np.float64 else None
    return None
