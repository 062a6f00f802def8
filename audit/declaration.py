"""Whether a declaration, and what its hooks return, is what `audit.spec` describes: the first mismatch in one line.

The annotations of `audit.spec` are the description, and `_RULES` says what types cannot. A declaration is looked at
once, when its project is loaded; a hook is called through `ask` or one of the functions below it.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import inspect
import math
import re
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
import numpy as np

from audit.conversions import converted_inputs
from audit.elements import is_number
from audit.errors import InputError, ProjectError
from audit.families import FAMILIES, is_family
from audit.hooks import call
from audit.printable import one_line
from audit.relations import Bitwise, NoWorse, Relation, Ulps, Within
from audit.spec import (
    DTYPES,
    Array,
    Axis,
    Bench,
    Binary,
    Bound,
    Buffer,
    Case,
    Families,
    Inputs,
    Launch,
    Line,
    Machine,
    Measured,
    Mutation,
    Operator,
    Peer,
    Probe,
    Reference,
    Shape,
    Source,
    Variant,
)  # fmt: skip

T = TypeVar("T")
MOST_LETTERS = 100
"""Of a name: names become names of files, and columns of text."""


class Mismatch(NamedTuple):
    """A field that is not as described, by its path: `variants[0].code`."""

    field: str
    expected: str
    came: str

    def __str__(self) -> str:
        return f"{self.field}{': ' if self.field else ''}expected {self.expected}, but got {self.came}"


class _Rule(NamedTuple):
    """What a field of the right type must be besides."""

    expected: str
    holds: Callable[[Any], bool]


def _is_plain(name: str) -> bool:
    return 0 < len(name) <= MOST_LETTERS and name.isprintable() and name[0] not in ".- " and not set(name) & set("/\\")


def _is_text(text: str) -> bool:
    return bool(text.strip()) and text.isprintable()


_NAME = _Rule(
    f"a plain name: 1 to {MOST_LETTERS} printable letters without a slash, that begin with no dot, dash or blank",
    _is_plain,
)
_AXIS = _Rule("a name that Python takes for an attribute", lambda name: name.isidentifier() and _is_plain(name))
_BUFFER = _Rule(f"{_NAME.expected}, without any dot", lambda name: _is_plain(name) and "." not in name)
_TEXT = _Rule("one printable line of text", _is_text)
_KEYS = _Rule("plain names as keys", lambda mapping: all(map(_is_plain, mapping)))
_EXTENTS = _Rule(
    "one to three positive extents", lambda extents: 1 <= len(extents) <= 3 and all(extent >= 1 for extent in extents)
)
_CLUSTER = _Rule("None or one to three positive extents", lambda extents: extents is None or _EXTENTS.holds(extents))
_PRODUCT_FLAGS = re.compile(
    r"--?(o|c|dc|dw|E|M\w*|x|ptx|cubin|fatbin|optix-ir|ltoir|lto|dlto|lib|run|dlink|device-c|device-w|device-link|shared|"
    r"rdc|relocatable-device-code|compile|preprocess|link|gencode|generate-code|code|gpu-code|output-file|output-directory|"
    r"odir|keep|keep-dir|dryrun|clean|cuda|time|options-file|optf|device-debug|G)(=.*)?"
)
_FLAGS = _Rule(
    "words for nvcc that do not choose what it writes (-o, -c, -ptx, -rdc, -gencode, -G and the like), and macros in "
    "`defines`, so that a CPU has them too",
    lambda flags: all(
        _is_text(flag) and not _PRODUCT_FLAGS.fullmatch(flag) and not flag.startswith(("-D", "--define-macro", "-U"))
        for flag in flags
    ),
)
_FOLDERS = _Rule(
    "paths in the project, relative to its folder",
    lambda paths: all(_is_text(path) and not path.startswith("/") and ".." not in path.split("/") for path in paths),
)
_NUMBERS: Mapping[type, Any] = {
    int: int | np.integer,
    float: int | float | np.integer | np.floating,
}
_CONTAINERS: Mapping[Any, str] = {
    tuple: "a tuple of {}",
    Sequence: "a list of {}",
    dict: "a dict",
    Mapping: "a dict",
    np.ndarray: "a numpy array of numbers",
    collections.abc.Callable: "a function",
}
_FAMILIES = _Rule(f"input families: {', '.join(FAMILIES)}, seed2, seed3 ...", lambda names: all(map(is_family, names)))
_COUNT = _Rule("an integer of at least 0", lambda value: 0 <= value < 2**63)
_TOLERANCE = _Rule("a finite number of at least 0", lambda value: 0 <= value < math.inf)
_RELATION = _Rule(
    "a relation, or at least one by the name of an output or workspace",
    lambda relation: (
        not isinstance(relation, Mapping)
        or (bool(relation) and all(_is_plain(name) and "," not in name for name in relation))
    ),
)
_VOCABULARY = (Operator.__module__, Bitwise.__module__)
_RULES: Mapping[tuple[type, str], _Rule] = {
    **{(kind, "name"): _NAME for kind in (Operator, Shape, Variant, Reference, Bound, Probe, Mutation, Peer)},
    (Axis, "name"): _AXIS,
    (Buffer, "name"): _BUFFER,
    (Buffer, "dtype"): _Rule(f"one of {', '.join(DTYPES)}", lambda dtype: dtype in DTYPES),
    (Buffer, "offset"): _COUNT,
    (Source, "path"): _TEXT,
    (Source, "flags"): _FLAGS,
    (Source, "include"): _FOLDERS,
    (Source, "also"): _FOLDERS,
    (Source, "std"): _Rule("a C++ standard such as c++20", lambda std: re.fullmatch(r"(c\+\+\d\d)?", std) is not None),
    (Machine, "path"): _TEXT,
    (Binary, "path"): _TEXT,
    (Launch, "entry"): _TEXT,
    (Launch, "grid"): _EXTENTS,
    (Launch, "block"): _EXTENTS,
    (Launch, "shared_bytes"): _COUNT,
    (Launch, "cluster"): _CLUSTER,
    (Line, "families"): _FAMILIES,
    (Families, "names"): _FAMILIES,
    (Families, "without"): _FAMILIES,
    (Families, "seeds"): _Rule("an integer from 1 to 9999", lambda seeds: 1 <= seeds <= 9999),
    (Variant, "relation"): _RELATION,
    (Ulps, "n"): _COUNT,
    (Within, "atol"): _TOLERANCE,
    (Within, "rtol"): _TOLERANCE,
    (NoWorse, "factor"): _Rule("a finite number of at least 1", lambda factor: 1 <= factor < math.inf),
    (NoWorse, "reference"): _NAME,
    (Operator, "derived"): _KEYS,
    (Operator, "measured"): _KEYS,
    (Bench, "layers"): _Rule("an integer of at least 1", lambda layers: layers >= 1),
    (Bench, "values"): _Rule("at least one value, ascending", lambda values: list(values) == sorted({*values}) != []),
}


def admit(operator: Operator, file: Path) -> None:
    """Raise ProjectError unless the declaration is as described and refers to nothing that it does not have."""
    found = mismatch(operator, Operator) or next(_unknown(operator), None)
    if found is not None:
        name = one_line(operator.name) if isinstance(operator.name, str) else "without a name"
        raise ProjectError(f"{file}: operator {name}: {found}")


def mismatch(value: object, hint: Any, field: str = "") -> Mismatch | None:
    """The first part of a value that is not what an annotation says; None where all of it is."""
    if get_origin(hint) in (Union, UnionType):
        return _of_none(value, get_args(hint), hint, field)
    if not _is(value, hint):
        return Mismatch(field, words(hint), came(value))
    return next(_inside(value, hint, field), None)


def _inside(value: Any, hint: Any, field: str) -> Iterator[Mismatch]:
    """What a value of the right type holds that is not as described."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (tuple, Sequence):
        yield from _in_sequence(value, parts[0], field)
    elif origin in (dict, Mapping):
        for key, each in value.items():
            here = f"{field}[{came(key, bare=True)}]"
            if found := mismatch(key, parts[0], f"{field} (key)") or mismatch(each, parts[1], here):
                yield found
    elif isinstance(hint, type) and hint.__module__ in _VOCABULARY:
        yield from _in_fields(value, hint, _fields(hint), f"{field}." if field else "")


def _of_none(value: object, parts: Sequence[Any], hint: Any, field: str) -> Mismatch | None:
    """Of the mismatches with each type of a union the one that lies deepest: the value was meant to be of that type."""
    if any(_is(value, part) and next(_inside(value, part, field), None) is None for part in parts):
        return None
    found = [mismatch(value, part, field) for part in parts]
    deepest = max((one for one in found if one is not None), key=lambda one: len(one.field))
    return deepest if deepest.field != field else Mismatch(field, words(hint), came(value))


def _in_sequence(value: Sequence[Any], hint: Any, field: str) -> Iterator[Mismatch]:
    for index, each in enumerate(value):
        if found := mismatch(each, hint, f"{field}[{index}]"):
            yield found
    names = [each.name for each in value if hasattr(each, "name")]
    if twice := next((name for name in names if names.count(name) > 1), None):
        yield Mismatch(field, "distinct names", f"{came(twice, bare=True)} twice")


def _in_fields(value: object, kind: type, fields: Mapping[str, Any], before: str) -> Iterator[Mismatch]:
    for name, hint in fields.items():
        each = getattr(value, name)
        if found := mismatch(each, hint, before + name):
            yield found
        elif (rule := _RULES.get((kind, name))) and not rule.holds(each):
            yield Mismatch(before + name, rule.expected, came(each))


@cache
def _fields(kind: type) -> Mapping[str, Any]:
    """The annotation of each field of a type that declarations are made of; none for any other type."""
    if not (dataclasses.is_dataclass(kind) or issubclass(kind, msgspec.Struct)):
        return {}
    return get_type_hints(kind)


def _is(value: object, hint: Any) -> bool:
    """Whether a value itself, whatever it holds, is what an annotation says."""
    origin = get_origin(hint)
    if origin is Literal:
        holds = isinstance(value, str) and value in get_args(hint)
    elif origin in (tuple, Sequence):
        holds = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    elif origin is np.ndarray:
        holds = isinstance(value, np.ndarray | np.generic) and is_number(value.dtype)
    elif origin is collections.abc.Callable:
        holds = callable(value)
    elif hint in _NUMBERS:
        holds = isinstance(value, _NUMBERS[hint]) and not isinstance(value, bool)
    else:
        holds = hint is Any or getattr(hint, "_is_protocol", False) or isinstance(value, origin or hint)
    return holds


def words(hint: Any) -> str:
    """An annotation as people say it."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        described = " or ".join(dict.fromkeys(map(words, parts)))
    elif origin is Literal:
        described = f"one of {', '.join(parts)}"
    elif origin is not None:
        described = _CONTAINERS[origin].format(*map(_bare, parts[:1]))
    else:
        described = "None" if hint is NoneType else _with_article(_bare(hint))
    return described


def _bare(hint: Any) -> str:
    if isinstance(hint, list) or get_origin(hint) is not None:
        return "" if isinstance(hint, list) else words(hint)
    name: str = {np.generic: "numpy scalar", float: "number"}.get(hint) or hint.__name__
    return name


def _with_article(name: str) -> str:
    return f"{'an' if name[:1] in 'aeiouAEIO' else 'a'} {name}"


def came(value: object, *, bare: bool = False) -> str:
    """A value in a few words, in one line."""
    name = type(value).__name__
    if value is None:
        return "None"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    if isinstance(value, str | bytes | int | float | tuple | list | dict | set | np.generic):
        return one_line(reprlib.repr(value)) if bare else f"{one_line(reprlib.repr(value))} ({name})"
    return _with_article(name)


def _unknown(operator: Operator) -> Iterator[Mismatch]:
    """Each name that a declaration refers to and does not declare."""
    axes, variants, probes = (
        [one.name for one in named] for named in (operator.axes, operator.variants, operator.probes)
    )
    shapes = [shape.name for shape in operator.shapes] or [operator.name]
    families = operator.plan if isinstance(operator.plan, Families) else None
    plan: Mapping[str, Sequence[Line]] = {} if isinstance(operator.plan, Families) else operator.plan
    known_references = [one.name for one in operator.references]
    for at, variant in enumerate(operator.variants):
        if variant.parent is None and variant.relation != Bitwise():
            field = f"variants[{at}].relation"
            yield Mismatch(field, "the default where there is no parent; name the parent", came(variant.relation))
    lines = [
        (f"{field}[{shape!r}][{index}]", line)
        for field, plans in (("plan", plan), ("sanitize", operator.sanitize))
        for shape, listed in plans.items()
        for index, line in enumerate(listed)
    ]
    references: list[tuple[str, str, Iterable[str | None], Sequence[str]]] = [
        ("default", "a variant", [operator.default], variants),
        *((f"variants[{at}].parent", "a variant", [one.parent], variants) for at, one in enumerate(operator.variants)),
        *(
            (f"variants[{at}].relation.reference", "a reference", [one.reference], known_references)
            for at, variant in enumerate(operator.variants)
            for one in relations_in(variant.relation)
            if isinstance(one, NoWorse)
        ),
        *((f"shapes[{at}].fixed", "an axis", one.fixed, axes) for at, one in enumerate(operator.shapes)),
        *(
            (f"{field} (key)", "a shape", keys, ["", *shapes])
            for field, keys in (
                ("plan", plan), ("captures", operator.captures), ("sanitize", operator.sanitize)
            )
        ),
        *((f"{field}.axes", "an axis", line.axes, axes) for field, line in lines),
        *((f"{field}.probe", "a probe", [line.probe], probes) for field, line in lines),
        ("plan.sizes", "an axis", families.sizes if families and isinstance(families.sizes, Mapping) else (), axes),
        ("bench.axes", "an axis", operator.bench.axes if operator.bench else (), axes),
        ("bench.axis", "an axis", [operator.bench.axis] if operator.bench else (), axes),
    ]  # fmt: skip
    for field, what, names, known in references:
        for name in names:
            if name is not None and name not in known:
                yield Mismatch(field, f"{what} of {', '.join(map(repr, known)) or 'none'}", repr(name))


def relations_in(relation: Relation | Mapping[str, Relation]) -> tuple[Relation, ...]:
    """Every relation that a variant declares by name, or its only one."""
    return tuple(relation.values()) if isinstance(relation, Mapping) else (relation,)


def relation_to_parent(variant: Variant, case: Case, buffers: Iterable[Buffer]) -> dict[str, Relation]:
    """The relation of each output and workspace to the parent's. One that is not `Bitwise` leaves workspaces out.

    Raises ProjectError where the variant names a buffer that is no result of the case.
    """
    results = {buffer.name: buffer.role for buffer in buffers if buffer.role not in ("in", "scratch")}
    declared = variant.relation
    if not isinstance(declared, Mapping):
        return {
            name: declared for name, role in results.items() if isinstance(declared, Bitwise) or role != "workspace"
        }
    if unknown := [name for name in declared if name not in results]:
        raise ProjectError(
            f"operator {case.operator}, case {case.id}: relation of {variant.name}: expected outputs and workspaces of "
            f"{list(results)}, but got {unknown}"
        )
    return {name: declared.get(name, Bitwise()) for name in results}


def ask(case: Case, what: str, function: Callable[..., T], *args: object, returns: Any) -> T:
    """What a hook returns, which is of the type `returns`.

    Raises ProjectError in one line, with file, operator and hook, where it is of another or the hook raised.
    """
    try:
        value = call(case, what, function, *args)
    except InputError:
        raise
    except ProjectError as error:
        raise ProjectError(f"operator {case.operator}, {one_line(error, 1000)}") from error
    if found := mismatch(value, returns):
        raise _refusal(case, what, function, found)
    return value


def _refusal(case: Case, what: str, function: object, found: Mismatch) -> ProjectError:
    separator = "" if found.field.startswith(("[", " ")) or not found.field else "."
    text = f"{separator}{found}" if found.field else f": {found}"
    return ProjectError(f"{_line_of(function)}: operator {case.operator}, case {case.id}: what {what} returned{text}")


def _line_of(function: object) -> str:
    """The file and line of a hook; of one that is no plain function, what it wraps."""
    function = getattr(function, "func", function)  # functools.partial
    try:
        code = inspect.unwrap(function).__code__  # type: ignore[arg-type]
    except (AttributeError, ValueError):
        return "a hook without a line"
    return f"{code.co_filename}:{code.co_firstlineno}"


def buffers_of(operator: Operator, case: Case) -> tuple[Buffer, ...]:
    """Every buffer of a case."""
    found = ask(case, "buffers", operator.buffers, case, returns=Sequence[Buffer])
    for index, buffer in enumerate(found):
        if any(size < 0 for size in buffer.shape(case)):
            raise _refusal(
                case, "buffers", operator.buffers, Mismatch(f"[{index}].dims", "sizes of at least 0", buffer.dims)
            )
    return tuple(found)


def launches_of(variant: Variant, case: Case) -> tuple[Launch, ...]:
    """The launches of a variant in a case, in order."""
    return tuple(ask(case, f"launches of {variant.name}", variant.launches, case, returns=Sequence[Launch]))


def inputs_from(operator: Operator, case: Case, what: str, function: Callable[..., Inputs], *args: object) -> Inputs:
    """The inputs of a case: an array for `in` buffers, and scalars under names that are of no buffer."""
    given = ask(case, what, function, case, *args, returns=Mapping[str, Array | np.generic | int | float])
    roles = {buffer.name: buffer.role for buffer in buffers_of(operator, case)}
    filled = [name for name, role in roles.items() if role in ("in", "inout", "constant")]
    expected = f"arrays of {filled} and scalar arguments alone; give a buffer that has contents before role='inout'"
    for name, value in given.items():
        odd = name not in filled if name in roles else np.ndim(value) != 0 or not _is_plain(name)
        if odd:
            raise _refusal(case, what, function, Mismatch(f"[{came(name, bare=True)}]", expected, came(value)))
    return given


def as_stored(
    operator: Operator, case: Case, what: str, function: object, given: Inputs
) -> tuple[Inputs, Mapping[str, str]]:
    """Inputs that a hook returned as their buffers hold them, and for each that was converted a note."""
    try:
        return converted_inputs(buffers_of(operator, case), case, given)
    except ProjectError as error:
        raise ProjectError(
            f"{_line_of(function)}: operator {case.operator}, case {case.id}: {what} returned for {error}"
        ) from None


def steps_of(operator: Operator, case: Case, inputs: Inputs) -> Mapping[str, Inputs]:
    """What changes in each step of a case."""
    steps = ask(case, "steps", operator.steps, case, inputs, returns=Mapping[str, Mapping[str, Array | np.generic]])
    for name in steps:
        if not _is_plain(name):
            raise _refusal(case, "steps", operator.steps, Mismatch(" (key)", _NAME.expected, came(name)))
    if not steps:
        raise _refusal(case, "steps", operator.steps, Mismatch("", "at least one step", "none"))
    return steps


def arrays_of(operator: Operator, reference: Reference, case: Case, inputs: Inputs) -> Mapping[str, Array]:
    """The arrays of a reference; one that stands for an output has its very shape."""
    what = f"reference {reference.name}"
    found = ask(case, what, reference.compute, case, inputs, returns=Mapping[str, Array])
    shapes = {
        buffer.name: buffer.shape(case) for buffer in buffers_of(operator, case) if buffer.role in ("out", "inout")
    }
    for mine, theirs in (*((name, name) for name in shapes), *operator.measured.items()):
        if mine in shapes and theirs in found and np.shape(found[theirs]) != shapes[mine]:
            expected = f"the shape of {mine}, {shapes[mine]}"
            raise _refusal(case, what, reference.compute, Mismatch(f"[{theirs!r}]", expected, came(found[theirs])))
    return found


def masks_of(operator: Operator, case: Case, inputs: Inputs) -> Mapping[str, Array]:
    """For outputs and workspaces the mask of the elements that must be written, in the buffer's shape."""
    return _masks(operator, case, inputs, "written", operator.written, outside=True)


def nonfinite_of(operator: Operator, case: Case, inputs: Inputs) -> Mapping[str, Array]:
    """For outputs and workspaces the mask of the elements that may hold infinity or NaN, in the buffer's shape."""
    return _masks(operator, case, inputs, "nonfinite", operator.nonfinite, outside=False)


def _masks(
    operator: Operator,
    case: Case,
    inputs: Inputs,
    what: str,
    hook: Callable[[Case, Inputs], Mapping[str, Array]],
    outside: bool,
) -> Mapping[str, Array]:
    """The masks that a hook returns; `outside` is the mask of a buffer that it leaves out."""
    found = ask(case, what, hook, case, inputs, returns=Mapping[str, Array | bool])
    listed = buffers_of(operator, case)
    results = {buffer.name: buffer.shape(case) for buffer in listed if buffer.role not in ("in", "constant", "scratch")}
    masks = {}
    for name, mask in found.items():
        expected = f"bool masks that broadcast to the shapes of {results}"
        if name not in results or np.asarray(mask).dtype != np.bool_ or not _broadcasts(mask, results[name]):
            raise _refusal(case, what, hook, Mismatch(f"[{came(name, bare=True)}]", expected, came(mask)))
        masks[name] = np.broadcast_to(np.asarray(mask), results[name])
    return {name: masks.get(name, np.broadcast_to(np.bool_(outside), shape)) for name, shape in results.items()}


def _broadcasts(mask: Array | bool, shape: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(np.shape(mask), shape) == shape
    except ValueError:
        return False


def measured_by(case: Case, what: str, function: Callable[..., T], *args: object, returns: Any = Measured) -> T:
    """Errors beside their limits, element for element; None where `returns` permits it."""
    found = ask(case, what, function, *args, returns=returns)
    if isinstance(found, Measured):
        odd = None
        if np.shape(found.value) != np.shape(found.limit):
            odd = Mismatch("limit", f"the shape of the errors, {np.shape(found.value)}", came(found.limit))
        elif found.dims and len(found.dims) != np.ndim(found.value):
            odd = Mismatch("dims", f"{np.ndim(found.value)} names, one a dimension", came(found.dims))
        if odd:
            raise _refusal(case, what, function, odd)
    return found


def mutated_by(
    mutation: Mutation, case: Case, inputs: Inputs, right: Mapping[str, Array], references: Mapping[str, Any]
) -> Mapping[str, Array] | None:
    """What a mutation changes: results in their own shape and dtype, or the codes of one that numpy does not have."""
    what = f"mutation {mutation.name}"
    wrong = ask(case, what, mutation.apply, case, inputs, right, references, returns=Mapping[str, Array] | None)
    for name, array in (wrong or {}).items():
        kept = right.get(name)
        if kept is None or array.shape != kept.shape or array.dtype not in (kept.dtype, _codes_of(kept.dtype)):
            expected = f"results of {list(right)}" if kept is None else came(kept)
            raise _refusal(case, what, mutation.apply, Mismatch(f"[{came(name, bare=True)}]", expected, came(array)))
    return wrong


def _codes_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the codes of a dtype that numpy does not have; of any other, itself."""
    return dtype if dtype.isbuiltin == 1 else np.dtype(f"u{dtype.itemsize}")
