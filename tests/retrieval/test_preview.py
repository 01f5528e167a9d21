"""Which part of a passage is shown, and what of it is marked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.retrieval.preview import preview_of
from antiphon.retrieval.words import Words

WORDS = Words()


def marked(text: str, question: str, length: int = 300) -> tuple[str, list[str]]:
    preview = preview_of(text, WORDS.asked(question), WORDS, length)
    return preview.text, [preview.text[first:last] for first, last in preview.marked]


@pytest.mark.parametrize(
    ("text", "question", "found"),
    [
        ("The mills burned in 1911.", "when did the mill burn", ["mills", "burned"]),
        ("İstanbul limanı büyük", "istanbul", ["İstanbul"]),
        ("東京に雨が降る", "雨", ["雨"]),
        ("Nothing\n\nof  it", "otter", []),
    ],
)
def test_words_are_marked(text: str, question: str, found: list[str]) -> None:
    assert marked(text, question) == (" ".join(text.split()), found)


def test_the_densest_place_is_shown() -> None:
    text = "mill " + "filler words here " * 60 + "the old mill burned down " + "and so on " * 60
    preview, found = marked(text, "when did the old mill burn down", 120)
    assert found == ["old", "mill", "burned"]
    assert preview.startswith("... ")
    assert preview.endswith(" ...")


@given(st.text(max_size=400), st.text(max_size=40), st.integers(20, 200))
def test_a_preview_is_a_part_of_the_text_on_one_line(text: str, question: str, length: int) -> None:
    preview, _ = marked(text, question, length)
    assert preview.removeprefix("... ").removesuffix(" ...") in " ".join(text.split())
    assert len(preview) <= length + 8
