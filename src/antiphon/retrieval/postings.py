"""BM25 outside of SQLite, equal to FTS5's: words as its tokenizer gives them, counted, and its formula over the counts.

So an index elsewhere has the scorer of the embedded one, and weights of both are comparable. One exception: a word of a
question that FTS5's tokenizer takes apart is a phrase there and several words here. Of all characters only 21 letters of New
Tai Lue and Vedic, newer than the tables of SQLite, do that.
"""

import hashlib
import math
import sqlite3
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from antiphon.retrieval.words import TITLE_WEIGHT, TOKENIZER, indexed, terms

Entries: TypeAlias = NDArray[np.uint32]
"""Where a word stands, one row a passage: its id, its length in words, and how often its title and its text have the word."""

_K1, _B = 1.2, 0.75
_LEAST_IDF = 1e-6
_LONGEST = 200
_WIDTH = 4
_COUNTS = """SELECT term, doc, sum(col = 'title'), sum(col = 'text') FROM found GROUP BY term, doc ORDER BY term, doc"""


class Tokenizer:
    """FTS5's, in an SQLite of its own that holds a batch of passages at a time. One thread at a time."""

    def __init__(self) -> None:
        self._memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._memory.text_factory = lambda word: word.decode(errors="replace")  # a word of over 32 KiB is cut anywhere
        self._memory.execute(f"CREATE VIRTUAL TABLE words USING fts5 (title, text, content='', tokenize='{TOKENIZER}')")
        self._memory.execute("CREATE VIRTUAL TABLE found USING fts5vocab (words, instance)")

    def count(self, passages: Sequence[tuple[str, str]], first: int) -> tuple[int, list[tuple[str, bytes]]]:
        """All words of (title, text) pairs with ids from `first` on, and for each different word its entries, packed."""
        self._fill((number, indexed(title), indexed(text)) for number, (title, text) in enumerate(passages, first))
        rows = self._memory.execute(_COUNTS).fetchall()
        counts = np.array([row[1:] for row in rows], np.int64).reshape(-1, 3)
        at, each = counts[:, 0] - first, counts[:, 1] + counts[:, 2]
        lengths = np.bincount(at, each, len(passages)).astype(np.int64)
        entries = np.column_stack([counts[:, 0], lengths[at], counts[:, 1:]]).astype("<u4")
        return int(lengths.sum()), list(_packed([row[0] for row in rows], entries))

    def stems(self, question: str) -> list[str]:
        """The words of a question as they are indexed, in order; two that have one stem are two."""
        self._fill((number, "", term) for number, term in enumerate(terms(question), 1))
        rows = self._memory.execute("SELECT term FROM found ORDER BY doc, offset")
        return [_stored(term) for (term,) in rows]

    def close(self) -> None:
        """Give the memory back."""
        self._memory.close()

    def _fill(self, rows: Iterator[tuple[int, str, str]]) -> None:
        self._memory.execute("INSERT INTO words (words) VALUES ('delete-all')")
        self._memory.execute("BEGIN")
        self._memory.executemany("INSERT INTO words (rowid, title, text) VALUES (?, ?, ?)", rows)
        self._memory.execute("COMMIT")


def _packed(words: list[str], entries: Entries) -> Iterator[tuple[str, bytes]]:
    """words: of each row of the entries, equal ones beside each other."""
    start = 0
    for word, same in groupby(words):
        end = start + sum(1 for _ in same)
        yield _stored(word), entries[start:end].tobytes()
        start = end


def unpacked(data: bytes) -> Entries:
    """The entries of a word; what was packed apart may be joined."""
    return np.frombuffer(data, "<u4").reshape(-1, _WIDTH)


def _stored(word: str) -> str:
    """A word as a database keeps it, whose indexes take no long keys; a hash is no word, because of its #."""
    data = word.encode()
    return word if len(data) <= _LONGEST else "#" + hashlib.sha256(data).hexdigest()


def best(asked: Sequence[Entries], passages: int, words: int, count: int) -> list[tuple[int, float]]:
    """Ids and BM25 scores of the `count` best, the lowest id first among equals.

    asked: entries of each word of the question; passages, words: how many the index has in all.
    """
    if not asked or not words:
        return []
    parts = np.concatenate([_scores(entries, passages, words / passages) for entries in asked])
    numbers, at = np.unique(np.concatenate([entries[:, 0] for entries in asked]), return_inverse=True)
    scores = np.bincount(at, parts).astype(np.float64)  # adds in the question's order, as FTS5 does
    order = _largest(scores, count)
    return list(zip(numbers[order].tolist(), scores[order].tolist(), strict=True))


def _scores(entries: Entries, passages: int, average: float) -> NDArray[np.float64]:
    """What one word adds, with FTS5's own order of operations."""
    length, title, text = entries[:, 1:].astype(np.float64).T
    frequency = title * TITLE_WEIGHT + text
    idf = math.log((passages - len(entries) + 0.5) / (len(entries) + 0.5))
    saturated = (frequency * (_K1 + 1.0)) / (frequency + _K1 * (1 - _B + _B * length / average))
    return np.asarray((idf if idf > 0 else _LEAST_IDF) * saturated, np.float64)


def _largest(scores: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Where the `count` largest stand, in order; the first among equals first."""
    least = -np.partition(-scores, count - 1)[count - 1] if count < len(scores) else -math.inf
    chosen = np.flatnonzero(scores >= least)
    return chosen[np.argsort(-scores[chosen], kind="stable")][:count]
