"""Documents to passages: whole sentences up to a target size, paragraphs kept together where they fit, with some overlap."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from antiphon.retrieval.documents import Document, Place, storable
from antiphon.retrieval.options import PassageOptions

UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
"""Kana and Han, written without spaces, as a range of a regular expression: each character counts as a word."""

_PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*")
_SENTENCE = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]]*+\s+|[。！？]++")
_WORD = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}]{{1,40}}")


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a document as an index keeps it. source: the file's path; key: the `id` of its row, else empty."""

    source: str
    title: str
    text: str
    place: Place
    key: str = ""


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


def spans(text: str, options: PassageOptions, whole: int) -> Iterator[tuple[int, int]]:
    """Where the passages of a text begin and end.

    Together they hold every character that is no space; beginnings and ends both rise. A passage has at most `options.words`
    words, or `whole` if it is the last one, and shares at most `options.overlap` with the one before.
    """
    pieces = list(_pieces(text, max(1, options.words // 2)))
    before = [0, *accumulate(piece.words for piece in pieces)]
    first = end = 0
    while end < len(pieces):
        end = _end(pieces, before, first, end + 1, options.words, whole)
        yield pieces[first].start, pieces[end - 1].end
        first = _overlap(before, first, end, options.overlap)


def _end(pieces: list[_Piece], before: list[int], first: int, least: int, words: int, whole: int) -> int:
    """Which piece the passage from `first` ends before: with a paragraph, if one ends in its second half."""
    if before[-1] - before[first] <= whole:
        return len(pieces)
    end = least
    while before[end + 1] - before[first] <= words:
        end += 1
    for shorter in range(end, least - 1, -1):
        if pieces[shorter - 1].ends and 2 * (before[shorter] - before[first]) >= words:
            return shorter
    return end


def _overlap(before: list[int], first: int, end: int, overlap: int) -> int:
    """Which piece the next passage begins with."""
    following = end
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
