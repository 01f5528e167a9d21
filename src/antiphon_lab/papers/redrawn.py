"""A page made again from its figures, without measuring anything."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from antiphon.errors import UsageError
from antiphon_lab.papers.tslt import run as tslt
from antiphon_lab.papers.tslt.page import page as tslt_page
from antiphon_lab.papers.xcosd import run as xcosd
from antiphon_lab.papers.xcosd.page import page as xcosd_page
from antiphon_lab.report.page import Page
from antiphon_lab.report.picture import read_figures

PAPERS: dict[str, tuple[type, Callable[[Any], Page]]] = {
    "TSLT": (tslt.Report, tslt_page),
    "X-CoSD": (xcosd.Report, xcosd_page),
}
"""By the paper's name, as the figures begin with it."""


def redrawn(figures: Path) -> Page:
    """The page of the figures that `antiphon-lab reproduce` wrote as JSON. Raises UsageError for any other file."""
    found = read_figures(figures, dict[str, Any], "reproduce")
    name = str(found.get("paper", "")).partition(",")[0]
    if name not in PAPERS:
        raise UsageError(
            f"{figures} holds no figures of {' or '.join(PAPERS)}; the page of another report is drawn by its own command, "
            "which measures nothing again that it kept"
        )
    kind, page = PAPERS[name]
    try:
        return page(msgspec.convert({**found, "settings": found}, kind))
    except msgspec.ValidationError as error:
        raise UsageError(f"{figures} was written by another version ({error}): run `reproduce` again") from error
