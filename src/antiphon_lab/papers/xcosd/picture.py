"""One picture of X-CoSD's comparison, from the figures that `antiphon-lab reproduce x-cosd` wrote: what the README shows."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from antiphon_lab.papers.xcosd.entrants import CHAIN, STREAM, TREE
from antiphon_lab.papers.xcosd.ratios import NAMED_RATE
from antiphon_lab.report.charts import Axis, curve, lines
from antiphon_lab.report.picture import Panel, read_figures
from antiphon_lab.stats.intervals import Mean

SHOWN = ("cloud", "xcosd-e", TREE.name, CHAIN.name, "xcosd", "dsd", "dssd", STREAM.name)
"""Methods, each with its colour; more cannot be told apart."""


class _Curve(msgspec.Struct):
    name: str
    points: list[tuple[float, Mean]]


class _Figures(msgspec.Struct):
    throughput: list[_Curve]
    round_trips: list[_Curve]
    cloud_model: str
    model: str
    temperature: float
    profile: str


def panels(file: Path) -> tuple[list[Panel], str]:
    """Speed against the downlink's rate and against the round trip, and a note. Raises UsageError for another file."""
    found = read_figures(file, _Figures, "reproduce x-cosd")
    rates = Axis("downlink, Mbit/s; 30 up, no delay", log=True, form=lambda value: f"{value:g}")
    trips = Axis(f"round trip, ms; {NAMED_RATE:g} Mbit/s down, 30 up", form=lambda value: f"{value:g}")
    note = (
        f"{found.model} drafts for {found.cloud_model}, temperature {found.temperature:g}, in virtual time: hardware "
        f"{found.profile}. cloud: its tokens streamed. Bars: 95 % intervals."
    )
    return [
        _panel("Tokens a second by rate", found.throughput, rates),
        _panel("Tokens a second by round trip", found.round_trips, trips),
    ], note


def _panel(title: str, curves: Sequence[_Curve], axis: Axis) -> Panel:
    named = {curve.name: curve for curve in curves}
    shown = [name for name in SHOWN if name in named]
    series = [curve(name, named[name].points, colour) for colour, name in enumerate(shown)]
    return Panel(title, lines(series, axis, Axis("tokens/s")))
