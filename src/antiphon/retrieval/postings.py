"""BM25 over counted words, the same in every index: so weights of two ends are comparable.

A word's rarity is counted among the passages that are not about the question (Robertson and Sparck Jones, 1976): of a library
whose notes are all about a mill, "mill" says as much as in any other. A passage is about a question if it has ENOUGH of its
words, whole ones. So one more passage about the question never lowers the score of another, nor the weight of an end. And a
library is taken for a sample of one that has BACKGROUND passages more, without any of the words: a word that one of three notes
has is not therefore common. The idf is Lucene's, which is above 0 always.
"""

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from antiphon.retrieval import words
from antiphon.retrieval.words import BEGINNING, PART, PART_WEIGHT, TITLE_WEIGHT, Words

Entries: TypeAlias = NDArray[np.void]
"""Where a word stands, one row a passage: its id, its length in words, and how often its title and its text have the word."""
_ENTRY = np.dtype([("id", "<u4"), ("length", "<u2"), ("title", "u1"), ("text", "u1")])
_MOST_LENGTH, _MOST_TIMES = 0xFFFF, 0xFF

ENOUGH = 0.6
BACKGROUND = 100
LARGEST_IDF = 5.5
"""What the rarest word counts after scaling, in a library of any size."""
_K1, _B = 1.2, 0.75
_LENGTH = 100  # words of a passage of the background
_LONGEST = 200
_SURELY_SHORT = _LONGEST // 4


@dataclass(frozen=True, slots=True)
class Totals:
    """The passages of an index, copies counted once, and all their words."""

    passages: int
    words: int


@dataclass(frozen=True, slots=True)
class Counted:
    """Passages counted: how long each is in words, their different words in order, and the entries of each, packed."""

    lengths: list[int]
    words: list[str]
    entries: list[bytes]


def counted(taker: Words, passages: Sequence[tuple[int, str, str]]) -> Counted:
    """Of (id, title, text) of passages."""
    count = len(passages)
    found = taker.of([title for _, title, _ in passages] + [text for _, _, text in passages])
    at = np.repeat(np.arange(2 * count), found.lengths)
    keys = np.sort((found.numbers * count + at % max(count, 1)) * 2 + at // max(count, 1))
    firsts = np.flatnonzero(np.diff(keys, prepend=-1))
    pairs, column = np.divmod(keys[firsts], 2)  # of a word and a passage; 0 for its title, 1 for its text
    new = np.diff(pairs, prepend=-1) > 0
    terms, where = np.divmod(pairs[new], max(count, 1))
    lengths = np.minimum(found.lengths[:count] + found.lengths[count:], _MOST_LENGTH)
    times = np.zeros((2, len(terms)), np.int64)
    times[column, np.cumsum(new) - 1] = np.diff(firsts, append=len(keys))
    ids = np.array([number for number, _, _ in passages], np.int64)
    entries = _entries(ids[where], lengths[where], times[0], times[1])
    bounds = np.flatnonzero(np.diff(terms, prepend=-1))
    found_names = map(taker.names.__getitem__, terms[bounds].tolist())
    names = [name if len(name) <= _SURELY_SHORT else stored(name) for name in found_names]
    data, ends = entries.tobytes(), (np.append(bounds, len(terms)) * _ENTRY.itemsize).tolist()
    packed = [data[first:last] for first, last in pairwise(ends)]
    order = sorted(range(len(names)), key=names.__getitem__)
    return Counted(lengths.tolist(), [names[at] for at in order], [packed[at] for at in order])


def _entries(ids: NDArray[Any], lengths: NDArray[Any], titles: NDArray[Any], texts: NDArray[Any]) -> Entries:
    entries = np.empty(len(ids), _ENTRY)
    entries["id"], entries["length"] = ids, lengths
    entries["title"], entries["text"] = np.minimum(titles, _MOST_TIMES), np.minimum(texts, _MOST_TIMES)
    return entries


def unpacked(data: bytes) -> Entries:
    """The entries of a word; what was packed apart may be joined, in any order."""
    return np.frombuffer(data, _ENTRY)


def stored(word: str) -> str:
    """A word as a database keeps it, whose indexes take no long keys; a hash is no word, because of its #."""
    if len(word) <= _SURELY_SHORT or len(data := word.encode()) <= _LONGEST:
        return word
    return "#" + hashlib.sha256(data).hexdigest()


def beginning(word: str) -> tuple[str, str] | None:
    """Where the words begin and end that this one of a question stands for, if it stands for several."""
    if not word.startswith(BEGINNING):
        return None
    first = word.removeprefix(BEGINNING)
    return first, first[:-1] + chr(ord(first[-1]) + 1)


def joined(data: Iterable[bytes]) -> Entries:
    """The entries of several words as those of one."""
    rows = unpacked(b"".join(data))
    ids, first, at = np.unique(rows["id"], return_index=True, return_inverse=True)
    titles, texts = (np.bincount(at, rows[column], len(ids)) for column in ("title", "text"))
    return _entries(ids, rows["length"][first], titles, texts)


def best(asked: Sequence[str], found: dict[str, Entries], totals: Totals, count: int, scaled: bool) -> list[tuple[int, float]]:
    """Ids and BM25 scores of the `count` best, the lowest id first among equals.

    asked: the question's words as they are stored; found: entries of those that the index has. scaled: so that the rarest word
    counts LARGEST_IDF.
    """
    entries = [found[word] for word in asked if word in found]
    if not entries:
        return []
    weights = [_weight(word) for word in asked if word in found]
    telling = {word: 0.0 if word.startswith(BEGINNING) else _weight(word) for word in asked}
    ids, at = np.unique(np.concatenate([rows["id"] for rows in entries]), return_inverse=True)
    shares = np.repeat([telling[word] for word in asked if word in found], [len(rows) for rows in entries])
    # A digit of slack: shares are sums of decimal weights, and 0.6 of them must count as 0.6.
    about = np.bincount(at, shares) >= ENOUGH * sum(telling.values()) - 1e-9
    length = np.empty(len(ids))
    length[at] = np.concatenate([rows["length"] for rows in entries])
    others = Totals(totals.passages - int(about.sum()), totals.words - int(length[about].sum()))
    scores = np.bincount(at, np.concatenate(_parts(entries, weights, about[at], others, scaled))).astype(np.float64)
    order = _largest(scores, count)
    return list(zip(ids[order].tolist(), scores[order].tolist(), strict=True))


def _parts(
    entries: list[Entries], weights: list[float], about: NDArray[np.bool_], others: Totals, scaled: bool
) -> list[NDArray[np.float64]]:
    """What each word adds to each passage. about: of each entry's passage; others: the passages that are not."""
    average = (others.words + _LENGTH) / (others.passages + 1)
    # By the most that a word could count in this library: so a match is worth the same in a large one and in a small one.
    scale = LARGEST_IDF / _idf(0, others.passages) if scaled else 1.0
    parts, first = [], 0
    for rows, weight in zip(entries, weights, strict=True):
        having = len(rows) - int(np.count_nonzero(about[first : first + len(rows)]))
        parts.append(weight * scale * _idf(having, others.passages) * _saturated(rows, average))
        first += len(rows)
    return parts


def _weight(word: str) -> float:
    return PART_WEIGHT if word.startswith((PART, BEGINNING)) else 1.0


def _idf(having: int, passages: int) -> float:
    return math.log1p((passages + BACKGROUND - having + 0.5) / (having + 0.5))


def _saturated(entries: Entries, average: float) -> NDArray[np.float64]:
    length = entries["length"].astype(np.float64)
    frequency = entries["title"] * TITLE_WEIGHT + entries["text"]
    return np.asarray((frequency * (_K1 + 1.0)) / (frequency + _K1 * (1 - _B + _B * length / average)), np.float64)


def _largest(scores: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Where the `count` largest stand, in order; the first among equals first."""
    least = -np.partition(-scores, count - 1)[count - 1] if count < len(scores) else -math.inf
    chosen = np.flatnonzero(scores >= least)
    return chosen[np.argsort(-scores[chosen], kind="stable")][:count]


def identity() -> str:
    """Everything here that changes scores, for the name of a scorer."""
    return f"k1={_K1!r} b={_B!r} enough={ENOUGH!r} background={BACKGROUND}x{_LENGTH} {words.identity()}"
