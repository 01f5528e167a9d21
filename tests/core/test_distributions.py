"""Logits to probabilities against a slow, plain reference."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.config import SamplingParams
from antiphon.core.distributions import one_hot, process, total_variation
from antiphon.errors import ModelError
from support.examples import examples

INF = float("inf")


def reference(logits: Sequence[float], params: SamplingParams, history: Sequence[int] = ()) -> list[float]:
    """METHODS 0 word for word: penalties, bias, temperature, top-k, top-p, min-p, renormalise."""
    scores = list(logits)
    for token, count in Counter(history).items():
        if scores[token] > 0:
            scores[token] /= params.repetition_penalty
        else:
            scores[token] *= params.repetition_penalty
        scores[token] = scores[token] - params.presence_penalty - params.frequency_penalty * count
    for token, bias in params.logit_bias:
        scores[token] += bias
    best = max(scores)
    if params.temperature == 0:
        return [1.0 if token == scores.index(best) else 0.0 for token in range(len(scores))]
    probs = normalised([math.exp((score - best) / params.temperature) for score in scores])
    ranking = sorted(range(len(probs)), key=lambda token: (-probs[token], token))
    if params.top_k:
        ranking = ranking[: params.top_k]
        probs = only(probs, ranking)
    if params.top_p < 1:
        mass, kept = 0.0, []
        for token in ranking:
            kept.append(token)
            mass += probs[token]
            if mass >= params.top_p:
                break
        probs = only(probs, kept)
    return only(probs, [token for token, prob in enumerate(probs) if prob >= params.min_p * max(probs)])


def only(probs: Sequence[float], kept: Sequence[int]) -> list[float]:
    return normalised([prob if token in kept else 0.0 for token, prob in enumerate(probs)])


def normalised(values: Sequence[float]) -> list[float]:
    return [value / sum(values) for value in values]


def float32(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


SCORES = float32(0.5, 2.0, -1.0, 2.0, 0.25, -3.0, 1.5)
HISTORY = (1, 2, 1, 4, 1)

ALONE = [
    SamplingParams(temperature=1.0, repetition_penalty=1.7),
    SamplingParams(temperature=1.0, presence_penalty=0.8),
    SamplingParams(temperature=1.0, presence_penalty=-0.8),
    SamplingParams(temperature=1.0, frequency_penalty=0.6),
    SamplingParams(temperature=1.0, logit_bias=((5, 4.0), (1, -2.0), (5, 0.5))),
    SamplingParams(temperature=0.0),
    SamplingParams(temperature=0.37),
    SamplingParams(temperature=1.9),
    SamplingParams(temperature=1.0, top_k=3),
    SamplingParams(temperature=1.0, top_p=0.613),
    SamplingParams(temperature=1.0, min_p=0.271),
]


@pytest.mark.parametrize("params", ALONE, ids=str)
def test_each_parameter_alone(params: SamplingParams) -> None:
    probs = process(SCORES, params, HISTORY)
    np.testing.assert_allclose(probs, reference(SCORES.tolist(), params, HISTORY), rtol=0, atol=1e-15)
    assert not np.allclose(probs, process(SCORES, SamplingParams(temperature=1.0)))


# Odd values, so that no cumulated probability falls on a border by rounding; the scores of a grid, so that there are ties.
PARAMS = st.builds(
    SamplingParams,
    repetition_penalty=st.sampled_from([1.0, 1.3137, 0.8]),
    presence_penalty=st.sampled_from([0.0, 0.7131, -0.3]),
    frequency_penalty=st.sampled_from([0.0, 0.2173, -0.4]),
    logit_bias=st.lists(st.tuples(st.integers(0, 5), st.sampled_from([-1e9, 1.25, -3.5])), max_size=3).map(tuple),
    temperature=st.sampled_from([0.0, 0.31, 1.0, 1.7]),
    top_k=st.integers(0, 8),
    top_p=st.sampled_from([1.0, 0.91377, 0.51713, 0.10019]),
    min_p=st.sampled_from([0.0, 0.0713, 0.6137, 1.0]),
)
LOGITS = st.lists(st.one_of(st.integers(-8, 8).map(lambda n: n / 2), st.just(-INF)), min_size=6, max_size=12).filter(
    lambda values: max(values) > -INF
)


@examples(100)
@given(logits=LOGITS, params=PARAMS, history=st.lists(st.integers(0, 5), max_size=8))
def test_all_parameters_together(logits: list[float], params: SamplingParams, history: list[int]) -> None:
    probs, expected = process(float32(*logits), params, history), np.array(reference(logits, params, history))
    assert probs.dtype == np.float64
    assert np.array_equal(probs > 0, expected > 0)
    np.testing.assert_allclose(probs, expected, rtol=0, atol=1e-14)
    assert probs.sum() == pytest.approx(1, abs=1e-14)


def test_the_order_of_operations() -> None:
    """Cases where any other order gives something else."""
    # Repetition before presence: 2 / 2 - 1 = 0, not (2 - 1) / 2.
    params = SamplingParams(temperature=1.0, repetition_penalty=2.0, presence_penalty=1.0)
    np.testing.assert_allclose(process(float32(2.0, 0.0), params, [0]), [0.5, 0.5])
    # Penalties before the bias: 2 / 2 - 1 = 0, not (2 - 1) / 2.
    params = SamplingParams(temperature=1.0, repetition_penalty=2.0, logit_bias=((0, -1.0),))
    np.testing.assert_allclose(process(float32(2.0, 0.0), params, [0]), [0.5, 0.5])
    # The bias before the temperature: (0 + ln 2) / 0.5 = ln 4.
    params = SamplingParams(temperature=0.5, logit_bias=((0, math.log(2)),))
    np.testing.assert_allclose(process(float32(0.0, 0.0), params), [0.8, 0.2])
    # The temperature before top-p: at 0.5 the first token has 0.64 / 0.74 of the mass.
    logits = np.log(float32(0.8, 0.3, 0.1))
    assert np.count_nonzero(process(logits, SamplingParams(temperature=0.5, top_p=0.8))) == 1
    assert np.count_nonzero(process(logits, SamplingParams(temperature=1.0, top_p=0.8))) == 2
    # Top-k before top-p: two of the three best have 0.79 of their mass; of all five, four would be needed.
    logits = np.log(float32(0.3, 0.26, 0.14, 0.15, 0.15))
    assert np.flatnonzero(process(logits, SamplingParams(temperature=1.0, top_k=3, top_p=0.75))).tolist() == [0, 1]
    # Top-p before min-p: two are needed for 0.55 of the whole mass; the first has 0.57 of what min-p would leave.
    logits = np.log(float32(0.4, 0.3, 0.2, 0.1))
    assert np.flatnonzero(process(logits, SamplingParams(temperature=1.0, top_p=0.55, min_p=0.6))).tolist() == [0, 1]


def test_greedy_is_one_hot_at_the_lowest_id_of_a_tie() -> None:
    assert process(float32(1, 3, 3, 2), SamplingParams(temperature=0)).tolist() == [0, 1, 0, 0]
    greedy = SamplingParams(temperature=0, top_k=2, top_p=0.1, min_p=1.0)
    assert process(float32(-INF, -5, -5), greedy).tolist() == [0, 1, 0]


def test_greedy_sees_penalties_and_biases() -> None:
    assert process(float32(3, 2), SamplingParams(temperature=0, presence_penalty=2.0), [0]).tolist() == [0, 1]
    assert process(float32(3, 2), SamplingParams(temperature=0, logit_bias=((0, -2.0),))).tolist() == [0, 1]


@pytest.mark.parametrize(("top_k", "kept"), [(1, [1]), (2, [1, 3]), (3, [0, 1, 3]), (4, [0, 1, 2, 3]), (9, [0, 1, 2, 3, 4])])
def test_top_k_keeps_the_lowest_ids_of_a_tie(top_k: int, kept: list[int]) -> None:
    probs = process(float32(1, 2, 1, 2, 1), SamplingParams(temperature=1.0, top_k=top_k))
    assert np.flatnonzero(probs).tolist() == kept


@pytest.mark.parametrize(
    ("top_p", "kept"), [(0.01, [2]), (0.4999, [2]), (0.5001, [0, 2]), (0.7499, [0, 2]), (0.76, [0, 1, 2]), (1.0, [0, 1, 2, 3])]
)
def test_top_p_is_the_smallest_set_with_that_mass(top_p: float, kept: list[int]) -> None:
    logits = np.log(float32(0.25, 0.125, 0.5, 0.125))
    probs = process(logits, SamplingParams(temperature=1.0, top_p=top_p))
    assert np.flatnonzero(probs).tolist() == kept


def test_top_p_breaks_ties_towards_the_lowest_id() -> None:
    probs = process(float32(0, 0, 0, 0), SamplingParams(temperature=1.0, top_p=0.4))
    assert probs.tolist() == [0.5, 0.5, 0, 0]


def test_min_p_is_relative_to_the_largest_and_includes_its_border() -> None:
    probs = process(float32(0, 0, -math.log(2) - 1e-3, -5), SamplingParams(temperature=1.0, min_p=0.5))
    assert probs.tolist() == [0.5, 0.5, 0, 0]
    assert process(float32(1, 1, 0), SamplingParams(temperature=1.0, min_p=1.0)).tolist() == [0.5, 0.5, 0]


def test_penalties_see_how_often_a_token_came() -> None:
    params = SamplingParams(temperature=1.0, frequency_penalty=math.log(2))
    for count in range(5):
        probs = process(float32(0, 0), params, [0] * count)
        assert probs[0] / probs[1] == pytest.approx(2.0**-count)
    presence = SamplingParams(temperature=1.0, presence_penalty=math.log(2))
    assert process(float32(0, 0), presence, [0] * 9)[0] == pytest.approx(1 / 3)


def test_a_repetition_penalty_lowers_negative_scores_too() -> None:
    params = SamplingParams(temperature=1.0, repetition_penalty=2.0)
    probs = process(float32(-1, -1), params, [0])
    assert probs[0] / probs[1] == pytest.approx(math.exp(-1))


def test_minus_infinity_is_a_score_like_any_other() -> None:
    every = SamplingParams(
        repetition_penalty=1.5, presence_penalty=1, frequency_penalty=1, logit_bias=((0, 5.0),), top_k=2, top_p=0.9, min_p=0.1
    )
    assert process(float32(-INF, 1, -INF), every, [0, 2]).tolist() == [0, 1, 0]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("logits", [(math.nan, 1), (1, math.nan), (INF, 1), (1, INF), (-INF, -INF), (math.nan, INF)])
def test_scores_that_are_none(logits: tuple[float, ...], temperature: float) -> None:
    with pytest.raises(ModelError, match="not finite"):
        process(float32(*logits), SamplingParams(temperature=temperature))


def test_absurd_parameters_overflow_quietly() -> None:
    """Each is within its bounds; none may warn, or give what is no distribution."""
    assert process(float32(1, 2, 2), SamplingParams(temperature=5e-324)).tolist() == [0, 0.5, 0.5]
    absurd = [
        SamplingParams(repetition_penalty=5e-324),
        SamplingParams(logit_bias=((0, 1.7e308), (0, 1.7e308))),
        SamplingParams(presence_penalty=1.7e308, frequency_penalty=-1.7e308),
    ]
    for params in absurd:
        with pytest.raises(ModelError, match="not finite"):
            process(float32(1, -INF, 3), params, [0, 0, 1, 1])


def test_the_input_stays_as_it_was() -> None:
    logits = float32(1, 2, 3)
    process(logits, SamplingParams(logit_bias=((0, 9.0),), presence_penalty=1.0), [1])
    assert logits.tolist() == [1, 2, 3]


def test_total_variation() -> None:
    assert total_variation(np.array([0.5, 0.5]), np.array([0.5, 0.5])) == 0
    assert total_variation(one_hot(0, 3), one_hot(2, 3)) == 1
    assert total_variation(np.array([0.75, 0.25]), np.array([0.25, 0.5, 0.25])) == 0.5
    assert total_variation(np.array([0.25, 0.5, 0.25]), np.array([0.75, 0.25])) == 0.5
