"""A line chart as inline SVG: logarithmic axes, a marker at every figure, every line named where it ends."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
from markupsafe import Markup

from audit.report.template import visible

_WIDTH, _HEIGHT = 1180, 560
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 300, 16, 56
_LINE = 17  # pixels from one name to the next
_LONGEST = 34  # letters of a name
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


def chart(series: Sequence[Series], x_label: str, y_label: str) -> Markup:
    """The chart as an SVG element; empty where there is no point at all. Names and labels are escaped."""
    shown = [line for line in series if line.points]
    if not shown:
        return Markup("")
    xs = sorted({x for line in shown for x in line.points})
    ys = [y for line in shown for y in line.points.values()]
    plot = _Plot(_span(xs[0], xs[-1]), _span(min(ys), max(ys)))
    parts = [
        Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{} against {}">').format(
            _WIDTH, _HEIGHT, y_label, x_label
        ),
        *_axes(plot, xs, x_label, y_label),
    ]
    for at, (line, middle) in enumerate(zip(shown, _apart([plot.y(_last(line)) for line in shown]), strict=True)):
        parts.append(_line(plot, line, at, middle))
    return Markup("\n").join([*parts, Markup("</svg>")])


class _Plot:
    def __init__(self, x: tuple[float, float], y: tuple[float, float]) -> None:
        self._x, self._y = x, y
        self.low_y, self.high_y = math.exp(y[0]), math.exp(y[1])

    def x(self, value: float) -> float:
        share = (math.log(value) - self._x[0]) / (self._x[1] - self._x[0])
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        share = (math.log(value) - self._y[0]) / (self._y[1] - self._y[0])
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)


def _span(low: float, high: float) -> tuple[float, float]:
    """Logarithms of the ends of an axis, with some room; never a single point."""
    room = max(0.04 * (math.log(high) - math.log(low)), 0.05)
    return math.log(low) - room, math.log(high) + room


def _axes(plot: _Plot, xs: Sequence[int], x_label: str, y_label: str) -> list[Markup]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    parts = [Markup('<path class="axis" d="M{0} {1}V{2}H{3}"/>').format(_LEFT, _TOP, bottom, right)]
    last: float = -math.inf
    for value in xs:
        at = plot.x(value)
        parts.append(Markup('<path class="grid" d="M{0:.1f} {1}V{2}"/>').format(at, _TOP, bottom))
        if at - last >= 56:
            parts.append(_text(at, bottom + 20, f"{value:,}", "middle"))
            last = at
    for tick in _ticks(plot.low_y, plot.high_y):
        at = plot.y(tick)
        parts.append(Markup('<path class="grid" d="M{0} {1:.1f}H{2}"/>').format(_LEFT, at, right))
        parts.append(_text(_LEFT - 8, at + 4, f"{tick:g}", "end"))
    parts.append(_text((_LEFT + right) / 2, _HEIGHT - 10, x_label, "middle"))
    parts.append(
        Markup('<text transform="translate(16 {0}) rotate(-90)" text-anchor="middle">{1}</text>').format(
            (_TOP + bottom) // 2, y_label
        )
    )
    return parts


def _line(plot: _Plot, line: Series, at: int, middle: float) -> Markup:
    colour = "var(--soft)" if line.muted else _COLOURS[at % len(_COLOURS)]
    dash = "1 4" if line.muted else _DASHES[at // len(_COLOURS) % len(_DASHES)]
    points = [(plot.x(x), plot.y(y)) for x, y in sorted(line.points.items())]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    right = _WIDTH - _RIGHT
    markers = Markup("").join(
        Markup('<circle cx="{0:.1f}" cy="{1:.1f}" r="3.2" fill="{2}"/>').format(x, y, colour) for x, y in points
    )
    end_x, end_y = points[-1]
    return Markup(
        '<g><title>{0}</title><path class="line" d="M{1}" stroke="{2}" stroke-dasharray="{3}"/>{4}'
        '<path class="lead" d="M{5:.1f} {6:.1f}L{7} {8:.1f}" stroke="{2}"/>{9}</g>'
    ).format(
        visible(line.name),
        path,
        colour,
        dash,
        markers,
        end_x + 4,
        end_y,
        right + 18,
        middle,
        Markup('<text x="{0}" y="{1:.1f}" style="fill:{2}">{3}</text>').format(
            right + 23, middle + 4, colour, visible(_cut(line.name))
        ),
    )


def _apart(middles: Sequence[float]) -> list[float]:
    """The middles moved no further than is needed for a line's height between neighbours, inside the picture."""
    order = sorted(range(len(middles)), key=lambda at: middles[at])
    placed = [0.0] * len(middles)
    above = -math.inf
    for at in order:
        placed[at] = above = max(middles[at], above + _LINE)
    limit: float = _HEIGHT - _BOTTOM
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


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
