"""Documents to passages: whole sentences up to a target size, paragraphs kept together where they fit, with some overlap."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, islice
from pathlib import PurePath

from antiphon.retrieval.documents import Document, Place, storable
from antiphon.retrieval.options import PassageOptions
from antiphon.retrieval.words import HAN, TAI

_PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*")
_SENTENCE = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]]*+\s+|[。！？]++")
_LONGEST = 40
_WORD = re.compile(rf"[{HAN}]|[{TAI}]{{1,5}}|[^\s{HAN}{TAI}]{{1,{_LONGEST}}}")
_UNSPACED = re.compile(f"[{HAN}{TAI}]")
"""Without spaces between words, a character of Han or Kana counts as a word, and five of Thai and the like."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a document as an index keeps it. source: the file's path; key: the `id` of its row, else empty."""

    source: str
    title: str
    text: str
    place: Place
    key: str = ""

    @property
    def digest(self) -> bytes:
        """Equal for copies: the same text, also in a file of another name, from which it then has its title."""
        title = "" if self.title == _stem(self.source) else self.title
        return hashlib.sha256("\0".join((title, *self.text.split())).encode()).digest()[:16]


@lru_cache
def _stem(source: str) -> str:
    return PurePath(source).stem


@dataclass(frozen=True, slots=True)
class _Piece:
    """The least that is moved: a sentence, or a part of a long one. ends: it ends a paragraph."""

    start: int
    end: int
    words: int
    ends: bool


def cut(document: Document, source: str, options: PassageOptions) -> Iterator[Passage]:
    """The passages of a document in order; none where it has no text."""
    whole = options.whole_row if document.unit == "row" else options.whole
    for start, end in spans(document.text, options, whole):
        text, title = storable(document.text[start:end]), storable(document.title)
        yield Passage(source, title, text, document.place(start, end), storable(document.key))


def batches(passages: Iterable[Passage], size: int) -> Iterator[list[Passage]]:
    """At most so many at a time."""
    left = iter(passages)
    while batch := list(islice(left, size)):
        yield batch


def spans(text: str, options: PassageOptions, whole: int) -> Iterator[tuple[int, int]]:
    """Where the passages of a text begin and end.

    Together they hold every character that is no space; beginnings and ends both rise. A passage has at most `options.words`
    words, or `whole` if it is the last one, and shares at most `options.overlap` with the one before.
    """
    if _is_short(text, whole):
        if stripped := text.strip():
            first = text.index(stripped[0])
            yield first, first + len(stripped)
        return
    pieces = list(_pieces(text, max(1, options.words // 2)))
    before = [0, *accumulate(piece.words for piece in pieces)]
    first = end = 0
    while end < len(pieces):
        end = _end(pieces, before, first, end + 1, options.words, whole)
        yield pieces[first].start, pieces[end - 1].end
        first = _overlap(before, first, end, options.overlap)


def _is_short(text: str, whole: int) -> bool:
    """Whether it has at most so many words; seen fast where that is plain."""
    if not text.isascii() and _UNSPACED.search(text):
        return len(_WORD.findall(text)) <= whole
    words = text.split()
    return len(words) <= whole and max(map(len, words), default=0) <= _LONGEST


def _end(pieces: list[_Piece], before: list[int], first: int, least: int, words: int, whole: int) -> int:
    """Which piece the passage from `first` ends before: with a paragraph, if one ends in its second half."""
    # What is left is not cut once more for a few words: a tail that short says little, and would be found for its rarity.
    if before[-1] - before[first] <= whole:
        return len(pieces)
    end = least
    while before[end + 1] - before[first] <= words:
        end += 1
    for shorter in range(end, least - 1, -1):
        # In its second half: to end with every paragraph would make passages of single lines.
        if pieces[shorter - 1].ends and 2 * (before[shorter] - before[first]) >= words:
            return shorter
    return end


def _overlap(before: list[int], first: int, end: int, overlap: int) -> int:
    """Which piece the next passage begins with."""
    following = end
    # Behind `first`, so that beginnings rise and the loop above ends, however long the last piece is.
    while following - 1 > first and before[end] - before[following - 1] <= overlap:
        following -= 1
    return following


def _pieces(text: str, most: int) -> Iterator[_Piece]:
    """The sentences of a text, each cut where it has more than `most` words."""
    for start, end in _between(_PARAGRAPH, text, 0, len(text)):
        for sentence_start, sentence_end in _between(_SENTENCE, text, start, end):
            ends = sentence_end == end
            yield from _chunks(text, sentence_start, sentence_end, most, ends)


def _between(boundary: re.Pattern[str], text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The spans of text[start:end] between boundaries; a boundary ends the span before it."""
    for match in boundary.finditer(text, start, end):
        yield start, match.end()
        start = match.end()
    if start < end:
        yield start, end


def _chunks(text: str, start: int, end: int, most: int, ends: bool) -> Iterator[_Piece]:
    """text[start:end] without outer spaces, in parts of at most `most` words; nothing if it is blank."""
    words = [match.span() for match in _WORD.finditer(text, start, end)]
    for at in range(0, len(words), most):
        part = words[at : at + most]
        yield _Piece(part[0][0], part[-1][1], len(part), ends and at + most >= len(words))
