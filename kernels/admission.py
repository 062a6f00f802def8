"""Which variants are admitted, and by what records. Closed variants state their own admission in `closed/`.

Figures come from the named records: an NVIDIA H200, 16 layers, G=6, D=256, pages of 1,648 tokens, at 32,768 and
261,888 tokens.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

from audit import Status, Variant

SCALAR_TIMES = "reports/h200/20261130T020917Z-bench-q1-fe59b7"
_SCALAR = ("reports/h200/20261130T020016Z-q1-07e4ab", SCALAR_TIMES, "reports/h200/20261130T021253Z-sanitize-q1-6a1ab3")
_SCALAR_LONG = "reports/h200/20261130T020228Z-q1-202e68"
GROUPED_TIMES = "reports/h200/20261130T020746Z-bench-q6-6140b2"
_GROUPED_SANITIZED = "reports/h200/20261130T021053Z-sanitize-q6-919852"
_GROUPED = ("reports/h200/20261130T020016Z-q6-938901", GROUPED_TIMES, _GROUPED_SANITIZED)
_GROUPED_LONG = "reports/h200/20261130T020228Z-q6-724d96"
GROUPED_UNADMITTED = "reports/h200/20261130T020326Z-q6-655c55"
"""A run of the experimental and the closed variants of grouped."""


class Admission(NamedTuple):
    """A status, why the variant is closed, and the records that show it, as paths of this repository."""

    status: Status
    why: str = ""
    evidence: tuple[str, ...] = ()


_ADMITTED_SCALAR = Admission("admitted", evidence=_SCALAR)
_ADMITTED_GROUPED = Admission("admitted", evidence=_GROUPED)
# Steps on the way to piped_roles: the same bytes, sanitized as well. A default plan would gain nothing from them.
_STEP = Admission("experimental", evidence=(GROUPED_UNADMITTED, GROUPED_TIMES, _GROUPED_SANITIZED))

ADMISSIONS = {
    "scalar": {
        "control": Admission("control", evidence=(*_SCALAR, _SCALAR_LONG)),
        "shared_kv": _ADMITTED_SCALAR,
        "lookup": _ADMITTED_SCALAR,
        "compact_page_map": _ADMITTED_SCALAR,
        "token_groups": _ADMITTED_SCALAR,
        "token_ahead": Admission("admitted", evidence=(*_SCALAR, _SCALAR_LONG)),
    },
    "grouped": {
        "control": Admission("control", evidence=(*_GROUPED, _GROUPED_LONG)),
        "vector_loads": _ADMITTED_GROUPED,
        "shared_kv": _ADMITTED_GROUPED,
        "page_specialized": _ADMITTED_GROUPED,
        "ordered_qk_pv": _ADMITTED_GROUPED,
        "visible_tile": _ADMITTED_GROUPED,
        "direct_fragments": _STEP,
        "warp_roles": _STEP,
        "rolled_steps": _STEP,
        "piped_roles": Admission("admitted", evidence=(*_GROUPED, _GROUPED_LONG)),
    },
}


def with_admissions(variants: Sequence[Variant], admissions: Mapping[str, Admission]) -> tuple[Variant, ...]:
    """The variants with their admissions. A variant without one is a KeyError."""
    return tuple(replace(variant, **admissions[variant.name]._asdict()) for variant in variants)


def closed_variants(package: str) -> tuple[Variant, ...]:
    """The variants that `closed/` of an operator's package declares; none where that folder was deleted."""
    name = f"{package}.closed"
    return tuple(import_module(name).VARIANTS) if find_spec(name) else ()
