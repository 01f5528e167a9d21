"""Where a growing answer is shown. On a terminal what is provisional stands dimmed behind what is settled, and is written over.

A pipe gets what is settled alone, for nothing can be taken back there. Notices of the program stand on lines of their own.
"""

import logging
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import RLock

from rich.cells import cell_len

from antiphon import shown
from antiphon.cli.screen import write
from antiphon.device.answer import Piece
from antiphon.device.output.unsettled import same_beginning
from antiphon.errors import AntiphonError
from antiphon.methods.effects import Kind

TAB = 8
PLAIN, DIM, KEPT, REVISED = "", "2", "3;33", "4"
"""How text stands on a terminal (SGR): settled; provisional; written alone and kept; settled otherwise than it was shown."""

SCROLLED_AWAY = "[the cloud is back; the answer again from where it was lost:]"


@dataclass(frozen=True, slots=True)
class Place:
    """A place on a terminal of so many columns: how far below the first character of the answer, and to the right.

    Behind the last column of a row the next character begins another one.
    """

    width: int
    row: int = 0
    column: int = 0

    def behind(self, text: str) -> "Place":
        """The place behind this text."""
        row, column = self.row, self.column
        for character in text:
            if character == "\n":
                row, column = row + 1, 0
                continue
            cells = min(TAB - column % TAB, self.width - column) if character == "\t" else cell_len(character)
            row, column = (row + 1, cells) if column + cells > self.width else (row, column + cells)
        return replace(self, row=row, column=column)


class Terminal:
    """An answer on a terminal that can move its cursor. keeps: tokens that the device wrote alone are marked."""

    def __init__(self, *, keeps: bool) -> None:
        size = shutil.get_terminal_size()
        self._keeps, self._height = keeps, size.lines
        self._at = self._begin = Place(max(size.columns, 2))  # the cursor, and where what is provisional begins
        self._shown = self._provisional = ""  # of what is provisional what can be seen, and all of it
        self._before = ""  # what was last shown behind what is settled, be it that it was taken away since
        self._revising = 0  # characters to come that stand where others were shown
        self._lock = RLock()  # a notice may come out of the model's thread

    def show(self, pieces: Sequence[Piece]) -> None:
        """Add what a round brought."""
        with self._lock:
            for piece in pieces:
                text = shown.block(piece.text)
                if piece.provisional:
                    self._propose(text)
                else:
                    self._settle(text, KEPT if self._keeps and piece.origin is Kind.LOCAL else PLAIN)
            sys.stdout.flush()

    def notice(self, sentence: str) -> None:
        """A line of its own on stderr, between what is settled and what is provisional."""
        with self._lock:
            self._erase()
            self.end_line()
            sys.stdout.flush()
            sys.stderr.write(f"{sentence}\n")
            sys.stderr.flush()
            self._at = replace(self._at, row=0, column=0)
            self._propose(self._provisional)
            sys.stdout.flush()

    def end_line(self) -> None:
        """Go to the beginning of a line, if this is not one."""
        if self._at.column:
            self._put("\n", PLAIN)

    def _propose(self, text: str) -> None:
        self._provisional = text
        self._before = text or self._before
        if not self._shown or not text.startswith(self._shown):
            self._erase()
            # Behind the last column the next character begins a row, and no cursor can be sent back to before it did.
            full = self._at.column == self._at.width
            self._begin = replace(self._at, row=self._at.row + 1, column=0) if full else self._at
            # What grows may grow out of sight, as all text does on a terminal; what comes as a whole must be within reach.
            text = text if self._within_reach(self._at.behind(text)) else ""
        self._put(text[len(self._shown) :], DIM)
        self._shown = text

    def _settle(self, text: str, style: str) -> None:
        self._erase()
        before, same = self._before, same_beginning(self._before, text)
        if same < min(len(text), len(before)):
            self._revising = len(before) - same
        self._before = before[same:] if same == len(text) else ""
        self._provisional = self._before if self._provisional else ""
        changed = text[same : same + self._revising] if same < len(text) else ""
        self._revising -= len(changed)
        self._put(text[:same], style)
        self._put(changed, REVISED)
        self._put(text[same + len(changed) :], style)

    def _erase(self) -> None:
        """Take away what is provisional, or leave it for good where it has scrolled out of reach."""
        if not self._shown:
            return
        if self._within_reach(self._at):
            up = self._at.row - self._begin.row
            sys.stdout.write((f"\x1b[{up}A" if up else "") + f"\x1b[{self._begin.column + 1}G\x1b[J")
            self._at = self._begin
        else:
            self._put(f"\n{SCROLLED_AWAY}\n", DIM)
        self._shown = ""

    def _within_reach(self, end: Place) -> bool:
        return end.row - self._begin.row < self._height - 1

    def _put(self, text: str, style: str) -> None:
        if text:
            sys.stdout.write(f"\x1b[{style}m{text}\x1b[0m" if style else text)
            self._at = self._at.behind(text)


class _Notices(logging.Handler):
    """Shows what is logged on a terminal that shows an answer."""

    def __init__(self, terminal: Terminal) -> None:
        super().__init__(logging.WARNING)
        self._terminal = terminal

    def emit(self, record: logging.LogRecord) -> None:
        self._terminal.notice(record.getMessage())


class Pipe:
    """What is settled, and nothing that may have to be taken back."""

    def show(self, pieces: Sequence[Piece]) -> None:
        """Add what a round brought."""
        write("".join(piece.text for piece in pieces if not piece.provisional))


@contextmanager
def answer_screen(*, keeps: bool) -> Iterator[Terminal | Pipe]:
    """Where the answer goes; an error's sentence gets a line of its own behind it."""
    if not (sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown")):
        yield Pipe()
        return
    terminal = Terminal(keeps=keeps)
    notices, log = _Notices(terminal), logging.getLogger("antiphon")
    if sys.stderr.isatty():
        log.addHandler(notices)
    try:
        yield terminal
    except AntiphonError:
        terminal.end_line()
        sys.stdout.flush()
        raise
    finally:
        log.removeHandler(notices)
