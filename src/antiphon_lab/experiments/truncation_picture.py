"""The picture of `antiphon-lab bench truncation`: mass and acceptance against the tokens kept, from its figures as JSON."""

import math
from collections.abc import Callable, Sequence

import msgspec

from antiphon_lab.experiments.truncation import Accepted, Row
from antiphon_lab.report.charts import Axis, Series, curve, level, lines
from antiphon_lab.report.page import Html
from antiphon_lab.report.picture import Panel
from antiphon_lab.stats.intervals import Mean

Of = Callable[[Accepted], Mean | None]
CURVES: tuple[tuple[str, Of], ...] = (
    ("1 draft", lambda accepted: accepted.single),
    ("{}, with replacement", lambda accepted: accepted.with_replacement),
    ("{}, without replacement", lambda accepted: accepted.without_replacement),
)
"""Of one draft, and of so many."""


class Figures(msgspec.Struct):
    """What the picture takes of the figures."""

    cloud_model: str
    model: str
    temperature: float
    children: int
    common_tokens: int
    positions: int
    full: Accepted
    truncations: list[Row]


def panels(found: Figures) -> tuple[list[Panel], str]:
    """Both charts, and a note."""
    note = (
        f"{found.model} drafting for {found.cloud_model}, temperature {found.temperature:g}, means over {found.positions} "
        "positions. Hollow: the fewest tokens of a mass. Dashed: the full distribution. Bars: 95 % intervals."
    )
    return [Panel("Mass that truncation keeps", _mass(found)), Panel("Drafts that the cloud accepts", _acceptance(found))], note


def _mass(found: Figures) -> Html:
    numbers, masses = ([(row.kept.mean, row.mass) for row in rows] for rows in _by_kind(found.truncations))
    series = [curve("the likeliest k", numbers, 0), _marks("the fewest of mass p", masses, 1)]
    return _chart(found, series, Axis("probability", low=_floor(series), high=1.0, form="{:.0%}".format))


def _acceptance(found: Figures) -> Html:
    series = []
    for colour, (name, of) in enumerate(CURVES):
        full = of(found.full)
        numbers, masses = (
            [(row.kept.mean, mean) for row in rows if (mean := of(row.acceptance)) is not None]
            for rows in _by_kind(found.truncations)
        )
        series += [curve(name.format(found.children), numbers, colour), _marks("", masses, colour)]
        series += [level(full.mean, numbers, colour)] if full is not None and numbers else []
    return _chart(found, series, Axis("accepted", low=_floor(series), form="{:.0%}".format))


def _by_kind(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Those that keep a number of tokens, and those that keep a mass."""
    masses = [row for row in rows if row.truncation.startswith("p")]
    return sorted((row for row in rows if row not in masses), key=lambda row: row.kept.mean), masses


def _marks(name: str, points: Sequence[tuple[float, Mean]], colour: int) -> Series:
    return Series(name if points else "", tuple((x, mean.mean) for x, mean in points), colour, line=False, hollow=True)


def _floor(series: Sequence[Series]) -> float:
    """The tenth below everything."""
    heights = [height for one in series for _, height in one.points]
    lows = [low for one in series for low, _ in one.ranges]
    return max(0.0, math.ceil(10 * min([*heights, *lows], default=0.0)) - 1) / 10


def _chart(found: Figures, series: Sequence[Series], y: Axis) -> Html:
    return lines(series, Axis(f"tokens kept, of {found.common_tokens:,}", log=True, form="{:,.0f}".format), y)
