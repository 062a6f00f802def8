"""A cubin with the names of its kernels and the record of its build."""

from __future__ import annotations

import msgspec

from audit.compile.identity import BuildIdentity


class CubinBuild(msgspec.Struct, frozen=True):
    """A cubin; `symbols` maps each entry to its name inside the cubin."""

    cubin: bytes
    symbols: dict[str, str]
    identity: BuildIdentity
