"""Where a reproduction is written: a page, its figures as JSON, and what was measured."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from antiphon.errors import UsageError
from antiphon_lab.report.page import Page, require_writable


@dataclass(frozen=True, slots=True)
class Files:
    """Of the paper `name`, in a folder."""

    folder: Path
    name: str

    @property
    def page(self) -> Path:
        """The page."""
        return self.folder / f"{self.name}.html"

    @property
    def figures(self) -> Path:
        """The same figures as JSON."""
        return self.folder / f"{self.name}.json"

    @property
    def measurements(self) -> Path:
        """Every answer and measurement, so that the same command goes on."""
        return self.folder / f"{self.name}.jsonl"

    def prepare(self) -> None:
        """Make the folder. Raises UsageError if what is measured could not be written there."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{self.folder} cannot be made ({error.strerror}): give another --out") from error
        for path in (self.page, self.figures):
            require_writable(path)

    def write(self, page: Page, figures: Mapping[str, object]) -> None:
        """Write page and figures. Raises UsageError."""
        page.write(self.page)
        try:
            self.figures.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{self.figures} cannot be written ({error.strerror}): give another --out") from error
