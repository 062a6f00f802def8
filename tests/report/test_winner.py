"""The winner of a bench: the fastest variant with the right bytes, at each context."""

from __future__ import annotations

import re

import msgspec

from audit.bench.pairs import arms, figures
from audit.records.bench import BenchRecord, ComparedBytes
from audit.report.bench_page import render_bench
from audit.report.winner import Winner, winners

from ..bench.records import bench, pair, point


def record() -> BenchRecord:
    """`fast` wins at 1,024 tokens and `faster` at 2,048; a peer is faster than both."""
    return bench(
        point(
            1024, pair("fast", b_ms=(0.5,) * 5), pair("faster", a="fast", a_ms=(0.5,) * 5, b_ms=(0.6,) * 5), moved=10**9
        ),
        point(
            2048,
            pair("fast", b_ms=(0.9,) * 5),
            pair("faster", a="fast", a_ms=(0.9,) * 5, b_ms=(0.7,) * 5),
            pair("library", b_ms=(0.1,) * 5, peer=True),
            moved=2 * 10**9,
        ),
    )


def found(*wrong: str) -> list[Winner]:
    return winners(arms(record()), figures(record()), wrong)


def test_the_fastest_variant_of_each_context_wins() -> None:
    second, first = found()
    assert (second.value, second.name, second.ms, second.floor_ms, second.multiple) == (2048, "faster", 0.7, 0.5, 1.4)
    assert (first.value, first.name, first.ms) == (1024, "fast", 0.5)
    assert (second.first.name, second.peer and second.peer.name, first.peer) == ("control", "library", None)
    assert second.pair
    assert (second.pair.a, second.pair.word) == ("fast", "faster")


def test_wrong_bytes_do_not_win() -> None:
    assert [one.name for one in found("faster")] == ["fast", "fast"]
    assert found("control", "fast", "faster") == []


def test_the_page_names_winner_floor_and_peer() -> None:
    page = render_bench(record())
    (panel,) = re.findall(r'<section aria-label="Fastest variant">(.*?)</section>', page, re.DOTALL)
    text = " ".join(re.sub(r"<[^>]+>", " ", panel).split())
    assert text == (
        "Fastest variant at context=2,048 faster 0.7000 ms one replay of all 16 layers "
        "Floor 0.5000 ms; this is 1.40 × it control 1.000 ms Beside fast faster , 0.7778 of its time "
        "Fastest peer library, 0.1000 ms"
    )


def test_a_bench_whose_bytes_all_differ_has_no_winner() -> None:
    names = ("control", "fast", "faster")
    wrong = tuple(ComparedBytes(name, "control", 1024, 10, 1) for name in names)
    page = render_bench(msgspec.structs.replace(record(), checked=wrong))
    assert "No winner" in page
    assert "Fastest variant at" not in page
