"""A declaration as it resolves for the cases of a record: what the content of its files alone does not say.

A grid may follow an environment variable, a limit another package. So a record keeps a digest of everything that a
declaration resolves to without the inputs of a case, and it is resolved again when the record is judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from typing import NamedTuple

import msgspec
import numpy as np

from audit.bundle import resolve_launch
from audit.declaration import buffers_of, launches_of
from audit.errors import AuditError, PlanError
from audit.launch_record import LaunchRecord, launch_records
from audit.printable import one_line
from audit.project import Project
from audit.relations import Bitwise, relation_text
from audit.spec import Buffer, Case, Operator, kernels_on_gpu

RELATION = "relation of "
_DIGITS = 32
_UNRESOLVED = "unresolved: "
_SHOWN = 300


class ResolvedCase(NamedTuple):
    """A case of a record, the variants of the working tree that ran in it, and whether they ran on a GPU."""

    case: Case
    variants: Sequence[str]
    on_gpu: bool


class Resolution(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Digests (sha256, 32 digits) of a declaration as resolved.

    values  the values that its hooks and fields are made with: part of the declaration -> digest
    cases   case -> part -> digest; the parts are `axes`, `buffers`, for each variant `launches of NAME`, and
            `relation of NAME` where that is not bitwise
    """

    values: dict[str, str]
    cases: dict[str, dict[str, str]]


def resolution_of(project: Project, operator: str, cases: Iterable[ResolvedCase]) -> Resolution:
    """The declaration of an operator as it resolves now. What cannot be resolved keeps its reason in place of a
    digest."""
    cases = list(cases)
    declared = project.operators[operator]
    names = {"", *(name for case in cases for name in case.variants)}
    values = {
        part: digest[:_DIGITS]
        for variant, parts in project.values(operator).items()
        if variant in names
        for part, digest in parts.items()
    }
    return Resolution(values, {one.case.id: dict(_parts(declared, one)) for one in cases})


def resolution_changes(recorded: Resolution, now: Resolution) -> Iterator[tuple[str, str]]:
    """What resolves to something else now: (part, how)."""
    for part in dict.fromkeys((*recorded.values, *now.values)):
        if part not in now.values:
            yield part, "is not declared any more"
        elif part not in recorded.values:
            yield part, "is declared now, and was not"
        elif recorded.values[part] != now.values[part]:
            yield part, "has other values now, though its files may be the same"
    changed: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, parts in now.cases.items():
        before = recorded.cases.get(name, {})
        for part, digest in parts.items():
            if digest.startswith(_UNRESOLVED):
                changed[part, f"cannot be resolved any more ({digest.removeprefix(_UNRESOLVED)})"].append(name)
            elif part not in before:
                changed[part, "are not in the record"].append(name)
            elif before[part] != digest:
                changed[part, "differ from the recorded ones"].append(name)
        for part in before:
            if part.startswith(RELATION) and part not in parts:
                changed[part, "is in the record, and is not declared any more"].append(name)
    for (part, how), names in changed.items():
        yield part, f"{how}: {one_line(names[0], _SHOWN)}{f' and {len(names) - 1} more' if names[1:] else ''}"


def launches_digest(launches: Iterable[LaunchRecord]) -> str:
    """The digest of a variant's launches in one case, without the values of scalar inputs."""
    return _digest([launch.as_declared() for launch in launches])


def _parts(operator: Operator, one: ResolvedCase) -> Iterator[tuple[str, str]]:
    with kernels_on_gpu(one.on_gpu):
        yield "axes", _resolved(lambda: _digest(_axes(operator, one.case)))
        try:
            buffers = buffers_of(operator, one.case)
        except AuditError as error:
            yield "buffers", _unresolved(error)
            return
        yield "buffers", _resolved(lambda: _digest(_buffers(buffers, one.case)))
        for name in one.variants:
            yield f"launches of {name}", _resolved(partial(_launches_digest, operator, name, one.case, buffers))
        yield from _relations(operator, one)


def _relations(operator: Operator, one: ResolvedCase) -> Iterator[tuple[str, str]]:
    """The relation of each variant that must not leave its parent's bytes."""
    for name in one.variants:
        variant = next((each for each in operator.variants if each.name == name), None)
        if variant and (text := relation_text(variant.relation)) != relation_text(Bitwise()):
            yield f"{RELATION}{name}", relation_digest(text)


def relation_digest(text: str) -> str:
    """The digest of a relation in words."""
    return _digest(text)


def _resolved(digest: Callable[[], str]) -> str:
    try:
        return digest()
    except (AuditError, ArithmeticError, TypeError, ValueError) as error:
        return _unresolved(error)


def _unresolved(error: Exception) -> str:
    return f"{_UNRESOLVED}{one_line(error, _SHOWN)}"


def _axes(operator: Operator, case: Case) -> dict[str, object]:
    """The value of every axis; one that the case's name leaves out has its default."""
    if case.axes.keys() != (known := {axis.name for axis in operator.axes}):
        raise PlanError(f"expected the axes {sorted(known)}, but got {sorted(case.axes)}")
    for axis in operator.axes:
        axis.admit(case.axes[axis.name])
    return {axis.name: axis.default if axis.name in case.unnamed else case.axes[axis.name] for axis in operator.axes}


def _buffers(buffers: Iterable[Buffer], case: Case) -> list[object]:
    return [
        (buffer.name, buffer.dtype, buffer.extents(case), buffer.role, buffer.offset, buffer.behind.hex())
        for buffer in buffers
    ]


def _launches_digest(operator: Operator, name: str, case: Case, buffers: Sequence[Buffer]) -> str:
    variant = operator.variant(name)
    declared = launches_of(variant, case)
    names = {buffer.name for buffer in buffers}
    scalars = {arg: np.int32(0) for launch in declared for arg in launch.args if isinstance(arg, str)}
    inputs = {name: value for name, value in scalars.items() if name not in names}
    resolved = [resolve_launch(launch, variant, buffers, inputs) for launch in declared]
    return launches_digest(launch_records(declared, resolved))


def _digest(value: object) -> str:
    return sha256(msgspec.json.encode(value)).hexdigest()[:_DIGITS]
