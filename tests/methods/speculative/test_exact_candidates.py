"""Server resampling on any pair of models: the joint probs is the target's, whatever the numbers of candidates and bits."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from antiphon.config import SamplingParams
from antiphon.core.resampling import quantise_lumped
from antiphon.core.rounding import ratios_of
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.testing.distributions import LARGE, SHARED, SMALL, Pair, distance, method_distribution, target_distribution
from support.examples import examples

VOCABULARIES = [
    (SHARED, SHARED),
    (SMALL, LARGE),
    ((b"a", b""), (b"a", b"b", b"c", b"")),
    ((b"a", b"b", b""), (b"a", b"b", b"")),
]
SHAPES = [(1, 1, 1), (1, 1, 2), (1, 2, 1), (2, 1, 1), (2, 1, 2), (1, 0, 1), (2, 0, 2)]
"""Drafts, candidates (0: as many as cost least), messages of them: those whose branches can all be followed in time."""


def error(pair: Pair, sampling: SamplingParams, given_options: dict[str, int], tokens: int = 2) -> float:
    method = WITHOUT_DOCUMENTS["xcosd-e"]
    options = method.options_from(given_options)
    distribution = method_distribution(pair, method, options, sampling, tokens)
    assert sum(distribution.values()) == pytest.approx(1, abs=1e-12)
    rounded = quantise_lumped(pair.common.size, ratios_of(options.precision))
    return distance(distribution, target_distribution(pair, sampling, tokens, rounded))


@examples(60)
@pytest.mark.slow
@given(
    seed=st.integers(0, 10_000),
    vocabularies=st.sampled_from(VOCABULARIES),
    sharpness=st.sampled_from([0.3, 1.0, 4.0]),
    temperature=st.sampled_from([0.0, 0.3, 1.0, 2.0]),
    top_k=st.sampled_from([0, 1, 2, 3]),
    penalty=st.sampled_from([0.0, 1.0]),
    shape=st.sampled_from(SHAPES),
    bits=st.tuples(st.sampled_from([16, 32]), st.sampled_from([16, 32])),
)
@example(5, VOCABULARIES[1], 1.0, 1.0, 0, 0.0, (2, 1, 2), (16, 32))
@example(5, VOCABULARIES[1], 1.0, 1.0, 0, 0.0, (1, 2, 1), (32, 16))
def test_any_models_sampling_and_numbers(
    seed: int,
    vocabularies: tuple,
    sharpness: float,
    temperature: float,
    top_k: int,
    penalty: float,
    shape: tuple[int, int, int],
    bits: tuple[int, int],
) -> None:
    pair = Pair(*vocabularies, seed=3 * seed, sharpness=sharpness)
    sampling = SamplingParams(temperature=temperature, top_k=top_k, presence_penalty=penalty)
    options = {"draft_length": shape[0], "candidates": shape[1], "iterations": shape[2]}
    assert error(pair, sampling, {**options, "draft_precision": bits[0], "precision": bits[1]}) < 1e-12


@examples(10)
@given(seed=st.integers(0, 10_000), bits=st.sampled_from([16, 32]))
def test_two_candidates_twice(seed: int, bits: int) -> None:
    """The most branches: the second list comes from the same target, with the rejected draft still left out."""
    pair = Pair(SMALL, LARGE, seed=3 * seed)
    options = {"draft_length": 1, "candidates": 2, "iterations": 2, "draft_precision": bits, "precision": bits}
    assert error(pair, SamplingParams(temperature=1.0, top_k=2), options) < 1e-12
