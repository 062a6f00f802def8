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

_SCALAR = tuple(f"reports/h200/scalar/{topic}" for topic in ("default", "benches", "sanitizers"))
_GROUPED = tuple(f"reports/h200/grouped/{topic}" for topic in ("default", "benches", "sanitizers"))
SCALAR_UNADMITTED = ("reports/h200/scalar/unadmitted", "reports/h200/scalar/benches")
GROUPED_UNADMITTED = ("reports/h200/grouped/unadmitted", "reports/h200/grouped/benches")
"""Runs and times of the experimental and the closed variants. Folders, not single records: a new record must not change
the declaration that it is about."""


class Admission(NamedTuple):
    """A status, why the variant is closed, and the records that show it, as paths of this repository."""

    status: Status
    why: str = ""
    evidence: tuple[str, ...] = ()


_ADMITTED_SCALAR = Admission("admitted", evidence=_SCALAR)
_ADMITTED_GROUPED = Admission("admitted", evidence=_GROUPED)
# Steps on the way to piped_roles: the same bytes, sanitized as well. A default plan would gain nothing from them.
_STEP = Admission("experimental", evidence=(*GROUPED_UNADMITTED, "reports/h200/grouped/sanitizers"))

ADMISSIONS = {
    "scalar": {
        "control": Admission("control", evidence=(*_SCALAR, "reports/h200/scalar/long")),
        "shared_kv": _ADMITTED_SCALAR,
        "lookup": _ADMITTED_SCALAR,
        "compact_page_map": _ADMITTED_SCALAR,
        "token_groups": _ADMITTED_SCALAR,
        "token_ahead": Admission("admitted", evidence=(*_SCALAR, "reports/h200/scalar/long")),
    },
    "grouped": {
        "control": Admission("control", evidence=(*_GROUPED, "reports/h200/grouped/long")),
        "vector_loads": _ADMITTED_GROUPED,
        "shared_kv": _ADMITTED_GROUPED,
        "page_specialized": _ADMITTED_GROUPED,
        "ordered_qk_pv": _ADMITTED_GROUPED,
        "visible_tile": _ADMITTED_GROUPED,
        "direct_fragments": _STEP,
        "warp_roles": _STEP,
        "rolled_steps": _STEP,
        "piped_roles": Admission("admitted", evidence=(*_GROUPED, "reports/h200/grouped/long")),
    },
}


def with_admissions(variants: Sequence[Variant], admissions: Mapping[str, Admission]) -> tuple[Variant, ...]:
    """The variants with their admissions. A variant without one is a KeyError."""
    return tuple(replace(variant, **admissions[variant.name]._asdict()) for variant in variants)


def closed_variants(package: str) -> tuple[Variant, ...]:
    """The variants that `closed/` of an operator's package declares; none where that folder was deleted."""
    name = f"{package}.closed"
    return tuple(import_module(name).VARIANTS) if find_spec(name) else ()
