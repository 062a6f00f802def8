"""Comparisons of a record's parts with the ones derived from its results, for every kind."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from audit import foreign
from audit.foreign import ForeignError
from audit.records.folder import RULES


def differs(raw: bytes, plan: msgspec.Struct, kind: type[msgspec.Struct]) -> bool:
    """Whether the JSON differs from a record's plan."""
    try:
        return foreign.decode(raw, kind, rules=RULES) != plan
    except ForeignError:
        return True


def fields(what: str, written: msgspec.Struct, derived: msgspec.Struct) -> Iterator[str]:
    """A sentence for each field in which a record differs from the derived one."""
    for name in written.__struct_fields__:
        if (recorded := getattr(written, name)) != (expected := getattr(derived, name)):
            yield f"{what}: {name} is recorded as {recorded!r}, but the results give {expected!r}"
