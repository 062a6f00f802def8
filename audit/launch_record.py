"""A launch as a record keeps it: its configuration, and each argument in one line.

buffer x                    the address of a buffer that the declaration names
at 256 x                    an address so many bytes inside a buffer
i32 06000000                a number, as the bytes that the kernel gets
input i32 06000000 rows     a scalar input that the declaration names, with its value in this case
struct 07000000 8=x+16      the bytes of a struct by value, and the pointers in it by their place
pointers 0=x+0 8=null       an array of pointers
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from audit.arguments import Argument
from audit.bundle import BundledLaunch
from audit.spec import At, Launch


class LaunchRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One launch of a variant in a case; grid and block have three extents, shared memory is in bytes."""

    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    args: tuple[str, ...]

    def as_declared(self) -> LaunchRecord:
        """The launch without the values of scalar inputs, which only the inputs of a case give."""
        return msgspec.structs.replace(self, args=tuple(map(_without_value, self.args)))

    def arguments(self) -> tuple[tuple[str, Argument], ...]:
        """The arguments, each with the name by which the declaration refers to it; empty where it gives none.

        Raises ValueError for a text that no argument is written as.
        """
        return tuple(map(_argument, self.args))


def launch_records(declared: Sequence[Launch], resolved: Sequence[BundledLaunch]) -> tuple[LaunchRecord, ...]:
    """The launches of a variant in a case."""
    return tuple(
        LaunchRecord(
            one.entry,
            one.grid,
            one.block,
            one.shared_bytes,
            tuple(_line(arg, argument) for arg, argument in zip(launch.args, one.args, strict=True)),
        )
        for launch, one in zip(declared, resolved, strict=True)
    )


def _line(declared: object, argument: Argument) -> str:
    if isinstance(declared, At):
        return f"at {argument.offset} {argument.buffer}"
    if argument.pointers:
        held = " ".join(f"{at}={pointer.target}" for at, pointer in argument.pointers)
        return " ".join(filter(None, (argument.kind, argument.bits, held)))
    if argument.kind == "pointer":
        return f"buffer {argument.buffer}"
    number = f"{argument.kind} {argument.bits}"
    return f"input {number} {declared}" if isinstance(declared, str) else number


def _without_value(line: str) -> str:
    return f"input {line.split(' ', 3)[-1]}" if line.startswith("input ") else line


def _argument(line: str) -> tuple[str, Argument]:
    kind, _, rest = line.partition(" ")
    if kind == "buffer":
        return rest, Argument("pointer", rest)
    if kind == "at":
        offset, _, name = rest.partition(" ")
        return "", Argument("pointer", name, int(offset))
    if kind == "input":
        kind, bits, name = rest.split(" ", 2)
        return name, Argument(kind, bits=bits)
    return "", Argument(kind, bits=rest)
