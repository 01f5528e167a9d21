"""The weight of an end (METHODS 4), and what makes scores comparable."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.retrieval import postings, words
from antiphon.retrieval.fusion import CONSTANT, fused
from antiphon.retrieval.weights import Scorer, bm25_scorer, cosine_scorer, log_weight

SCORES = st.lists(st.floats(-50, 50), min_size=1, max_size=8)


@given(SCORES, st.floats(0.5, 100))
def test_log_weight_is_the_log_of_the_sum(scores: list[float], temperature: float) -> None:
    plain = math.log(math.fsum(math.exp(score / temperature) for score in scores))
    assert log_weight(scores, temperature) == pytest.approx(plain, rel=1e-12, abs=1e-12)
    assert log_weight([score + temperature for score in scores], temperature) == pytest.approx(plain + 1, rel=1e-9, abs=1e-9)


def test_weights_at_the_edges() -> None:
    assert log_weight([], 8.0) == -math.inf
    assert log_weight([1e6], 1e-3) == 1e9  # exp of it is no float
    with pytest.raises(ValueError, match="above 0"):
        log_weight([1.0], 0.0)


def test_one_of_two_ends_with_equal_scores_has_half_the_weight() -> None:
    device, cloud = (Scorer("x", 8.0).log_weight([12.0, 3.0]) for _ in range(2))
    assert 1 / (1 + math.exp(cloud - device)) == 0.5


def test_a_scorer_is_named_with_everything_that_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [bm25_scorer(True, None), bm25_scorer(False, None), bm25_scorer(True, 7.9), cosine_scorer("a", None)]
    names += [cosine_scorer("b", None), cosine_scorer("a", 0.30000000000000004)]
    assert names[0].temperature == 8.0
    monkeypatch.setattr(words, "STOP_WORDS", frozenset(["the"]))
    names.append(bm25_scorer(True, None))
    monkeypatch.setattr(words, "TITLE_WEIGHT", 3.0)
    names.append(bm25_scorer(True, None))
    monkeypatch.setattr(postings, "BACKGROUND", 3)
    names.append(bm25_scorer(True, None))
    assert len({scorer.scorer_id for scorer in names}) == len(names)


def test_the_scorer_of_this_version() -> None:
    """Changing it keeps older ends from working with this one: do it on purpose."""
    assert bm25_scorer(True, None).scorer_id == (
        "bm25 scaled=5.5 k1=1.2 b=0.75 enough=0.6 background=100x100 title=2.0 parts=0.3 words=2 stop=5594221f; temperature=8.0"
    )


@given(st.lists(st.lists(st.integers(0, 20), unique=True, max_size=15), max_size=3))
def test_fusion_adds_reciprocal_ranks(rankings: list[list[int]]) -> None:
    totals = {
        item: sum(1 / (CONSTANT + ranking.index(item) + 1) for ranking in rankings if item in ranking)
        for item in {item for ranking in rankings for item in ranking}
    }
    found = fused(rankings)
    assert sorted(found) == sorted(totals)
    assert all(totals[better] >= totals[worse] - 1e-15 for better, worse in pairwise(found))


def test_fusion_of_two() -> None:
    assert CONSTANT == 60
    assert fused([[1, 2, 3], [4, 5, 3]]) == [3, 1, 4, 2, 5]  # two middling ranks are better than one best
    assert fused([[7], [5]]) == [5, 7]
