"""A few lines of a passage, where most of the question's words stand, with the words marked."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.retrieval.words import BEGINNING, HAN, PART, Words

_TOKEN = re.compile(rf"[{HAN}]|[^\s{HAN}]+")
_CUT = "... "


@dataclass(frozen=True, slots=True)
class Preview:
    """text: on one line; marked: where words of the question stand in it."""

    text: str
    marked: tuple[tuple[int, int], ...]


def preview_of(text: str, asked: Sequence[str], words: Words, length: int) -> Preview:
    """At most about `length` characters. asked: as `Words.asked` gives them."""
    line = " ".join(text.split())
    found = _found(line, set(asked), words)
    first = _best_start(line, found, length)
    last = len(line) if len(line) - first <= length else _word_end(line, first + length)
    before, behind = _CUT * (first > 0), " ..." * (last < len(line))
    shift = len(before) - first
    marked = tuple((start + shift, min(end, last) + shift) for start, end in found if first <= start < last)
    return Preview(before + line[first:last] + behind, marked)


def _found(line: str, asked: set[str], words: Words) -> list[tuple[int, int]]:
    """The parts of the line between spaces that have a word of the question."""
    spans = [match.span() for match in _TOKEN.finditer(line)]
    taken = words.of([line[start:end] for start, end in spans])
    at, found = 0, []
    for (start, end), count in zip(spans, taken.lengths.tolist(), strict=True):
        own = [words.names[number] for number in taken.numbers[at : at + count]]
        at += count
        if any(_is_asked(word, asked) for word in own):
            found.append((start, end))
    return found


def _is_asked(word: str, asked: set[str]) -> bool:
    """Whether the word, or how it begins, is asked for. Parts of words stand in too many."""
    return not word.startswith(PART) and (word in asked or BEGINNING + word[:4] in asked)


def _best_start(line: str, found: list[tuple[int, int]], length: int) -> int:
    """Where a stretch with the most words of the question begins, a little before the first of them."""
    if len(line) <= length or not found:
        return 0
    starts = [start for start, _ in found]
    best = max(starts, key=lambda first: (sum(first <= start < first + length for start in starts), -first))
    wanted = max(0, min(best - length // 8, len(line) - length))
    return 0 if wanted == 0 else line.find(" ", max(0, wanted - 1), best) + 1 or best


def _word_end(line: str, at: int) -> int:
    cut = line.rfind(" ", 0, at)
    return cut if cut > at - 40 else at
