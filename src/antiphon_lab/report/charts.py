"""Charts as inline SVG, for a `report.page`: lines with intervals, broken stacked bars, marks on a logarithmic axis.

Colours, text and dark mode are the page's style; every mark tells its value when it is pointed at. Colours are numbers from 0
to 7, so that one thing keeps its colour through all charts of a page; marks differ in shape too.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from antiphon_lab.report.page import Html
from antiphon_lab.stats.intervals import Mean

WIDTH, HEIGHT = 430, 290
"""Of a chart, in its own units: a narrow screen shows them about as large as they are."""
LEFT, RIGHT, TOP, BOTTOM = 50, 14, 10, 44
LETTER = 7.3
"""The width of a letter, on average in names with wide ones, of a wide font."""
SHAPES = ("circle", "square", "triangle", "diamond")


def short(value: float) -> str:
    """A number in three digits or so, with k and M for thousands and millions."""
    if value == 0:
        return "0"
    for bound, unit in ((1e6, "M"), (1e4, "k")):
        if abs(value) >= bound:
            return f"{value / (1e6 if unit == 'M' else 1e3):.3g}{unit}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis. names: what stands at 0, 1, 2, ... instead of numbers. low, high: its ends, if the data do not give them."""

    label: str
    log: bool = False
    names: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    form: Callable[[float], str] = short


@dataclass(frozen=True, slots=True)
class Series:
    """A curve. ranges: an interval of each point, if any. line: whether points are joined; hollow: whether they are empty."""

    name: str
    points: tuple[tuple[float, float], ...]
    colour: int = 0
    ranges: tuple[tuple[float, float], ...] = ()
    line: bool = True
    hollow: bool = False
    dashed: bool = False


def curve(name: str, points: Sequence[tuple[float, Mean]], colour: int) -> Series:
    """A line of means with their intervals, where all have one."""
    ranges = tuple(mean.interval for _, mean in points if mean.interval)
    return Series(name, tuple((x, mean.mean) for x, mean in points), colour, ranges if len(ranges) == len(points) else ())


def line(name: str, points: Sequence[tuple[float, float]], colour: int, *, dashed: bool = False) -> Series:
    """A line; dashed if it is calculated and not measured."""
    return Series(name, tuple(points), colour, hollow=dashed, dashed=dashed)


def level(height: float, points: Sequence[tuple[float, Mean]], colour: int) -> Series:
    """A dashed line without a name, as wide as a curve of these points: what the curve comes near to."""
    return line("", [(points[0][0], height), (points[-1][0], height)], colour, dashed=True)


class Scale:
    """Values to places on the paper."""

    def __init__(self, axis: Axis, values: Sequence[float], start: float, end: float) -> None:
        self._log, self._start, self._end = axis.log, start, end
        self.low, self.high = _ends(axis, values)

    def at(self, value: float) -> float:
        """The place of a value."""
        low, high, value = (math.log(v) if self._log else v for v in (self.low, self.high, value))
        return self._start + (value - low) / (high - low) * (self._end - self._start)


def _ends(axis: Axis, values: Sequence[float]) -> tuple[float, float]:
    if axis.names:
        return -0.5, len(axis.names) - 0.5
    low, high = min(values, default=0.0), max(values, default=1.0)
    if axis.log:
        return axis.low or low / 1.15, axis.high or high * 1.15
    low = min(0.0, low) if axis.low is None else axis.low
    return low, max(high * 1.06, low + 1e-9) if axis.high is None else axis.high


def _ticks(axis: Axis, scale: Scale) -> list[tuple[float, str]]:
    if axis.names:
        return list(enumerate(map(str, axis.names)))
    steps = _log_ticks(scale.low, scale.high) if axis.log else even_ticks(scale.low, scale.high)
    return [(value, axis.form(value)) for value in steps]


def even_ticks(low: float, high: float) -> list[float]:
    """Round numbers between two."""
    rough = (high - low) / 4
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * unit for factor in (1, 2, 2.5, 5, 10) if factor * unit >= rough)
    return [place * step for place in range(math.ceil(low / step), math.floor(high / step + 1e-9) + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = (1,) if high / low > 1000 else (1, 2, 5)
    return [factor * 10.0**decade for decade in decades for factor in factors if low <= factor * 10.0**decade <= high]


def lines(series: Sequence[Series], x: Axis, y: Axis) -> Html:
    """Curves over a common x."""
    legend, top = _legend([(one.name, one.colour, one.hollow) for one in series if one.name], TOP)
    places = [point for one in series for point in one.points]
    ranges = [end for one in series for pair in one.ranges for end in pair]
    across = Scale(x, [place for place, _ in places], LEFT, WIDTH - RIGHT)
    height = HEIGHT + top - TOP
    up = Scale(y, [value for _, value in places] + ranges, height - BOTTOM, top)
    parts = [*legend, *_frame(x, y, across, up, top, height)]
    for one in series:
        parts += _curve(one, across, up, x, y)
    return svg(parts, WIDTH, height)


def _frame(x: Axis, y: Axis, across: Scale, up: Scale, top: float, height: float) -> list[str]:
    bottom, right, parts = height - BOTTOM, WIDTH - RIGHT, []
    for value, name in _ticks(y, up):
        parts.append(f'<path class="rule" d="M{LEFT} {up.at(value):.1f}H{right}"/>')
        parts.append(text(LEFT - 6, up.at(value) + 4, name, anchor="end"))
    for value, name in _ticks(x, across):
        parts.append(f'<path class="axis" d="M{across.at(value):.1f} {bottom}v4"/>')
        parts.append(text(across.at(value), bottom + 17, name, anchor="middle"))
    parts.append(f'<path class="axis" d="M{LEFT} {bottom}H{right}"/>')
    parts.append(text((LEFT + right) / 2, height - 8, x.label, kind="quiet", anchor="middle"))
    middle = (top + bottom) / 2
    parts.append(f'<g transform="rotate(-90 12 {middle:.1f})">{text(12, middle, y.label, kind="quiet", anchor="middle")}</g>')
    return parts


def _curve(one: Series, across: Scale, up: Scale, x: Axis, y: Axis) -> list[str]:
    places = [(across.at(a), up.at(b)) for a, b in one.points]
    parts = [
        f'<path class="range s{one.colour}" d="M{place:.1f} {up.at(low):.1f}V{up.at(high):.1f}"/>'
        for (place, _), (low, high) in zip(places, one.ranges, strict=False)
    ]
    if one.line and len(places) > 1:
        path = "L".join(f"{a:.1f} {b:.1f}" for a, b in places)
        dashes = ' stroke-dasharray="5 4"' if one.dashed else ""
        parts.append(f'<path class="curve s{one.colour}" d="M{path}"{dashes}/>')
    for (a, b), (value, height) in zip(places, one.points, strict=True):
        where = x.names[round(value)] if x.names else x.form(value)
        called = f"{one.name}, {where}" if one.name else where
        parts.append(_mark(a, b, one.colour, one.hollow, f"{called}: {y.form(height)}"))
    return parts


def _mark(x: float, y: float, colour: int, hollow: bool, tells: str) -> str:
    style = f'class="hollow s{colour}"' if hollow else f'class="halo f{colour}"'
    shapes = {
        "circle": f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.2" {style}>',
        "square": f'<path d="M{x - 4:.1f} {y - 4:.1f}h8v8h-8z" {style}>',
        "triangle": f'<path d="M{x:.1f} {y - 5:.1f}l5 9h-10z" {style}>',
        "diamond": f'<path d="M{x:.1f} {y - 5.4:.1f}l5.4 5.4l-5.4 5.4l-5.4 -5.4z" {style}>',
    }
    opening = shapes[SHAPES[colour % len(SHAPES)]]
    return f"{opening}<title>{escape(tells)}</title></{opening[1:].split()[0]}>"


def _legend(entries: Iterable[tuple[str, int, bool]], top: float, width: float = WIDTH) -> tuple[list[str], float]:
    """Names with their marks, in as many rows as they need, and where the chart begins below them."""
    parts, x, y = [], 8.0, top + 6
    for name, colour, hollow in dict.fromkeys(entries):
        wide = 22 + LETTER * len(name)
        if x + wide > width and x > 8:
            x, y = 8.0, y + 18
        parts += [_mark(x + 5, y, colour, hollow, name), text(x + 14, y + 4, name)]
        x += wide
    return parts, y + 18 if parts else top


@dataclass(frozen=True, slots=True)
class Bar:
    """A row of a chart: the sizes of its parts, how its total is written, and the total's interval if it has one."""

    name: str
    values: tuple[float, ...]
    written: str
    interval: tuple[float, float] | None = None


def bars(rows: Sequence[Bar], parts: Sequence[str], label: str) -> Html:
    """Stacked bars, one a row. One that is much longer than the others is broken off, and its number says how long it is."""
    legend, top = _legend([(name, colour, False) for colour, name in enumerate(parts) if len(parts) > 1], TOP)
    left, right = _room(rows)
    longest = _longest([max(sum(row.values), *(row.interval or (0.0,))) for row in rows])
    scale = (right - left) / longest
    shapes = list(legend)
    for place, row in enumerate(rows):
        shapes += _bar(row, parts, left, top + 24 * place, scale, longest)
    height = top + 24 * len(rows) + 22
    shapes.append(text(WIDTH - RIGHT, height - 6, label, kind="quiet", anchor="end"))
    return svg(shapes, WIDTH, height)


def bars_of(means: Mapping[str, Mean], label: str, form: str, *, log: bool = False) -> Html:
    """A bar a mean, with its interval; log: a mark on a logarithmic axis."""
    shown = [Bar(name, (mean.mean,), f"{mean.mean:{form}}", mean.interval) for name, mean in means.items()]
    return (levels if log else bars)(shown, (label,), label)


def _room(rows: Sequence[Bar]) -> tuple[float, float]:
    """Where the shapes of a chart of rows begin and end, between the names and what is written."""
    left = 14 + LETTER * max((len(row.name) for row in rows), default=0)
    return left, WIDTH - RIGHT - 10 - LETTER * max((len(row.written) for row in rows), default=0)


def levels(rows: Sequence[Bar], parts: Sequence[str], label: str) -> Html:
    """Marks on a logarithmic axis, a row each and a mark for each part above 0: for what differs by powers of ten.

    Stacked lengths would say nothing there. A part of 0 has no mark; an interval is drawn where there is only one part.
    """
    legend, top = _legend([(name, colour, False) for colour, name in enumerate(parts) if len(parts) > 1], TOP)
    left, right = _room(rows)
    found = [value for row in rows for value in (*row.values, *(row.interval or ())) if value > 0]
    axis, bottom = Axis(label, log=True), top + 24 * len(rows)
    scale = Scale(axis, found or [1.0], left + 6, right - 6)
    shapes = list(legend)
    for value, name in _sparse(_ticks(axis, scale)):
        shapes += [f'<path class="rule" d="M{scale.at(value):.1f} {top:.1f}V{bottom}"/>']
        shapes += [text(scale.at(value), bottom + 14, name, kind="small", anchor="middle")]
    for place, row in enumerate(rows):
        shapes += _level(row, parts, scale, left, right, top + 24 * place + 12)
    shapes.append(text(WIDTH - RIGHT, bottom + 32, label, kind="quiet", anchor="end"))
    return svg(shapes, WIDTH, bottom + 38)


def _sparse(ticks: Sequence[tuple[float, str]]) -> Sequence[tuple[float, str]]:
    """Six at most, so that their names do not touch."""
    return ticks[:: math.ceil(len(ticks) / 6) or 1]


def _level(row: Bar, parts: Sequence[str], scale: Scale, left: float, right: float, y: float) -> list[str]:
    shapes = [text(left - 6, y + 4, row.name, anchor="end"), f'<path class="rule" d="M{left:.1f} {y:.1f}H{right:.1f}"/>']
    if row.interval is not None and min(row.interval) > 0:
        low, high = map(scale.at, row.interval)
        shapes.append(f'<path class="range s0" d="M{low:.1f} {y:.1f}H{high:.1f}"/>')
    for colour, (name, value) in enumerate(zip(parts, row.values, strict=True)):
        if value > 0:
            shapes.append(_mark(scale.at(value), y, colour, False, f"{row.name}, {name}: {short(value)}"))
    return [*shapes, text(right + 8, y + 4, row.written)]


def _longest(totals: Sequence[float]) -> float:
    """What the paper's width stands for: the longest bar that is not over five times as long as the one before it."""
    longest = 0.0
    for total in sorted(totals):
        if longest > 0 and total > 5 * longest:
            break
        longest = total
    return longest or 1.0


def _bar(row: Bar, parts: Sequence[str], left: float, top: float, scale: float, longest: float) -> list[str]:
    shapes, x, room = [text(left - 6, top + 14, row.name, anchor="end")], left, longest
    broken = sum(row.values) > longest
    for colour, (name, value) in enumerate(zip(parts, row.values, strict=True)):
        wide = scale * min(value, room)
        tells = f"{row.name}, {name}: {short(value)}"
        if wide > 0:
            shapes.append(
                f'<rect class="halo f{colour}" x="{x:.1f}" y="{top + 3:.1f}" width="{wide:.1f}" height="15">'
                f"<title>{escape(tells)}</title></rect>"
            )
        x, room = x + wide, room - min(value, room)
    if row.interval is not None and not broken:
        ends = [left + scale * min(end, longest) for end in row.interval]
        shapes.append(f'<path class="span" d="M{ends[0]:.1f} {top + 10.5:.1f}H{ends[1]:.1f}"/>')
    if broken:
        shapes.append(f'<path d="M{x - 14:.1f} {top + 21:.1f}l5 -21h4l-5 21z" style="fill: var(--paper)"/>')
    return [*shapes, text(x + 5, top + 14, row.written)]


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    """Words at a place."""
    style = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{style}>{escape(words)}</text>'


def svg(parts: Sequence[str], width: float, height: float) -> Html:
    """A picture of shapes."""
    inside = "\n".join(parts)
    return Html(f'<svg viewBox="0 0 {width:.0f} {height:.0f}" xmlns="http://www.w3.org/2000/svg" role="img">\n{inside}\n</svg>')
