"""The picture of `antiphon-lab bench coupled`: speed over the plain stream, from its figures as JSON."""

import math
from collections.abc import Sequence

import msgspec

from antiphon_lab.experiments.speculative.coupled import PATIENCE_AT, PATIENCES, ROUND_TRIPS, link_of
from antiphon_lab.experiments.speculative.grid import REFERENCE, TRIPS
from antiphon_lab.report.charts import Axis, Series, line, lines
from antiphon_lab.report.page import Html
from antiphon_lab.report.picture import Panel

LOCKSTEP = "coupled lockstep auto"
SHOWN = {"coupled": "coupled", "coupled-tree": "coupled-tree", LOCKSTEP: "coupled in lockstep", TRIPS: "a trip a token"}
"""Rows by round trip, and what they are called."""


class Row(msgspec.Struct):
    """What the picture takes of a row."""

    row: str
    speedup: float
    speedup_interval: tuple[float, float] | None
    cloud_passes_per_token: float


class Setting(msgspec.Struct):
    """What it takes of a link at a temperature."""

    link: str
    profile: str
    temperature: float
    rows: list[Row]

    def find(self, name: str) -> Row | None:
        """The row of that name, if it was measured."""
        return next((row for row in self.rows if row.row == name), None)


class Figures(msgspec.Struct):
    """What it takes of all."""

    cloud_model: str
    model: str
    prompts: int
    tokens: int
    settings: list[Setting]

    def at(self, round_trip: int) -> Setting | None:
        """On a round trip, at temperature 1."""
        named = (one for one in self.settings if one.link == link_of(round_trip) and one.temperature == 1)
        return next(named, None)


def panels(found: Figures) -> tuple[list[Panel], str]:
    """Both charts, and a note."""
    note = (
        f"{found.model} drafts for {found.cloud_model}, temperature 1, {found.prompts} prompts, {found.tokens} tokens, virtual "
        f"time of {found.settings[0].profile}. 1: the cloud alone, streamed. Bars: 95 % intervals."
    )
    return [
        Panel("Speed over the plain stream", _by_trip(found)),
        Panel("What patience of the cloud buys", _patience(found)),
    ], note


def _by_trip(found: Figures) -> Html:
    series = [line("the plain stream", [(ROUND_TRIPS[0], 1.0), (ROUND_TRIPS[-1], 1.0)], 7, dashed=True)]
    for colour, (name, called) in enumerate(SHOWN.items()):
        places = [(trip, row) for trip in ROUND_TRIPS if (row := _row(found, trip, name)) is not None]
        series += [_curve(called, [(trip, row) for trip, row in places], colour)] if places else []
    return lines(series, Axis("round trip, ms", form="{:g}".format), Axis("times the stream", form="{:.2f}".format))


def _patience(found: Figures) -> Html:
    series = []
    for colour, trip in enumerate(PATIENCE_AT):
        names = [LOCKSTEP if patience == "lockstep" else f"coupled {patience} ms" for patience in PATIENCES]
        rows = [row for name in names if (row := _row(found, trip, name)) is not None]
        series += (
            [_curve(f"{trip} ms: 0 to lockstep", [(row.cloud_passes_per_token, row) for row in rows], colour)] if rows else []
        )
        if (auto := _row(found, trip, "coupled")) is not None:
            point = (auto.cloud_passes_per_token, auto.speedup)
            series.append(Series(f"{trip} ms: auto", (point,), colour, hollow=True))
    across = Axis("passes of the cloud a token", low=0.4, high=1.05, form="{:.1f}".format)
    return lines(series, across, Axis("times the stream", low=_floor(series), form="{:.2f}".format))


def _floor(series: Sequence[Series]) -> float:
    """The tenth below everything, and below 1."""
    lows = [low for one in series for low, _ in one.ranges] + [height for one in series for _, height in one.points]
    return max(0.0, math.ceil(10 * min([1.0, *lows])) - 1) / 10


def _row(found: Figures, round_trip: int, name: str) -> Row | None:
    setting = found.at(round_trip)
    return None if setting is None or name == REFERENCE else setting.find(name)


def _curve(name: str, places: Sequence[tuple[float, Row]], colour: int) -> Series:
    ranges = tuple(row.speedup_interval for _, row in places if row.speedup_interval)
    return Series(name, tuple((x, row.speedup) for x, row in places), colour, ranges if len(ranges) == len(places) else ())
