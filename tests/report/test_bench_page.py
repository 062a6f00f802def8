"""The page of a bench says what its record says, offline, and hostile records do no harm."""

from __future__ import annotations

import html
import re
from itertools import pairwise
from xml.etree import ElementTree

import msgspec
import pytest

from audit.bench import curve, text
from audit.bench.pairs import arms
from audit.records.bench import BenchRecord, ComparedBytes, Error, SkippedArm
from audit.report.bench_page import render_bench
from audit.report.chart import Series, chart
from audit.report.template import visible_value

from ..bench.records import bench, pair, point

CONTEXTS = (1024, 4096, 16384, 65536, 131072)
NAMES = ("ordered_qk_pv", "page_specialized", "row_tiles", "shared_kv", "vector_loads", "visible_tile")
PEERS = ("flash_attn_with_kvcache", "scaled_dot_product_attention")


def large() -> BenchRecord:
    """5 contexts x 8 pairs, six variants and two peers, times that grow with the context."""
    points = []
    for context in CONTEXTS:
        base = 0.06 + context * 3.1e-5
        a = [base * (1 + 0.002 * trial) for trial in range(5)]
        pairs = [
            pair(
                name, a_ms=a, b_ms=[ms * (1.06 - 0.05 * at) for ms in a], again_ms=[1.004 * ms for ms in a],
                peer=name in PEERS,
            )
            for at, name in enumerate((*NAMES, *PEERS))
        ]  # fmt: skip
        moved = 16 * 2 * 8 * 128 * context
        points.append(point(context, *pairs, moved=moved, flash_attn_with_kvcache=2 * moved))
    record = bench(*points)
    return msgspec.structs.replace(
        record,
        checked=tuple(
            ComparedBytes(name, "control", context, 10**7 + context, 0) for name in NAMES for context in CONTEXTS
        ),
        errors=tuple(Error(name, context, "fp64", 3e-4, 2e-4) for name in (*NAMES, *PEERS) for context in CONTEXTS),
        peers={name: f"{name} 2.8" for name in PEERS},
    )


def drawings(picture: str) -> list[str]:
    """The SVG elements of a picture."""
    return re.findall(r"<svg.*?</svg>", picture, re.DOTALL)


def words(page: str) -> str:
    """The text of a page, its tags left out and its spaces single."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page[page.index("<main>") :])).split())


def test_the_winner_comes_first_and_prose_after_the_chart() -> None:
    page = render_bench(large())
    assert words(page).startswith(
        "Bench — q6 (grouped, NVIDIA H200, sm_90, driver 580.159.04, CUDA 13.0) ✓ Same bytes as the parents' : all "
        "301,308,672 compared before anything was timed. Fastest variant at context=131,072 visible_tile 3.353 ms one "
        "replay of all 16 layers Floor 1.074 ms; this is 3.12 × it control 4.148 ms"
    )
    assert (
        page.index('<p class="winner">') < page.index("<svg") < page.index('id="verdicts"') < page.index('id="setup"')
    )
    assert (
        "q6 (grouped) at context=1,024, 4,096, 16,384, 65,536 and 131,072 on NVIDIA H200, sm_90, driver 580.159.04, "
        "CUDA 13.0: one replay is all 16 layers once; 5 warm-ups, then 5 trials of 8 replays"
    ) in words(page)


def test_every_pair_at_every_context_has_a_row() -> None:
    page = render_bench(large())
    pairs = page[page.index('id="pairs"') : page.index('id="curve"')]
    assert re.findall(r'<h3 id="value=(\d+)"', pairs) == [str(context) for context in CONTEXTS]
    assert pairs.count("<td>control</td>") == 40
    assert pairs.count('<td class="pass">faster</td>') == 30
    assert pairs.count('<td class="fail">slower</td>') == 10


def test_figures_of_a_row_by_hand() -> None:
    page = words(render_bench(bench(point(1024, pair(), moved=400_000_000))))
    assert "fast control 1.000 1.000 0.5000 0.5000 0.5000–0.5000 1.0000–1.0000 faster 0.1000 10.00 5.00" in page


def test_every_point_of_the_chart_is_in_a_table() -> None:
    record = large()
    page = render_bench(record)
    both = drawings(page)
    assert len(both) == 2  # a large one and one for a phone
    for drawing in both:
        groups = ElementTree.fromstring(drawing).findall("g")
        assert [group.findtext("title") for group in groups][:2] == ["control", "ordered_qk_pv"]
        assert len(groups) == 1 + 8 + 1
        assert all(len(group.findall("circle")) == len(CONTEXTS) for group in groups)
        assert all(group.findtext("text") == group.findtext("title") for group in groups)
    section = page[page.index('id="curve"') : page.index('id="added"')]
    table = words("<main>" + section[section.index("<tbody>") :])
    for arm in arms(record):
        figures = " ".join(text.ms(arm.ms[context]) for context in CONTEXTS)
        assert f"{arm.name}{' (peer)' if arm.is_peer else ''} {figures}" in table
    floors = " ".join(text.ms(1e3 * timed.moved / record.bandwidth.copy) for timed in record.points)
    assert f"floor (bytes / copy bandwidth) {floors}" in table


def test_bytes_that_differ_are_told_first() -> None:
    wrong = (ComparedBytes("shared_kv", "control", 1024, 600, 5), ComparedBytes("left_out", "control", 1024, 400, 2))
    page = render_bench(msgspec.structs.replace(large(), checked=wrong))
    assert '<section class="verdict fail"' in page
    assert (
        "✗ 7 of 1,000 bytes differ from the parents': shared_kv (timed all the same), left_out (not timed)."
        in words(page)
    )
    assert "none differs" not in page
    unchecked = render_bench(msgspec.structs.replace(large(), checked=()))
    assert "No bytes were compared" in unchecked
    assert "none differs" not in unchecked


def test_what_was_skipped_and_what_it_rests_on() -> None:
    page = words(render_bench(large()))
    assert "other_peer : it is not installed" in page
    assert "b" * 64 in page
    assert "a" * 64 in page
    assert "copy, device to device 4,000.0 100.0 %" in page
    assert "torch.equal of the same two arrays 2,000.0 50.0 %" in page
    assert "flash_attn_with_kvcache 2.8" in page


def test_absent_torch_is_told() -> None:
    record = large()
    width = msgspec.structs.replace(record.bandwidth, torch_equal=None)
    assert "torch is not installed" in render_bench(msgspec.structs.replace(record, bandwidth=width))


def test_the_frozen_curve_is_beside_it() -> None:
    record = large()
    assert 'id="frozen"' not in render_bench(record)
    page = render_bench(record, curve.compare_with_curve(curve.curve_of(record), record))
    section = page[page.index('id="frozen"') : page.index('id="bytes"')]
    assert section.count("<tr><td>") == 9 * 5 + 9 * 4
    assert "1.0000 to 1.0000 of the frozen cost" in section
    other = msgspec.structs.replace(curve.curve_of(record), device="NVIDIA B200, sm_100")
    refused = render_bench(record, curve.compare_with_curve(other, record))
    assert "its device is NVIDIA B200, sm_100, but this bench" in refused


def test_nothing_is_fetched_from_elsewhere() -> None:
    record = large()
    page = render_bench(record, curve.compare_with_curve(curve.curve_of(record), record))
    assert not re.search(r"""(src|href)\s*=\s*["'](?!#)|@import|url\(""", page)


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "'/><b>", "\u202egnol", "x" * 10_000]
)
def test_hostile_names_are_text(name: str) -> None:
    record = bench(
        point(1024, pair(name, a=f"{name}a"), pair(f"{name}p", a=f"{name}a", peer=True)), point(2048, pair(name))
    )
    record = msgspec.structs.replace(
        record,
        shape=name,
        operator=name,
        command=name,
        commit=name,
        axes={name: name},
        machine=msgspec.structs.replace(record.machine, device=name, processor=name, packages={name: name}),
        builds={name: msgspec.structs.replace(record.builds["fast"], source=name, sources={name: name})},
        checked=(ComparedBytes(name, name, 1024, 10, 1),),
        errors=(Error(name, 1024, name, 0.1, 0.1),),
        skipped=(SkippedArm(name, name),),
        peers={name: name},
    )
    page = render_bench(record, curve.compare_with_curve(curve.curve_of(record), record))
    assert str(visible_value(name)) in html.unescape(page)
    assert "\u202e" not in page
    assert page.count("<script") == 1  # the page's own
    assert "<img" not in page
    assert "<b>" not in page
    for drawing in drawings(page):
        ElementTree.fromstring(drawing)


def test_one_point_and_none_can_be_drawn() -> None:
    assert chart([], "x", "y") == ""
    for drawing in drawings(chart([Series("alone", {128: 0.5})], "x", "y")):
        assert len(ElementTree.fromstring(drawing).findall("g/circle")) == 1
    assert "<svg" not in render_bench(bench())


def test_names_at_the_end_of_lines_do_not_overlap() -> None:
    both = drawings(chart([Series(f"line{at}", {1: 1.0, 1000: 5.0}) for at in range(25)], "x", "y"))
    assert len(both) == 2
    for drawing in both:
        heights = sorted(float(y) for y in re.findall(r'<text x="\d+" y="([\d.]+)" style', drawing))
        assert len(heights) == 25
        assert all(lower - upper >= 16.9 for upper, lower in pairwise(heights))
        assert heights[0] > 0
        assert heights[-1] < float(ElementTree.fromstring(drawing).attrib["viewBox"].split()[3])
