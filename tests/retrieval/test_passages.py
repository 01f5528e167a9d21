"""Passages hold all of a text, are of the size asked for, and say where they came from."""

import re
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from antiphon.errors import UsageError
from antiphon.retrieval.documents import Document, Place, Scroll
from antiphon.retrieval.options import PassageOptions
from antiphon.retrieval.passages import cut, spans

WORDS = st.text("abcABC.,!?\"'", min_size=1, max_size=6)
GAPS = st.sampled_from([" ", "  ", "\n", ". ", ".\n", "\n\n", "! ", "\n \n\t", "。"])
TEXTS = st.lists(st.tuples(WORDS, GAPS), max_size=60).map(lambda parts: "".join(word + gap for word, gap in parts))
OPTIONS = st.integers(1, 20).flatmap(
    lambda words: st.builds(PassageOptions, words=st.just(words), overlap=st.integers(0, words // 2))
)


def count(text: str) -> int:
    """Words as the splitter counts them, where none is longer than 40 characters and 。 is part of one."""
    return len(re.findall(r"\S{1,40}", text))


@given(TEXTS, OPTIONS)
def test_passages_hold_every_character_in_order(text: str, options: PassageOptions) -> None:
    found = list(spans(text, options, options.whole))
    held = {at for start, end in found for at in range(start, end)}
    assert all(character.isspace() for at, character in enumerate(text) if at not in held)
    for before, after in pairwise(found):
        assert before[0] < after[0]
        assert before[1] < after[1]
    assert all(text[start:end] == text[start:end].strip() != "" for start, end in found)


@given(TEXTS.filter(lambda text: "。" not in text), OPTIONS)
def test_passages_are_of_the_size_asked_for(text: str, options: PassageOptions) -> None:
    found = list(spans(text, options, options.whole))
    assert all(count(text[start:end]) <= options.words for start, end in found[:-1])
    assert all(count(text[start:end]) <= options.whole for start, end in found)
    for (_, end), (start, _) in pairwise(found):
        assert count(text[start:end]) <= options.overlap


@given(TEXTS, OPTIONS)
@example("? ?\n?\n? ", PassageOptions(2, 0))
def test_a_passage_says_its_lines(text: str, options: PassageOptions) -> None:
    scroll = Scroll("line")
    for number, line in enumerate(text.split("\n"), 1):
        scroll.write(line + "\n", number)
    end = 0
    for passage in cut(scroll.document("t"), "p", options):
        at = text.index(passage.text, max(0, end - len(passage.text)))
        candidates = [found.start() for found in re.finditer(f"(?={re.escape(passage.text)})", text)]  # they may overlap
        places = [
            Place("line", text.count("\n", 0, at) + 1, text.count("\n", 0, at + len(passage.text)) + 1) for at in candidates
        ]
        assert passage.place in places
        end = at + len(passage.text)


def test_overlap_and_sentences() -> None:
    text = "One two three. Four five six. Seven eight nine. Ten eleven twelve. Last one here."
    found = [text[start:end] for start, end in spans(text, PassageOptions(6, 3), 6)]
    assert found == [
        "One two three. Four five six.",
        "Four five six. Seven eight nine.",
        "Seven eight nine. Ten eleven twelve.",
        "Ten eleven twelve. Last one here.",
    ]


def test_a_paragraph_is_kept_together_where_it_fits() -> None:
    text = "One two three four. Five six.\n\nSeven eight nine. Ten eleven twelve. " + "And so on. " * 5
    found = [text[start:end] for start, end in spans(text, PassageOptions(10, 0), 10)]
    assert found[0] == "One two three four. Five six."
    assert found[1].startswith("Seven eight nine.")


def test_a_passage_is_more_than_what_it_shares_with_the_one_before() -> None:
    text = "a b\n\nc d\n\ne f g h i j k l"
    found = [text[start:end] for start, end in spans(text, PassageOptions(4, 2), 4)]
    assert found == ["a b\n\nc d", "c d\n\ne f", "e f g h", "g h i j", "i j k l"]


def test_text_without_spaces_or_sentences_is_cut_too() -> None:
    assert len(list(spans("x" * 4000, PassageOptions(10, 0), 10))) == 10  # 100 words of 40 characters
    assert len(list(spans("雨" * 100, PassageOptions(10, 0), 10))) == 10


def test_short_texts_and_rows_stay_whole() -> None:
    text = "one two. " * 14
    assert len(list(cut(Document("t", text, "line"), "p", PassageOptions(20, 5)))) == 1
    row = "one two. " * 29
    assert len(list(cut(Document("t", row, "line"), "p", PassageOptions(20, 5)))) > 1
    (only,) = cut(Document("t", row, "row", numbers=(7,), key="k"), "p", PassageOptions(20, 5))
    assert (str(only.place), only.key, only.source) == ("row 7", "k", "p")


def test_many_dots_cost_no_more_than_many_letters() -> None:
    text = "." * 200_000 + "x"
    assert len(list(spans(text, PassageOptions(), 150))) > 1  # minutes, if each dot looked at all that follow


def test_what_no_database_takes_is_replaced() -> None:
    (only,) = cut(Document("a\x00b", "x\ud800y", "line", key="\udc80"), "p", PassageOptions())
    assert (only.title, only.text, only.key) == ("a\ufffdb", "x\ufffdy", "\ufffd")


@pytest.mark.parametrize(("words", "overlap"), [(0, 0), (2001, 0), (10, 6), (10, -1)])
def test_options_that_cannot_be(words: int, overlap: int) -> None:
    with pytest.raises(UsageError, match="must be"):
        PassageOptions(words, overlap)
