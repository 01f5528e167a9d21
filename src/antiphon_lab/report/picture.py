"""Charts beside each other as one SVG file that stands alone, in light and dark, such as a README shows."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TypeVar

import msgspec

from antiphon.errors import UsageError
from antiphon_lab.report.charts import HEIGHT, WIDTH
from antiphon_lab.report.page import CHART_STYLE, COLOURS, Html, require_writable

Kind = TypeVar("Kind")

GAP, HEAD, NOTE = 24, 26, 22
"""Between charts, above them for their titles, and below them for the note."""


@dataclass(frozen=True, slots=True)
class Panel:
    """A chart of `antiphon_lab.report.charts` with a title."""

    title: str
    chart: Html


def picture(panels: Sequence[Panel], note: str) -> str:
    """The file's content."""
    height = max(_height(panel.chart) for panel in panels)
    wide, high = len(panels) * WIDTH + (len(panels) - 1) * GAP, HEAD + height + NOTE
    shapes = [f'<rect width="{wide}" height="{high}" style="fill: var(--paper)"/>']
    for place, panel in enumerate(panels):
        left = place * (WIDTH + GAP)
        size = f'<svg x="{left}" y="{HEAD}" width="{WIDTH}" height="{_height(panel.chart)}" '
        shapes += [f'<text x="{left + 8}" y="18" class="head">{escape(panel.title)}</text>']
        shapes += [panel.chart.markup.replace("<svg ", size, 1)]
    shapes.append(f'<text x="8" y="{high - 7}" class="quiet small">{escape(note)}</text>')
    style = f"<style>{COLOURS}{CHART_STYLE}svg .head {{ font-weight: 600; font-size: 14px; }}\n</style>"
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" role="img">'
    return "\n".join([opening, style, *shapes, "</svg>\n"])


def read_figures(file: Path, kind: type[Kind], command: str) -> Kind:
    """The figures that a command of `antiphon-lab` wrote as JSON. Raises UsageError for another file."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except OSError as error:
        raise UsageError(f"{file} cannot be read ({error.strerror}): name the JSON that `{command}` wrote") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} is not what `antiphon-lab {command}` writes ({error}): name its JSON") from error


def require_svg(path: Path, flag: str = "--plot") -> None:
    """Raises UsageError if no picture can be written into this file; leaves what is there as it is. flag: what named it."""
    if path.suffix.lower() != ".svg":
        raise UsageError(f"{flag} must end in .svg, not {path.name!r}")
    require_writable(path, f"give another {flag}")


def write_picture(path: Path, panels: Sequence[Panel], note: str) -> None:
    """Write it into a file. Raises UsageError."""
    try:
        path.write_text(picture(panels, note), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror}): name another file for the picture") from error


def _height(chart: Html) -> int:
    """Of a chart, which is higher the more rows its legend has."""
    box = chart.markup.partition('viewBox="')[2].partition('"')[0].split()
    return int(box[3]) if len(box) == 4 else HEIGHT
