"""What benchmarks show on a terminal: how far they are, and tables of what they found."""

from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from antiphon_lab.stats.bootstrap import UNSURE, Interval


def progress_bar(console: Console) -> Progress:
    """A bar with a description, how much is done of how much, and the time that is left."""
    return Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=console)


def table_of(title: str, headings: Sequence[str], rows: Mapping[str, Sequence[str]], caption: str) -> Table:
    """A row a name, its cells to the right."""
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    shown.title, shown.title_justify = title or None, "left"
    shown.caption, shown.caption_justify = caption, "left"
    shown.add_column("", overflow="fold")
    for heading in headings:
        shown.add_column(heading, justify="right")
    for name, cells in rows.items():
        shown.add_row(name, *cells)
    return shown


def plus_minus(interval: Interval | None, form: str, factor: float = 1.0) -> str:
    """Half of an interval's width, or the mark of one that is not known."""
    return UNSURE if interval is None else f"\u00b1{factor * (interval[1] - interval[0]) / 2:{form}}"
