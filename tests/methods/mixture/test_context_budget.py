"""Passages that do not fit the context of the model that reads them are left out, the last first."""

import math

import pytest

from antiphon.methods.mixture.context_budget import fitted, together
from antiphon.models.chat import prompt_ids
from antiphon.models.toy import named_toy
from antiphon.retrieval.context import Looked, context
from antiphon.retrieval.documents import Place
from antiphon.retrieval.index import Found
from antiphon.retrieval.passages import Passage
from antiphon.retrieval.weights import Scorer

TEXTS = ("the first passage " * 4, "the second passage " * 8, "the third one " * 30)
SCORES = (9.0, 5.0, 4.0)


def looked(*texts: str) -> Looked:
    found = tuple(Found(Passage("f", "", text, Place("line", 1, 1)), score) for text, score in zip(texts, SCORES, strict=False))
    scorer = Scorer("fixed", 8.0)
    return Looked(texts, scorer.log_weight([one.score for one in found]), found, scorer)


@pytest.mark.parametrize("count", range(4))
def test_as_many_as_fit_are_kept_and_weighed(count: int) -> None:
    model = named_toy("toy-cloud")
    lengths = [len(prompt_ids(model, context(TEXTS[:number], "who?", "question"), chat=False)) for number in range(4)]
    kept, ids = fitted(model, looked(*TEXTS), "who?", "question", False, lengths[count])
    assert (kept.passages, kept.left_out, len(ids)) == (TEXTS[:count], 3 - count, lengths[count])
    expected = math.log(sum(math.exp(score / 8) for score in SCORES[:count])) if count else -math.inf
    assert kept.log_mass == pytest.approx(expected)
    assert len(kept.found) == count


def test_what_is_nothing_is_given_back() -> None:
    model = named_toy("toy-cloud")
    kept, ids = fitted(model, looked(*TEXTS), "who? " * 50, "question", False, 10)
    assert (kept.passages, kept.left_out) == ((), 3)
    assert ids == prompt_ids(model, context((), "who? " * 50, "question"), chat=False)


def test_of_several_ends_the_last_of_each_go_first() -> None:
    model = named_toy("toy-cloud")
    own, others = ["own one", "own two"], ["other one", "other two"]
    whole = context([*others, *own], "who?", "question")
    for dropped in range(5):
        left = [(2, 2), (1, 2), (1, 1), (0, 1), (0, 0)][dropped]
        ids = prompt_ids(model, context([*others[: left[0]], *own[: left[1]]], "who?", "question"), chat=False)
        assert together(model, others, own, "who?", "question", False, len(ids)) == ids
    assert len(whole) > len(ids)
