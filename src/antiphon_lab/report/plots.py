"""Pictures of what was measured, by matplotlib, which is imported only here and only when a picture is drawn."""

import math
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from antiphon.errors import UsageError
from antiphon_lab.experiments.truncation import Accepted, Mean, Report, Row, title

ENDINGS = (".svg", ".png", ".pdf")
INK, FAINT = "#333333", "#d8d8d8"
COLOURS = ("#0072b2", "#009e73", "#d55e00")
"""Of one draft, several with and several without replacement: told apart by the colour-blind too (Okabe and Ito)."""
MARKS = ("o", "s", "^")

_STYLE: dict[Any, Any] = {
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": "#888888",
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "xtick.color": INK,
    "ytick.color": INK,
    "svg.hashsalt": "antiphon",
}
_UNDATED = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}

_Of = Callable[[Accepted], Mean | None]
_CURVES: tuple[tuple[str, _Of], ...] = (
    ("1 draft", lambda accepted: accepted.single),
    ("{} drafts, with replacement", lambda accepted: accepted.with_replacement),
    ("{} drafts, without replacement", lambda accepted: accepted.without_replacement),
)


def require_drawable(path: Path) -> None:
    """Raises UsageError if no picture can be drawn into this file; leaves what is there as it is."""
    if path.suffix.lower() not in ENDINGS:
        raise UsageError(f"--plot must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}, not {path.name!r}")
    if find_spec("matplotlib") is None:
        raise UsageError("--plot needs matplotlib: run `pip install 'antiphon[lab]'`")
    absent = not path.exists()
    try:
        path.open("ab").close()
        if absent:
            path.unlink()
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> UsageError:
    return UsageError(f"{path} cannot be written ({error.strerror}): give another --plot")


def draw(report: Report, path: Path) -> None:
    """Write retained mass and acceptance against the tokens kept; the same report gives the same SVG. Raises UsageError."""
    require_drawable(path)
    import matplotlib as mpl
    from matplotlib.figure import Figure

    ending = path.suffix.lower()
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(10.5, 4.4), layout="constrained")
        left, right = figure.subplots(1, 2)
        _draw_mass(left, report)
        _draw_acceptance(right, report)
        figure.supxlabel(f"{title(report)}, means over {report.positions} positions", fontsize=8.5)
        try:
            figure.savefig(path, format=ending[1:], dpi=160, metadata=_UNDATED[ending])
        except OSError as error:
            raise _unwritable(path, error) from error


def _draw_mass(axes: Any, report: Report) -> None:
    _frame(axes, "Mass that truncation keeps", report)
    heights = _curve(axes, report.rows, lambda row: row.mass, COLOURS[0], MARKS[0])
    axes.axhline(1.0, color=INK, lw=1, ls="--", zorder=1)
    axes.set_ylim(_floor(heights), 1.03)
    for row in _shares(report.rows):
        name, place = row.truncation.replace("=", " = "), (row.kept.mean, row.mass.mean)
        axes.annotate(name, place, (7, -9), textcoords="offset points", fontsize=8.5)
    axes.plot([], [], COLOURS[0], marker=MARKS[0], ms=4.5, label="the likeliest k")
    axes.plot([], [], MARKS[0], color=COLOURS[0], mfc="white", ms=5.5, label="the fewest of mass p")
    _legend(axes)


def _draw_acceptance(axes: Any, report: Report) -> None:
    _frame(axes, "Drafts that the cloud accepts", report)
    curves = zip(_CURVES, COLOURS, MARKS, strict=True)
    heights = [height for curve in curves for height in _draw_rate(axes, report, *curve)]
    axes.set_ylim(_floor(heights), min(1.03, 1.05 * max(0.1, *heights)))
    _legend(axes)


def _draw_rate(axes: Any, report: Report, named: tuple[str, _Of], colour: str, mark: str) -> list[float]:
    """One curve of acceptance, and its height with the full distribution; returns all heights."""
    label, of = named
    heights = _curve(axes, report.rows, lambda row: of(row.acceptance), colour, mark, label.format(report.plan.children))
    if (full := of(report.full)) is None:
        return heights
    axes.axhline(full.mean, color=colour, lw=1, ls="--", zorder=1)
    return [*heights, full.mean]


def _curve(
    axes: Any, rows: Sequence[Row], of: Callable[[Row], Mean | None], colour: str, mark: str, name: str | None = None
) -> list[float]:
    """Numbers of tokens as a line, masses as open marks where they fall; returns the heights of both."""
    masses = _shares(rows)
    line = _places([row for row in rows if row not in masses], of)
    marks = _places(masses, of)
    axes.plot(*_columns(line), color=colour, marker=mark, ms=4.5, lw=1.6, label=name)
    axes.plot(*_columns(marks), mark, color=colour, mfc="white", ms=5.5, zorder=3)
    return [height for _, height in (*line, *marks)]


def _places(rows: Sequence[Row], of: Callable[[Row], Mean | None]) -> list[tuple[float, float]]:
    return sorted((row.kept.mean, mean.mean) for row in rows if (mean := of(row)) is not None)


def _columns(places: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [kept for kept, _ in places], [height for _, height in places]


def _floor(heights: Sequence[float]) -> float:
    """A round tenth with room for a legend below the curves."""
    return max(0.0, math.floor(10 * min(heights, default=0.0) - 1.5) / 10)


def _legend(axes: Any) -> None:
    axes.plot([], [], color=INK, lw=1, ls="--", label="the full distribution")
    axes.legend(loc="lower right", frameon=False, fontsize=9)


def _frame(axes: Any, title: str, report: Report) -> None:
    from matplotlib.ticker import FuncFormatter, NullLocator

    axes.set_title(title, loc="left", weight="bold")
    axes.set_xscale("log")
    axes.set_xlim(min(row.kept.mean for row in report.rows) / 1.5, 1.1 * report.common_tokens)
    axes.set_xlabel(f"tokens kept, of {report.common_tokens:,}")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
    axes.grid(axis="y", color=FAINT, lw=0.7)
    axes.set_axisbelow(True)


def _shares(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.truncation.startswith("p")]
