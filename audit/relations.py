"""How the results of a variant relate to those of its parent: `Variant.relation`.

`Bitwise` is the default. The others judge the outputs, over the elements that must be written, and leave workspaces
alone. Whatever the relation, the record keeps how many elements differ, by how much and where, and both errors against
the FP64 reference where there is one. A pass with other bytes never reads as equality. `docs/relations.md` has
examples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from audit.errors import PlanError


class Bitwise(msgspec.Struct, frozen=True):
    """Every bit that the parent writes is the same, in outputs and in workspaces. The check is `bytes`."""


class Ulps(msgspec.Struct, frozen=True):
    """Each element lies at most `n` representable numbers from the parent's. Integers must be equal.

    Infinity agrees with infinity of the same sign, and NaN with NaN. Any other pair with a NaN or an infinity fails.

    n  the greatest permitted distance, in units in the last place of the buffer's dtype; at least 0
    """

    n: int


class Within(msgspec.Struct, frozen=True):
    """Each element satisfies |mine - parent's| <= atol + rtol * |parent's|, computed in f64.

    Infinity agrees with infinity of the same sign, and NaN with NaN. Any other pair with a NaN or an infinity fails.

    atol  the absolute tolerance, in the unit of the buffer; at least 0
    rtol  the relative tolerance, without a unit; at least 0
    """

    atol: float
    rtol: float


class NoWorse(msgspec.Struct, frozen=True):
    """The error against a reference is at most `factor` times the parent's, in each row and over the whole buffer.

    The error is the relative L2 error ||got - reference||_2 / ||reference||_2. A row is the trailing dimensions that
    together hold at least 32 elements, or the whole buffer where it is smaller: shorter rows have errors of chance.
    The limit is factor * max(parent's error, u, r). u is the unit roundoff of the buffer's dtype: nobody can hold an
    error below the rounding of the result itself against a kernel. r is the error that the reference makes where each
    input is off by one rounding to f32: a parent whose error is smaller was lucky in that row. Nor is the limit of a
    row below factor * (m + 6 d) * max(u, r), where m is the median of the parent's errors over the rows, each divided
    by its max(u, r), and d their median deviation from m: the error of one row among many is a draw.

    factor     how many times the parent's error is permitted; at least 1
    reference  name of the reference; its array is in f64
    """

    factor: float
    reference: str = "fp64"


class Unrelated(msgspec.Struct, frozen=True):
    """Nothing is promised with regard to the parent. The difference is shown and not judged: bounds must judge."""


Relation: TypeAlias = Bitwise | Ulps | Within | NoWorse | Unrelated
"""A relation between the results of a variant and those of its parent."""

_FORMS = "bitwise, ulps=N, within=ATOL,RTOL, no-worse=FACTOR or unrelated"


def relation_text(relation: Relation | Mapping[str, Relation]) -> str:
    """A relation in words, as plans and `--relation` have it: `ulps=2`, or `y: ulps=2, others: bitwise`."""
    if isinstance(relation, Mapping):
        named = [f"{name}: {relation_text(relation[name])}" for name in sorted(relation)]
        return ", ".join([*named, f"others: {relation_text(Bitwise())}"])
    match relation:
        case Ulps(n=n):
            return f"ulps={n}"
        case Within(atol=atol, rtol=rtol):
            return f"within={float(atol)!r},{float(rtol)!r}"
        case NoWorse(factor=factor, reference=reference):
            return f"no-worse={float(factor)!r}{'' if reference == 'fp64' else f',{reference}'}"
        case Unrelated():
            return "unrelated"
    return "bitwise"


def relation_from(text: str) -> Relation:
    """The relation that `--relation` names. Raises PlanError for any other text."""
    kind, _, numbers = text.partition("=")
    words = numbers.split(",") if numbers else []
    kinds: Mapping[str, tuple[int, Callable[..., Relation]]] = {
        "bitwise": (0, Bitwise),
        "ulps": (1, lambda n: Ulps(int(_at_least(0, int(n))))),
        "within": (2, lambda atol, rtol: Within(_at_least(0.0, float(atol)), _at_least(0.0, float(rtol)))),
        "no-worse": (1, lambda factor: NoWorse(_at_least(1.0, float(factor)))),
        "unrelated": (0, Unrelated),
    }
    count, make = kinds.get(kind, (-1, Bitwise))
    try:
        if len(words) == count and ("=" in text) == bool(count):
            return make(*words)
    except ValueError:
        pass
    raise PlanError(
        f"--relation: expected {_FORMS}, with N, ATOL and RTOL of at least 0 and FACTOR of at least 1, but got {text!r}"
    )


def _at_least(least: float, value: float) -> float:
    if not least <= value < math.inf:
        raise ValueError(value)
    return value
