"""BM25 outside of SQLite against FTS5's own, to the last bit."""

import sqlite3
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.retrieval.postings import Tokenizer, best, unpacked
from antiphon.retrieval.words import TITLE_WEIGHT, TOKENIZER, expression, indexed

WORDS = st.sampled_from(["run", "running", "Runs", "café", "cafe\u0301", "雨", "the", "x_y", "U.S.", "naïve", "größe", "1,000"])
TEXTS = st.lists(WORDS, max_size=8).map(" ".join) | st.text(max_size=20).filter(lambda text: "\x00" not in text)
PASSAGES = st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=12)


def by_sqlite(passages: Sequence[tuple[str, str]], question: str, count: int) -> list[tuple[int, float]]:
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE VIRTUAL TABLE words USING fts5 (title, text, content='', tokenize='{TOKENIZER}')")
    connection.execute(f"INSERT INTO words (words, rank) VALUES ('rank', 'bm25({TITLE_WEIGHT}, 1.0)')")
    rows = [(number, indexed(title), indexed(text)) for number, (title, text) in enumerate(passages, 5)]
    connection.executemany("INSERT INTO words (rowid, title, text) VALUES (?, ?, ?)", rows)
    statement = "SELECT rowid, -rank FROM words WHERE words MATCH ? ORDER BY rank, rowid LIMIT ?"
    wanted = expression(question)
    return connection.execute(statement, (wanted, count)).fetchall() if wanted else []


def by_counts(passages: Sequence[tuple[str, str]], question: str, count: int) -> list[tuple[int, float]]:
    tokenizer = Tokenizer()
    words, postings = tokenizer.count(passages, 5)
    found = {term: unpacked(data) for term, data in postings}
    assert len(found) == len(postings)
    return best([found[term] for term in tokenizer.stems(question) if term in found], len(passages), words, count)


@given(PASSAGES, TEXTS, st.integers(1, 15))
def test_the_same_passages_with_the_same_scores(passages: list[tuple[str, str]], question: str, count: int) -> None:
    assert by_counts(passages, question, count) == by_sqlite(passages, question, count)


def test_batches_may_be_counted_apart() -> None:
    passages = [("title", f"lion {'tiger ' * (number % 3)} w{number}") for number in range(30)]
    tokenizer = Tokenizer()
    counted = [tokenizer.count(passages[first : first + 10], 5 + first) for first in (0, 10, 20)]
    joined: dict[str, bytes] = {}
    for _, postings in counted:
        for term, data in postings:
            joined[term] = joined.get(term, b"") + data
    asked = [unpacked(joined[term]) for term in tokenizer.stems("tiger lion tigers")]
    assert best(asked, 30, sum(words for words, _ in counted), 9) == by_sqlite(passages, "tiger lion tigers", 9)


def test_words_too_long_for_an_index_are_found_by_their_hash() -> None:
    long, longer = "z" * 5000, "z" * 40_000
    tokenizer = Tokenizer()
    _, postings = tokenizer.count([(long, longer), ("", "short")], 1)
    assert all(len(term) < 100 for term, _ in postings)
    assert [term in dict(postings) for term in tokenizer.stems(f"{long} short {long}x")] == [True, True, False]
    passages = [(long, "x"), ("a", "b"), ("é" * 20_001, "x")]
    for question in (long, "é" * 20_001):
        assert by_counts(passages, question, 3) == by_sqlite(passages, question, 3) != []


def test_what_is_nothing() -> None:
    tokenizer = Tokenizer()
    assert tokenizer.count([("", ""), (" ", "...")], 1) == (0, [])
    assert tokenizer.count([], 1) == (0, [])
    assert tokenizer.stems("?!") == []
    assert best([], 3, 10, 5) == []
    tokenizer.close()


@pytest.mark.parametrize("letter", ["\u19b0", "\u1cf2"])
def test_a_phrase_is_looked_for_as_its_words(letter: str) -> None:
    """What the module says of the letters that FTS5 does not know: the same passage, another score."""
    passages = [("t", f"qa{letter}bz"), ("t", "bz qa"), ("t", "x"), ("t", "y"), ("t", "z")]
    found = by_counts(passages, f"qa{letter}bz", 9)
    assert [number for number, _ in found] == [5, 6]
    assert [number for number, _ in by_sqlite(passages, f"qa{letter}bz", 9)] in ([5], [5, 6])


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.integers(1, 50))
def test_the_lowest_id_is_first_among_equals(frequencies: list[int], count: int) -> None:
    rows = [(number, 10, 0, frequency) for number, frequency in enumerate(frequencies) if frequency]
    entries = np.array(rows, np.uint32).reshape(-1, 4)
    found = best([entries], len(frequencies) + 1, 10 * len(frequencies) + 10, count)
    expected = sorted(rows, key=lambda row: (-row[3], row[0]))[:count]
    assert [number for number, _ in found] == [row[0] for row in expected]
