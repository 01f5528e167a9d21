"""A document: text, a title, and which line, page, paragraph or row of the file each character came from."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from antiphon.errors import UsageError

Unit: TypeAlias = Literal["line", "page", "paragraph", "row"]
MAX_TITLE = 300
"""Characters of a title and of a row's id at most: they are kept with each passage."""

MAX_UNITS = 2_000_000
"""Lines, pages or paragraphs of one document at most: where each begins is kept while it is cut."""

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class DocumentError(UsageError):
    """A file that cannot be read into documents, and why: it is reported and skipped."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in its file a passage stands, both ends included, counted from 1."""

    unit: Unit
    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.unit} {self.first}" if self.first == self.last else f"{self.unit}s {self.first}-{self.last}"


@dataclass(frozen=True, slots=True)
class Document:
    """What a reader makes of a file, or of one of its rows.

    starts, numbers: from offset starts[i] of the text on, it is of unit number numbers[i]; starts rises from 0. key: the `id`
    of a row of JSON lines, else empty. told: what a person should know of the file beside its text, in a few words each.
    """

    title: str
    text: str
    unit: Unit
    starts: Sequence[int] = (0,)
    numbers: Sequence[int] = (1,)
    key: str = ""
    told: Sequence[str] = ()

    def place(self, start: int, end: int) -> Place:
        """Where text[start:end] came from; it must not be empty."""
        return Place(self.unit, self._number(start), self._number(end - 1))

    def _number(self, offset: int) -> int:
        return self.numbers[bisect_right(self.starts, offset) - 1]


@dataclass(slots=True)
class Scroll:
    """A document in the making: write text, and say before it where it comes from."""

    unit: Unit
    _pieces: list[str] = field(default_factory=list)
    _starts: list[int] = field(default_factory=list)
    _numbers: list[int] = field(default_factory=list)
    _length: int = 0

    def write(self, text: str, number: int) -> None:
        """Append text that came from this line, page or paragraph."""
        if not self._numbers or self._numbers[-1] != number:
            require_units(len(self._numbers), self.unit)
            self._starts.append(self._length)
            self._numbers.append(number)
        self._pieces.append(text)
        self._length += len(text)

    def document(self, title: str, told: Sequence[str] = ()) -> Document:
        """The document as written so far."""
        text = "".join(self._pieces)
        return Document(title, text, self.unit, tuple(self._starts) or (0,), tuple(self._numbers) or (1,), told=told)


def require_units(count: int, unit: Unit) -> None:
    """Raises DocumentError if a document has more of them than any that a person wrote."""
    if count >= MAX_UNITS:
        raise DocumentError(f"it has more than {MAX_UNITS:,} {unit}s: split it")


def storable(text: str) -> str:
    """The text with each NUL and lone surrogate, which no database takes, as U+FFFD; offsets stay."""
    if text.isascii() and "\0" not in text:  # seen faster than sought
        return text
    return _UNSTORABLE.sub("\ufffd", text)


def titled(*candidates: str) -> str:
    """The first of these that says something, on one line and no longer than a title is."""
    for text in candidates:
        if title := " ".join(text.split()):
            return title[:MAX_TITLE]
    return ""


def first_line(error: Exception) -> str:
    """What another library says of a file, short enough for a sentence of ours."""
    text = str(error).strip()
    return text.splitlines()[0][:100] if text else type(error).__name__
