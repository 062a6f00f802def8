"""A bench as text: a description, the table of pairs, and the verdicts."""

from __future__ import annotations

from collections.abc import Sequence

from audit.bench.curve import CurveComparison
from audit.bench.pairs import Figures, Spread, figures
from audit.printable import printable
from audit.records.bench import BenchRecord

_HEAD = ("pair", "A ms", "B ms", "B/A", "range", "A/A range", "verdict", "floor ms", "B x floor")
_LEFT = {1, 7}  # columns of words
_WIDEST = 48


def bench_table(record: BenchRecord, comparison: CurveComparison | None = None) -> str:
    """The text for a terminal: description, table, a verdict for each pair, then bytes, curve and skipped arms."""
    rows = figures(record)
    lines = [described(record), "", *_aligned([(record.axis, *_HEAD), *map(_cells, rows)]), "", *verdicts(rows)]
    lines += bytes_lines(record)
    if comparison is not None:
        lines.append(f"curve: {comparison.sentence}")
    lines += [f"skipped: {_plain(skipped.name)}: {_plain(skipped.why)}" for skipped in record.skipped]
    return "\n".join(lines)


def described(record: BenchRecord) -> str:
    """One sentence: what was timed, on which device, and how."""
    method = record.method
    values = [point.value for point in record.points]
    span = f"at {record.axis}={enumerated(values)}" if values else f"at no {record.axis}"
    return (
        f"{_plain(record.shape)} ({_plain(record.operator)}) {span} on {record.machine.device or 'no device'}: "
        f"one replay is all {method.layers} layers once; {method.warm_ups} warm-ups, then {method.trials} trials of "
        f"{method.replays} replays, the arms A, B and A again alternating, their order reversed in every other trial"
    )


def verdicts(pairs: Sequence[Figures]) -> list[str]:
    """One line for each pair: `fast beside control: faster at 1,024 and 8,192 (0.9 to 0.95 of its time)`."""
    lines = []
    for a, b in dict.fromkeys((row.a, row.b) for row in pairs):
        of_pair = [row for row in pairs if (row.a, row.b) == (a, b)]
        parts = []
        for word in ("faster", "slower", "no difference"):
            rows = [row for row in of_pair if row.word == word]
            if rows:
                medians = sorted(row.ratio.median for row in rows)
                span = f"{medians[0]:.4f}" + (f" to {medians[-1]:.4f}" if len(rows) > 1 else "")
                parts.append(f"{word} at {enumerated([row.value for row in rows])} ({span} of its time)")
        lines.append(f"{_plain(b)} beside {_plain(a)}: {'; '.join(parts)}")
    return lines


def bytes_lines(record: BenchRecord) -> list[str]:
    """The result of the byte comparison: a total, and a line for each variant that differs."""
    checked = record.checked
    total = sum(entry.nbytes for entry in checked)
    differing = sum(entry.differing for entry in checked)
    lines = [f"bytes: {total:,} compared with parents on the device, {differing:,} differ"]
    if not checked:
        lines = ["bytes: none compared with a parent's"]
    return lines + [
        f"bytes: {_plain(entry.variant)} differs from {_plain(entry.parent)} at {record.at(entry.value)} in "
        f"{entry.differing:,} of {entry.nbytes:,} bytes{'' if entry.refused else f', which {entry.relation} permits'}"
        for entry in checked
        if entry.differing
    ]


def enumerated(numbers: Sequence[int]) -> str:
    """Numbers in words: `1,024, 8,192 and 32,768`."""
    words = [f"{number:,}" for number in numbers]
    return " and ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else "".join(words)


def ms(value: float) -> str:
    """Milliseconds to four significant digits, without an exponent."""
    return f"{value:#.4g}".rstrip(".") if 1e-4 <= value < 1e4 else f"{value:.4g}"


def spread(value: Spread) -> str:
    """The range of ratios: `0.9012–0.9120`."""
    return f"{value.low:.4f}–{value.high:.4f}"


def _cells(row: Figures) -> tuple[str, ...]:
    return (
        f"{row.value:,}",
        _cut(f"{_plain(row.b)} beside {_plain(row.a)}"),
        ms(row.a_ms),
        ms(row.b_ms),
        f"{row.ratio.median:.4f}",
        spread(row.ratio),
        spread(row.same),
        row.word,
        ms(row.b_floor_ms),
        f"{row.b_multiple:.2f}",
    )


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if at in _LEFT else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _plain(text: str) -> str:
    """The text in one line without control characters, so that a name cannot control a terminal."""
    return " ".join(printable(text).split())


def _cut(text: str) -> str:
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."
