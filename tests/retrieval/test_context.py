"""What an end found, and the text that its model then reads."""

import math

import pytest

from antiphon.retrieval.context import Looked, context, look
from antiphon.retrieval.documents import Place
from antiphon.retrieval.index import Found
from antiphon.retrieval.passages import Passage
from antiphon.retrieval.weights import Scorer


class Fixed:
    """An index whose ranking is given: title, text, score."""

    def __init__(self, *rows: tuple[str, str, float], temperature: float = 1.0) -> None:
        self._rows = rows
        self.scorer = Scorer("fixed", temperature)
        self.asked: list[tuple[str, int]] = []

    def search(self, question: str, count: int) -> list[Found]:
        self.asked.append((question, count))
        return [Found(Passage("f", title, text, Place("line", 1, 1)), score) for title, text, score in self._rows[:count]]


def test_the_passages_in_front_of_the_question() -> None:
    assert context(["one", "two"], "who?", "question") == "one\n\ntwo\n\nQuestion: who?\nAnswer:"
    assert context(["one"], "once upon", "text") == "one\n\nonce upon"


@pytest.mark.parametrize(("form", "text"), [("question", "Question: who?\nAnswer:"), ("text", "who?")])
def test_without_passages_only_the_prompt(form: str, text: str) -> None:
    assert context([], "who?", form) == text


def test_a_text_to_go_on_with_is_read_as_it_is() -> None:
    """No space is cut off, at either end: the next token depends on it."""
    assert context(["one "], " once upon ", "text") == "one \n\n once upon "


def test_the_best_are_kept_and_weighed() -> None:
    index = Fixed(("", "one", 3.0), ("", "two", 1.0), ("", "three", 0.5), temperature=2.0)
    looked = look(index, "who?", 2)
    assert looked.passages == ("one", "two")
    assert looked.log_mass == pytest.approx(math.log(math.exp(1.5) + math.exp(0.5)))
    assert [(one.passage.text, one.score) for one in looked.found] == [("one", 3.0), ("two", 1.0)]
    assert index.asked == [("who?", 2)]


def test_nothing_found_weighs_nothing() -> None:
    assert look(Fixed(), "who?", 2) == Looked((), -math.inf, scorer=Scorer("fixed", 1.0))


@pytest.mark.parametrize(
    ("title", "text", "seen"),
    [
        ("", "Ada wrote it.", "Ada wrote it."),
        ("Ada", "She wrote it.", "Ada\nShe wrote it."),
        ("Ada", "Ada wrote it.", "Ada wrote it."),
        ("ada", "Ada wrote it.", "ada\nAda wrote it."),
    ],
)
def test_a_title_stands_before_its_text_once(title: str, text: str, seen: str) -> None:
    assert look(Fixed((title, text, 0.0)), "who?", 1).passages == (seen,)


def test_a_weight_that_no_number_holds_is_still_a_logarithm() -> None:
    assert look(Fixed(("", "one", 5000.0), ("", "two", 4000.0)), "who?", 2).log_mass == 5000.0
