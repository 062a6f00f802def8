"""The text of a bench: aligned columns, verdicts last, nothing that steers a terminal."""

from __future__ import annotations

import msgspec
import pytest

from audit.bench import curve, text
from audit.records.bench import ComparedBytes

from .records import bench, pair, point

SLOW = (1.5,) * 5


def test_columns_are_aligned_and_verdicts_follow() -> None:
    record = bench(point(1024, pair(), pair("a_much_longer_name", b_ms=SLOW)), point(65536, pair(b_ms=(1.0,) * 5)))
    lines = text.bench_table(record, curve.compare_with_curve(curve.curve_of(record), record)).splitlines()
    assert lines[0] == (
        "q6 (grouped) at context=1,024 and 65,536 on NVIDIA H200, sm_90, driver 580.159.04, CUDA 13.0: one replay is "
        "all 16 layers once; 5 warm-ups, then 5 trials of 8 replays, the arms A, B and A again alternating, their "
        "order reversed in every other trial"
    )
    head, *rows = lines[2:6]
    for column in ("context", "A ms", "B ms", "A/A range", "floor ms", "B x floor"):
        end = head.index(column) + len(column)
        assert all(len(row) == end or row[end] == " " for row in rows)
        assert all(row[end - 1] != " " for row in rows)
    assert " ".join(rows[0].split()) == (
        "1,024 fast beside control 1.000 0.5000 0.5000 0.5000–0.5000 1.0000–1.0000 faster 0.1000 5.00"
    )
    assert lines[7:] == [
        "fast beside control: faster at 1,024 (0.5000 of its time); no difference at 65,536 (1.0000 of its time)",
        "a_much_longer_name beside control: slower at 1,024 (1.5000 of its time)",
        "bytes: 123,456 compared with parents on the device, 0 differ",
        f"curve: {curve.compare_with_curve(curve.curve_of(record), record).sentence}",
        "skipped: other_peer: it is not installed: pip install other_peer",
    ]


def test_bytes_that_differ_are_named() -> None:
    record = msgspec.structs.replace(bench(), checked=(ComparedBytes("fast", "control", 1024, 1000, 7),))
    assert text.bytes_lines(record) == [
        "bytes: 1,000 compared with parents on the device, 7 differ",
        "bytes: fast differs from control at context=1,024 in 7 of 1,000 bytes",
    ]
    assert text.bytes_lines(msgspec.structs.replace(record, checked=())) == ["bytes: none compared with a parent's"]


def test_a_name_cannot_steer_the_terminal() -> None:
    record = bench(point(1024, pair("\x1b[31mred\nline\u202e")))
    shown = text.bench_table(record)
    assert "\\x1b[31mred line\\u202e" in shown
    assert not {"\x1b", "\u202e"} & set(shown)


@pytest.mark.parametrize(
    ("value", "shown"), [(0.012345, "0.01235"), (1.0, "1.000"), (12.3456, "12.35"), (1234.5, "1234"), (1e-5, "1e-05")]
)
def test_four_digits(value: float, shown: str) -> None:
    assert text.ms(value) == shown
