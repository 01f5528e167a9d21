"""A picture of what two ends did over time, as inline SVG for a `antiphon_lab.report.page`: passes, frames, tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from antiphon_lab.report.charts import Axis, Scale, even_ticks, svg, text
from antiphon_lab.report.page import Html


@dataclass(frozen=True, slots=True)
class Busy:
    """A stretch of time in which an end computes."""

    start: float
    end: float
    tells: str


@dataclass(frozen=True, slots=True)
class Flight:
    """Something on its way: from `sent` until it has wholly `arrived`."""

    sent: float
    arrived: float
    up: bool
    tells: str


@dataclass(frozen=True, slots=True)
class Tick:
    """A moment on the reader's line, with its colour."""

    time: float
    colour: int
    tells: str


def exchange(
    above: Sequence[Busy], below: Sequence[Busy], flights: Sequence[Flight], ticks: Sequence[Tick], until: float
) -> Html:
    """Two ends over time, in seconds: the device above, the cloud below, what crosses between them, and tokens as they come."""
    wide, left = 900.0, 62.0
    scale = Scale(Axis("", low=0.0, high=until), [], left, wide - 26)
    parts = [text(8, y, name) for name, y in (("tokens", 20), ("device", 47), ("wire", 84), ("cloud", 122))]
    for value in even_ticks(0.0, until):
        x = scale.at(value)
        parts += [f'<path class="rule" d="M{x:.1f} 8V136"/>', text(x, 152, f"{1000 * value:g} ms", "small quiet", "middle")]
    parts += [_flight(one, scale, until) for one in flights if one.sent < until]
    parts += [_busy(one, scale, until, 34, 0) for one in above if one.start < until]
    parts += [_busy(one, scale, until, 109, 1) for one in below if one.start < until]
    parts += [_tick(one, scale) for one in ticks if one.time <= until]
    return svg(parts, wide, 160)


def _busy(one: Busy, scale: Scale, until: float, y: float, colour: int) -> str:
    start, end = scale.at(one.start), scale.at(min(one.end, until))
    box = f'<rect class="halo f{colour}" x="{start:.1f}" y="{y}" width="{max(1.0, end - start):.1f}" height="18" rx="2">'
    return f"{box}<title>{escape(one.tells)}</title></rect>"


def _flight(one: Flight, scale: Scale, until: float) -> str:
    top, bottom, colour = (52, 109, 2) if one.up else (109, 52, 3)
    share = min(1.0, (until - one.sent) / max(one.arrived - one.sent, 1e-9))
    end = f"{scale.at(one.sent + share * (one.arrived - one.sent)):.1f} {top + share * (bottom - top):.1f}"
    path = f'<path class="curve s{colour}" d="M{scale.at(one.sent):.1f} {top}L{end}">'
    return f"{path}<title>{escape(one.tells)}</title></path>"


def _tick(one: Tick, scale: Scale) -> str:
    box = f'<rect class="halo f{one.colour}" x="{scale.at(one.time) - 2.5:.1f}" y="8" width="5" height="16" rx="1">'
    return f"{box}<title>{escape(one.tells)}</title></rect>"
