"""A line chart as inline SVG: logarithmic axes and a marker at every figure.

It is drawn twice, and the style sheet shows one drawing: a large one that names every line where it ends, and a small
one for a phone, with the names below.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
from markupsafe import Markup

from audit.report.template import visible_value

_LINE = 17  # pixels from one name to the next
# Mid tones that stand out on white and on black alike.
_COLOURS = (
    *("#3b82d6", "#d9632b", "#2f9e63", "#b45cc4", "#c79a1b"),
    *("#d6456b", "#22a0ab", "#a98467", "#7a7fe0", "#6b9a1f"),
)
_DASHES = ("", "7 4", "2 3")


class Series(msgspec.Struct, frozen=True):
    """One line: x -> y, all positive. `muted` draws it grey: what others are measured by."""

    name: str
    points: Mapping[int, float]
    muted: bool = False


class _Frame(msgspec.Struct, frozen=True):
    """The size of a drawing and its margins, pixels. Without a legend the names stand in the right margin."""

    name: str
    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int
    longest: int  # letters of a name
    between: int  # pixels from one number below the x axis to the next
    legend: bool


_LARGE = _Frame("large", 1180, 560, 70, 300, 16, 56, longest=34, between=56, legend=False)
_SMALL = _Frame("small", 360, 270, 52, 12, 10, 46, longest=46, between=62, legend=True)


def chart(series: Sequence[Series], x_label: str, y_label: str) -> Markup:
    """The chart as two SVG elements; empty where there is no point at all. Names and labels are escaped."""
    shown = [line for line in series if line.points]
    if not shown:
        return Markup("")
    return Markup("\n").join(_drawing(frame, shown, x_label, y_label) for frame in (_LARGE, _SMALL))


def _drawing(frame: _Frame, shown: Sequence[Series], x_label: str, y_label: str) -> Markup:
    xs = sorted({x for line in shown for x in line.points})
    ys = [y for line in shown for y in line.points.values()]
    plot = _Plot(frame, _span(xs[0], xs[-1]), _span(min(ys), max(ys)))
    height = frame.height + (_LINE * len(shown) + 6 if frame.legend else 0)
    parts = [
        Markup('<svg class="chart {}" viewBox="0 0 {} {}" role="img" aria-label="{} against {}">').format(
            frame.name, frame.width, height, y_label, x_label
        ),
        *_axes(plot, xs, x_label, y_label),
    ]
    names = _below(plot, shown) if frame.legend else _beside(plot, shown)
    for at, (line, name) in enumerate(zip(shown, names, strict=True)):
        parts.append(_line(plot, line, at, name))
    return Markup("\n").join([*parts, Markup("</svg>")])


class _Plot:
    """Where figures lie in a frame."""

    def __init__(self, frame: _Frame, x: tuple[float, float], y: tuple[float, float]) -> None:
        self.frame = frame
        self._x, self._y = x, y
        self.low_y, self.high_y = math.exp(y[0]), math.exp(y[1])
        self.right, self.floor = frame.width - frame.right, frame.height - frame.bottom

    def x(self, value: float) -> float:
        share = (math.log(value) - self._x[0]) / (self._x[1] - self._x[0])
        return self.frame.left + share * (self.right - self.frame.left)

    def y(self, value: float) -> float:
        share = (math.log(value) - self._y[0]) / (self._y[1] - self._y[0])
        return self.floor - share * (self.floor - self.frame.top)


def _span(low: float, high: float) -> tuple[float, float]:
    """Logarithms of the ends of an axis, with some room; never a single point."""
    room = max(0.04 * (math.log(high) - math.log(low)), 0.05)
    return math.log(low) - room, math.log(high) + room


def _axes(plot: _Plot, xs: Sequence[int], x_label: str, y_label: str) -> list[Markup]:
    frame, bottom, right = plot.frame, plot.floor, plot.right
    parts = [Markup('<path class="axis" d="M{0} {1}V{2}H{3}"/>').format(frame.left, frame.top, bottom, right)]
    last: float = -math.inf
    for value in xs:
        at = plot.x(value)
        parts.append(Markup('<path class="grid" d="M{0:.1f} {1}V{2}"/>').format(at, frame.top, bottom))
        if at - last >= frame.between:
            parts.append(_text(at, bottom + 18, f"{value:,}", "middle"))
            last = at
    above = math.inf
    for tick in _ticks(plot.low_y, plot.high_y):
        at = plot.y(tick)
        parts.append(Markup('<path class="grid" d="M{0} {1:.1f}H{2}"/>').format(frame.left, at, right))
        if above - at >= _LINE:
            parts.append(_text(frame.left - 7, at + 4, f"{tick:g}", "end"))
            above = at
    parts.append(_text((frame.left + right) / 2, frame.height - 10, x_label, "middle"))
    parts.append(
        Markup('<text transform="translate({0} {1}) rotate(-90)" text-anchor="middle">{2}</text>').format(
            9 if frame.legend else 16, (frame.top + bottom) // 2, y_label
        )
    )
    return parts


def _line(plot: _Plot, line: Series, at: int, name: Markup) -> Markup:
    points = [(plot.x(x), plot.y(y)) for x, y in sorted(line.points.items())]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    markers = Markup("").join(
        Markup('<circle cx="{0:.1f}" cy="{1:.1f}" r="3.2" fill="{2}"/>').format(x, y, _colour(line, at))
        for x, y in points
    )
    return Markup('<g><title>{}</title><path class="line" d="M{}" {}/>{}{}</g>').format(
        visible_value(line.name), path, _stroke(line, at), markers, name
    )


def _beside(plot: _Plot, shown: Sequence[Series]) -> list[Markup]:
    """The name of each line, to the right of where it ends, with a thread to it."""
    names = []
    middles = _apart([plot.y(_last(line)) for line in shown], plot.floor)
    for at, (line, middle) in enumerate(zip(shown, middles, strict=True)):
        lead = Markup('<path class="lead" d="M{:.1f} {:.1f}L{} {:.1f}" stroke="{}"/>').format(
            plot.x(max(line.points)) + 4, plot.y(_last(line)), plot.right + 18, middle, _colour(line, at)
        )
        names.append(lead + _name(plot, line, at, plot.right + 23, middle + 4))
    return names


def _below(plot: _Plot, shown: Sequence[Series]) -> list[Markup]:
    """The name of each line below the plot, beside a piece of it; the greatest last figure comes first."""
    order = sorted(range(len(shown)), key=lambda at: -_last(shown[at]))
    names = []
    for at, line in enumerate(shown):
        middle = plot.frame.height + _LINE * (order.index(at) + 0.5)
        piece = Markup('<path class="line" d="M{0} {1:.1f}h24" {2}/>').format(
            plot.frame.left, middle, _stroke(line, at)
        )
        names.append(piece + _name(plot, line, at, plot.frame.left + 31, middle + 4))
    return names


def _name(plot: _Plot, line: Series, at: int, x: float, y: float) -> Markup:
    text = line.name if len(line.name) <= plot.frame.longest else f"{line.name[: plot.frame.longest - 1]}…"
    return Markup('<text x="{0}" y="{1:.1f}" style="fill:{2}">{3}</text>').format(
        x, y, _colour(line, at), visible_value(text)
    )


def _colour(line: Series, at: int) -> str:
    return "var(--soft)" if line.muted else _COLOURS[at % len(_COLOURS)]


def _stroke(line: Series, at: int) -> Markup:
    dash = "1 4" if line.muted else _DASHES[at // len(_COLOURS) % len(_DASHES)]
    return Markup('stroke="{}" stroke-dasharray="{}"').format(_colour(line, at), dash)


def _apart(middles: Sequence[float], floor: float) -> list[float]:
    """The middles moved no further than is needed for a line's height between neighbours, all above the floor."""
    order = sorted(range(len(middles)), key=lambda at: middles[at])
    placed = [0.0] * len(middles)
    above = -math.inf
    for at in order:
        placed[at] = above = max(middles[at], above + _LINE)
    limit = floor
    for at in reversed(order):
        placed[at] = min(placed[at], limit)
        limit = placed[at] - _LINE
    return placed


def _ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 of every decade between two values; finer where that gives fewer than three."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for digits in ((1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)):
        found = [digit * 10.0**power for power in range(first, last + 1) for digit in digits]
        shown = [value for value in found if low <= value <= high]
        if len(shown) >= 3:
            return shown
    return [*shown, *([low, high] if not shown else [])]


def _last(line: Series) -> float:
    return line.points[max(line.points)]


def _text(x: float, y: float, text: str, anchor: str) -> Markup:
    return Markup('<text x="{0:.1f}" y="{1:.1f}" text-anchor="{2}">{3}</text>').format(x, y, anchor, text)
