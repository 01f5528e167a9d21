"""BM25 over counted words: against the formula written out, and what one more passage does."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.retrieval.postings import (
    BACKGROUND,
    ENOUGH,
    LARGEST_IDF,
    Counted,
    Entries,
    Totals,
    beginning,
    best,
    counted,
    joined,
    stored,
    unpacked,
)
from antiphon.retrieval.weights import log_weight
from antiphon.retrieval.words import BEGINNING, PART, PART_WEIGHT, TITLE_WEIGHT, Words

WORDS = st.sampled_from(["run", "running", "Runs", "café", "cafe\u0301", "雨", "the", "x_y", "U.S.", "naïve", "größe", "1,000"])
TEXTS = st.lists(WORDS, max_size=8).map(" ".join) | st.text(max_size=20).filter(lambda text: "\x00" not in text)
PASSAGES = st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=12)
TAKER = Words()


def looked_up(postings: dict[str, Entries], asked: Sequence[str]) -> dict[str, Entries]:
    """As an index does."""
    found = {}
    for word in asked:
        if between := beginning(word):
            data = [entries.tobytes() for term, entries in postings.items() if between[0] <= term < between[1]]
            found |= {word: joined(data)} if data else {}
        elif word in postings:
            found[word] = postings[word]
    return found


def by_counts(passages: Sequence[tuple[str, str]], question: str, count: int = 99) -> list[tuple[int, float]]:
    rows = counted(TAKER, [(number, *passage) for number, passage in enumerate(passages, 5)])
    postings = {term: unpacked(data) for term, data in zip(rows.words, rows.entries, strict=True)}
    assert len(postings) == len(rows.words)
    assert list(postings) == sorted(postings)
    asked = [stored(word) for word in TAKER.asked(question)]
    return best(asked, looked_up(postings, asked), Totals(len(passages), sum(rows.lengths)), count, scaled=True)


def words_of(text: str) -> list[str]:
    found = TAKER.of([text])
    return [TAKER.names[number] for number in found.numbers]


def by_the_formula(passages: Sequence[tuple[str, str]], question: str) -> dict[int, float]:
    """Word by word and passage by passage, as the module's first lines say it."""
    texts = [(Counter(words_of(title)), Counter(words_of(text))) for title, text in passages]
    asked = TAKER.asked(question)
    shares = {word: PART_WEIGHT if word[0] in (PART, BEGINNING) else 1.0 for word in asked}

    def times(counter: Counter[str], word: str) -> int:
        if word.startswith(BEGINNING):
            return sum(number for other, number in counter.items() if other.startswith(word[1:]))
        return counter[word]

    has = [{word for word in asked if times(title, word) + times(text, word)} for title, text in texts]
    whole = {word: 0.0 if word.startswith(BEGINNING) else share for word, share in shares.items()}
    about = [sum(whole[word] for word in found) >= ENOUGH * sum(whole.values()) - 1e-9 for found in has]
    lengths = [title.total() + text.total() for title, text in texts]
    others = len(passages) - sum(about)
    average = (sum(length for length, one in zip(lengths, about, strict=True) if not one) + 100) / (others + 1)
    scale = LARGEST_IDF / math.log(1 + (others + BACKGROUND + 0.5) / 0.5)
    scores = {}
    for number, (title, text) in enumerate(texts):
        score = 0.0
        for word in has[number]:
            having = sum(word in found and not one for found, one in zip(has, about, strict=True))
            idf = math.log(1 + (others + BACKGROUND - having + 0.5) / (having + 0.5))
            frequency = TITLE_WEIGHT * times(title, word) + times(text, word)
            saturated = frequency * 2.2 / (frequency + 1.2 * (0.25 + 0.75 * lengths[number] / average))
            score += scale * shares[word] * idf * saturated
        if has[number]:
            scores[number + 5] = score
    return scores


@given(PASSAGES, TEXTS)
def test_the_scores_are_those_of_the_formula(passages: list[tuple[str, str]], question: str) -> None:
    found = dict(by_counts(passages, question))
    expected = by_the_formula(passages, question)
    assert found.keys() == expected.keys()
    assert all(found[number] == pytest.approx(expected[number], rel=1e-9) for number in found)
    assert all(score > 0 for score in found.values())


FEW = st.sampled_from(["mill", "burn", "village", "river", "old", "grind", "lake", "wheel"])
NOTES = st.lists(st.lists(FEW, min_size=1, max_size=12).map(" ".join), max_size=8)
QUESTIONS = st.lists(FEW, min_size=1, max_size=5, unique=True).map(" ".join)


@given(NOTES, QUESTIONS, st.integers(0, 3), st.randoms(), st.integers(1, 3))
def test_one_more_passage_about_the_question_never_lowers_a_weight(
    notes: list[str], question: str, left_out: int, chance: object, kept: int
) -> None:
    asked = question.split()
    left = asked[: max(math.ceil(0.6 * len(asked)), len(asked) - left_out)]
    more = " ".join(chance.choices(left, k=len(left)) + left)  # at least ENOUGH of the words, in any order and number

    def weight(texts: list[str]) -> float:
        return log_weight([score for _, score in by_counts([("t", text) for text in texts], question, kept)], 8.0)

    assert weight([*notes, more]) >= weight(notes) - 1e-12


MILL = [
    "The old mill in our village burned down in 1911.",
    "The mill stood by the river and ground rye.",
    "My grandfather was the last miller of the mill.",
    "Today the mill is a museum with a small cafe.",
    "The wheel of the mill was made of oak.",
    "Children swim in the pond behind the mill.",
]


@pytest.mark.parametrize("number", range(1, 7))
def test_notes_that_are_all_about_one_thing(number: int) -> None:
    found = by_counts([("notes", text) for text in MILL[:number]], "when did the old mill burn down?")
    assert found[0][0] == 5
    assert found[0][1] > 15  # of which a word gives at most 12
    assert all(score > 2 for _, score in found)


def test_batches_may_be_counted_apart() -> None:
    passages = [(number, "title", f"lion {'tiger ' * (number % 3)} w{number}") for number in range(30)]
    parts: list[Counted] = [counted(TAKER, passages[first : first + 10]) for first in (0, 10, 20)]
    whole, together = counted(TAKER, passages), {}
    for part in parts:
        for term, data in zip(part.words, part.entries, strict=True):
            together[term] = together.get(term, b"") + data
    assert together == dict(zip(whole.words, whole.entries, strict=True))
    assert [length for part in parts for length in part.lengths] == whole.lengths


def test_words_too_long_for_an_index_are_found_by_their_hash() -> None:
    long, longer = "z" * 5000, "z" * 40_000
    assert [number for number, _ in by_counts([(long, longer), ("", "short")], f"{long}")] == [5]
    assert [number for number, _ in by_counts([("a", "b"), ("é" * 20_001, "x")], "é" * 20_001)] == [6]
    assert all(len(term) < 210 for term in counted(TAKER, [(1, long, longer)]).words)


def test_what_is_counted_too_often_for_its_place() -> None:
    rows = counted(TAKER, [(7, "x " * 300, "x " * 70_000)])
    assert rows.words == ["x"]
    (entry,) = unpacked(rows.entries[0])
    assert tuple(entry) == (7, 0xFFFF, 0xFF, 0xFF)


def test_what_is_nothing() -> None:
    assert counted(TAKER, [(1, "", ""), (2, " ", "...")]) == Counted([0, 0], [], [])
    assert counted(TAKER, []) == Counted([], [], [])
    assert best([], {}, Totals(3, 10), 5, scaled=True) == []
    assert best(["x"], {}, Totals(0, 0), 5, scaled=True) == []


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.integers(1, 50))
def test_the_lowest_id_is_first_among_equals(frequencies: list[int], count: int) -> None:
    passages = [("", f"y{' x' * number}{' z' * (5 - number)}") for number in frequencies]
    found = by_counts(passages, "x", count)
    expected = sorted((-number, at) for at, number in enumerate(frequencies, 5) if number)[:count]
    assert [number for number, _ in found] == [at for _, at in expected]
    assert np.all(np.diff([score for _, score in found]) <= 0)
