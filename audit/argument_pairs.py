"""Could a launch with two arguments exchanged go unnoticed? Where both have one value in every case, it could.

A plan in which K and V always have equal strides cannot tell a kernel that takes them in the wrong order. The launches
of every case are looked at as they were resolved: two arguments of one kernel and one type must differ in at least one
case. Two buffers always differ. So does nothing that a declaration names twice: an argument that is the name of the
same buffer or scalar input in both positions is one argument, not a pair.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations

import msgspec

from audit.arguments import Argument
from audit.launch_record import LaunchRecord


class LaunchArguments(msgspec.Struct, frozen=True):
    """The arguments of one launch in one case."""

    variant: str
    kernel: str  # the entry without its template arguments
    names: tuple[str, ...]  # of a buffer or scalar input, where the declaration gives a name; else empty
    values: tuple[Argument, ...]


def launch_arguments(variant: str, launches: Sequence[LaunchRecord]) -> tuple[LaunchArguments, ...]:
    """The arguments of a variant's launches in one case; equal ones once."""
    found = []
    for launch in launches:
        named = launch.arguments()
        found.append(
            LaunchArguments(
                variant,
                launch.entry.partition("<")[0].strip(),
                tuple(name for name, _ in named),
                tuple(argument for _, argument in named),
            )
        )
    return tuple(dict.fromkeys(found))


def indistinguishable(launches: Iterable[LaunchArguments]) -> tuple[str, ...]:
    """Each pair of arguments that no launch of the plan tells apart, in words; those of one kernel together."""
    by_kernel: dict[tuple[str, str, tuple[str, ...]], list[LaunchArguments]] = defaultdict(list)
    for launch in launches:
        kinds = tuple(argument.kind for argument in launch.values)
        by_kernel[launch.variant, launch.kernel, kinds].append(launch)
    return tuple(
        f"{variant}: {kernel}: arguments {first + 1} and {second + 1} ({_kind(kinds[first])})"
        for (variant, kernel, kinds), seen in by_kernel.items()
        for first, second in combinations(range(len(kinds)), 2)
        if kinds[first] == kinds[second] and not any(_apart(launch, first, second) for launch in seen)
    )


def _apart(launch: LaunchArguments, first: int, second: int) -> bool:
    name = launch.names[first]
    return launch.values[first] != launch.values[second] or (name != "" and name == launch.names[second])


def _kind(kind: str) -> str:
    return "pointers" if kind == "pointer" else kind
