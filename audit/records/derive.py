"""What every kind derives again to see whether a record agrees with itself."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from audit import foreign
from audit.foreign import ForeignError
from audit.records.folder import RULES


def differs(raw: bytes, plan: msgspec.Struct, kind: type[msgspec.Struct]) -> bool:
    """Whether JSON is anything but the plan that a record holds."""
    try:
        return foreign.decode(raw, kind, rules=RULES) != plan
    except ForeignError:
        return True


def fields(what: str, written: msgspec.Struct, derived: msgspec.Struct) -> Iterator[str]:
    """Each field in which two records of one kind differ."""
    for name in written.__struct_fields__:
        if (says := getattr(written, name)) != (makes := getattr(derived, name)):
            yield f"{what}: {name} is written as {says!r}, but the results make {makes!r}"
