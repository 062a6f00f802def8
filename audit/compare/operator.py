"""An operator of two kernels: what `audit compare` runs, in the words of a declaration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from audit import formats
from audit.compare.arguments import buffers_for, fitted, scalar_for
from audit.compare.hooks import Hooks, asked
from audit.compare.preprocess import preprocess
from audit.compare.signature import Signature, signature_of
from audit.compare.sizes import Room, extents
from audit.compare.values import Values, checked
from audit.errors import PlanError, ProjectError
from audit.relations import Bitwise, NoWorse, Relation
from audit.report.pair_figures import NEW, OLD
from audit.spec import Arg, Array, Buffer, Case, Inputs, Launch, Operator, Reference, Source, Variant


class ComparedKernel(msgspec.Struct, frozen=True):
    """One of the two kernels: where it is, and how it is launched. Words are as the command line gives them."""

    name: str
    path: str  # relative to the root
    entry: str
    grid: tuple[str, ...] = ()
    block: tuple[str, ...] = ()
    shared: str = ""
    defines: dict[str, str] = {}
    renamed: dict[str, str] = {}  # parameter -> that of the old kernel which it corresponds to

    @property
    def label(self) -> str:
        """The side as the usage has it: OLD or NEW."""
        return self.name.upper()


class Comparison(msgspec.Struct, frozen=True):
    """Everything that `audit compare` is given."""

    root: Path
    old: ComparedKernel
    new: ComparedKernel
    hooks: Hooks
    outputs: dict[str, Room] = {}
    workspaces: dict[str, Room] = {}
    relation: Relation = Bitwise()


def compared(order: Comparison) -> Operator:
    """The operator, whose variant `new` has the parent `old`.

    Raises PlanError that names everything that the sources and the user's file do not say, ProjectError for what the
    user's file raises or returns by mistake.
    """
    signatures = {side.name: _signature(order, side) for side in (order.old, order.new)}
    made: dict[str, Values] = {}

    def values(case: Case) -> Values:
        if case.id not in made:
            made[case.id] = order.hooks.make(case.rng())
        return made[case.id]

    def buffers(case: Case) -> list[Buffer]:
        return _buffers(order, signatures, values(case))[0]

    def inputs(case: Case, _rng: np.random.Generator) -> Inputs:
        given = values(case)
        where = order.hooks.name("inputs")
        return {one.name: fitted(where, one, given[one.name]) for one in buffers(case) if one.role in ("in", "inout")}

    name = signatures[NEW].name
    sample = Case(name, name, {}, seed=1)
    _require_everything(order, signatures, values(sample))
    written = [one.name for one in buffers(sample) if one.role in ("out", "inout")]
    if not written:
        raise PlanError(
            "expected a buffer that the kernels write, but got none: every pointer is const, null or scratch memory; "
            "without a result there is nothing to compare"
        )
    variants = [
        _variant(order, order.old, signatures[OLD], values, None),
        replace(_variant(order, order.new, signatures[NEW], values, OLD), relation=order.relation),
    ]
    _require_two_kernels(order, variants, sample)
    made.clear()  # a case reads its own files, which its record keeps
    references = _references(order, buffers, values)
    if isinstance(order.relation, NoWorse) and not references:
        raise PlanError(
            f"--relation no-worse: expected a function reference(inputs) in {order.hooks.file.name}, which gives the "
            "results in f64, but there is none; add it"
        )
    return Operator(
        name,
        axes=(),
        buffers=buffers,
        inputs=inputs,
        variants=variants,
        references=references,
        measured={one: one for one in written} if references else {},
        nonfinite=lambda _case, _inputs: dict.fromkeys(
            written, np.array(True)
        ),  # where OLD has a NaN, NEW needs the same
    )


def _signature(order: Comparison, side: ComparedKernel) -> Signature:
    source = preprocess(order.root / side.path, side.defines)
    option = "--new-entry" if side.name == NEW and side.entry != order.old.entry else "--entry"
    found = signature_of(source, side.entry, f"{side.label} ({side.path})", option)
    names = [one.name for one in found.parameters]
    for name in side.renamed:
        if name not in names:
            raise PlanError(f"--rename: expected a parameter of NEW ({', '.join(names) or 'none'}), but got {name!r}")
    parameters = tuple(
        msgspec.structs.replace(one, name=side.renamed.get(one.name, one.name)) for one in found.parameters
    )
    return msgspec.structs.replace(found, parameters=parameters)


def _require_two_kernels(order: Comparison, variants: Sequence[Variant], sample: Case) -> None:
    """A file beside its own copy would pass. Comments, blanks and file names make no difference."""
    old, new = (
        [word.text for word in preprocess(order.root / side.path, side.defines).tokens]
        for side in (order.old, order.new)
    )
    launches = [list(variant.launches(sample)) for variant in variants]
    if old == new and launches[0] == launches[1]:
        raise PlanError(
            f"expected two kernels, but OLD ({order.old.path}) and NEW ({order.new.path}) are one code, launched in "
            "the same way; name two versions"
        )


def _buffers(order: Comparison, signatures: Mapping[str, Signature], values: Values) -> tuple[list[Buffer], list[str]]:
    outputs = {**_returned(order.hooks, values), **order.outputs}
    return buffers_for([signatures[OLD], signatures[NEW]], values, outputs, order.workspaces)


def _returned(hooks: Hooks, values: Values) -> dict[str, Room]:
    """The sizes that outputs() returns: an array or a shape by name."""
    return {
        name: Room(name, tuple(map(str, one))) if isinstance(one, tuple) else Room(name, sample=np.asarray(one))
        for name, one in hooks.shapes(values).items()
    }


def _require_everything(order: Comparison, signatures: Mapping[str, Signature], values: Values) -> None:
    missing = [*_buffers(order, signatures, values)[1]]
    for side in (order.old, order.new):
        missing += _missing(order, side, signatures[side.name], values)
    if not missing:
        return
    named = {one.name for signature in signatures.values() for one in signature.parameters}
    lines = [*dict.fromkeys(missing)]
    if unused := [name for name in values if name not in named]:
        lines.append(f"({order.hooks.name('inputs')} also returns {', '.join(unused)}, which no parameter is named)")
    lines += _renaming(signatures)
    listed = "".join(f"\n  {one}" for one in lines)
    raise PlanError(f"the sources and {order.hooks.file.name} do not say everything:{listed}")


def _missing(order: Comparison, side: ComparedKernel, signature: Signature, values: Values) -> Iterator[str]:
    for one in signature.parameters:
        if not one.pointer and one.name not in values:
            yield f"what is {one.name} ({one.spelled})? Return a number from inputs()"
        elif not one.pointer:
            try:
                scalar_for(one, values[one.name])
            except PlanError as error:
                yield str(error)
    declared = order.hooks.launched(side.name == NEW, values)
    for key in ("grid", "block"):
        if not getattr(side, key) and key not in declared:
            yield f"how many {'blocks' if key == 'grid' else 'threads a block'}? Give --{key} N[,N,N], or launch()"


def _renaming(signatures: Mapping[str, Signature]) -> list[str]:
    """That a parameter of the new kernel may be one of the old one under another name."""
    old, new = ([one.name for one in signatures[side].parameters] for side in (OLD, NEW))
    pairs = [
        f"--rename {mine}={theirs}"
        for mine, theirs in zip(
            [name for name in new if name not in old], [name for name in old if name not in new], strict=False
        )
    ]
    return [f"(if NEW only names its parameters otherwise: {' '.join(pairs)})"] if pairs else []


def _variant(
    order: Comparison, side: ComparedKernel, signature: Signature, values: Callable[[Case], Values], parent: str | None
) -> Variant:
    def launches(case: Case) -> list[Launch]:
        given = values(case)
        declared = order.hooks.launched(side.name == NEW, given)
        grid = _launched("grid", side.grid or declared["grid"], given)
        block = _launched("block", side.block or declared["block"], given)
        shared = _launched("shared", side.shared or declared.get("shared_bytes", 0), given)[0]
        args: list[Arg] = []
        for one in signature.parameters:
            value = given.get(one.name)
            if one.pointer:
                args.append(None if one.name in given and value is None else one.name)
            else:
                args.append(scalar_for(one, value))
        return [Launch(signature.entry, grid, block, shared, tuple(args))]

    return Variant(side.name, Source(side.path, side.defines), launches, parent=parent)


def _launched(option: str, words: Any, values: Values) -> tuple[int, ...]:
    """One to three extents of a launch; only the bytes of shared memory may be 0."""
    listed = words if isinstance(words, tuple | list) else (words,)
    found = extents(f"--{option}", listed, values)
    if not 1 <= len(found) <= 3 or (option != "shared" and 0 in found):
        raise PlanError(f"--{option}: expected one to three extents of at least 1, but got {','.join(map(str, found))}")
    return found


def _references(
    order: Comparison, buffers: Callable[[Case], Sequence[Buffer]], values: Callable[[Case], Values]
) -> list[Reference]:
    reference = order.hooks.reference
    if reference is None:
        return []
    where = order.hooks.name("reference")

    def compute(case: Case, inputs: Inputs) -> Mapping[str, Array]:
        given = dict(values(case))
        listed = {one.name: one for one in buffers(case)}
        for name, stored in inputs.items():
            array = formats.stored_values(listed[name].dtype, np.array(stored)) if name in listed else np.array(stored)
            with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
                given[name] = array.astype(np.float64) if array.dtype.kind == "f" else array
        found = checked(where, asked(where, reference, given))
        results = {one.name: one.shape(case) for one in listed.values() if one.role in ("out", "inout")}
        return {name: _result(where, results, name, value) for name, value in found.items()}

    return [Reference("fp64", compute)]


def _result(where: str, results: Mapping[str, tuple[int, ...]], name: str, value: Any) -> Array:
    if name not in results:
        raise ProjectError(f"{where}: expected results of {', '.join(results)}, but got {name!r}")
    array = np.asarray(value, np.float64)
    if array.shape != results[name]:
        raise ProjectError(f"{where}[{name!r}]: expected the shape {results[name]}, but got {array.shape}")
    return array
