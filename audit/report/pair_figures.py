"""Two kernels in figures: how far the new one is from the old one, and how far each is from FP64."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from audit.checks.result import Figure, LargestDifference
from audit.metrics import Metric
from audit.records.run import RunRecord

OLD, NEW = "old", "new"
"""The variants of a comparison."""
_COMMAND = "audit compare "


class BufferDifference(msgspec.Struct, frozen=True):
    """The difference of one buffer, over all cases and steps; `case` has the largest absolute one."""

    buffer: str
    differing: int  # elements, in the step in which most of them differ
    absolute: Figure | None
    absolute_at: str
    ulp: int | None
    ulp_at: str
    nan_on_one_side: int
    case: str


class KernelError(msgspec.Struct, frozen=True):
    """The largest error of one buffer of one kernel against FP64, over all cases and steps."""

    buffer: str
    kernel: str
    absolute: Figure
    relative_l2: Figure
    ulp: int | None  # of the buffer's type, from FP64 rounded to it
    median_ulp: int | None


class PairFigures(msgspec.Struct, frozen=True):
    """Both tables of a comparison."""

    differences: list[BufferDifference]
    errors: list[KernelError]


def pair_figures(record: RunRecord) -> PairFigures | None:
    """The figures of a comparison; None for a record of any other command, or without figures."""
    if not record.command.startswith(_COMMAND):
        return None
    found = PairFigures(differences(record), kernel_errors(record))
    return found if found.differences or found.errors else None


def differences(record: RunRecord) -> list[BufferDifference]:
    """Of each buffer that differs from the old kernel's."""
    found: dict[str, list[tuple[str, LargestDifference]]] = {}
    for audit in record.audits:
        for result in audit.results:
            if audit.variant == NEW and result.check in ("bytes", "relation"):
                for one in result.largest:
                    found.setdefault(one.buffer, []).append((audit.case, one))
        for note in audit.notes:
            if audit.variant == NEW and note.check == "relation":
                for one in note.largest:
                    found.setdefault(one.buffer, []).append((audit.case, one))
    return [_largest(name, each) for name, each in found.items()]


def _largest(name: str, each: Sequence[tuple[str, LargestDifference]]) -> BufferDifference:
    case, furthest = max(each, key=lambda pair: -1.0 if pair[1].absolute is None else pair[1].absolute.value)
    in_ulp = max((one for _, one in each), key=lambda one: -1 if one.ulp is None else one.ulp)
    return BufferDifference(
        name,
        max(one.differing for _, one in each),
        furthest.absolute,
        furthest.absolute_at,
        in_ulp.ulp,
        in_ulp.ulp_at,
        max(one.nan_on_one_side for _, one in each),
        case,
    )


def kernel_errors(record: RunRecord) -> list[KernelError]:
    """The errors against FP64, the old kernel's before the new one's for each buffer; none without a reference."""
    found: dict[tuple[str, str], list[Metric]] = {}
    for audit in record.audits:
        for metric in audit.metrics:
            found.setdefault((metric.name, audit.variant), []).append(metric)
    buffers = dict.fromkeys(name for name, _ in found)
    return [
        _error(name, kernel, found[name, kernel])
        for name in buffers
        for kernel in (OLD, NEW)
        if (name, kernel) in found
    ]


def _error(name: str, kernel: str, metrics: Sequence[Metric]) -> KernelError:
    quantiles = [metric.ulp for metric in metrics if metric.ulp]
    whole = len(quantiles) == len(metrics)  # a NaN or infinity has no distance
    return KernelError(
        name,
        kernel,
        _worst([metric.max_abs for metric in metrics]),
        _worst([metric.relative_l2 for metric in metrics]),
        max(one[-1] for one in quantiles) if whole else None,
        max(one[0] for one in quantiles) if whole else None,
    )


def _worst(figures: Sequence[Figure]) -> Figure:
    """The largest; a NaN counts as larger than any number."""
    return max(figures, key=lambda one: (one.value != one.value, one.value))
