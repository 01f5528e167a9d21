"""The dense token against its definition in logarithms, weights, and the certificate that needs no message."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.mixture.scores import SCORES, Values
from antiphon.core.mixture.weights import certain_alone, dense_token, mixed, strengths_of, strongest, weights_of
from antiphon.core.noise import Noise
from support.examples import examples


def distribution(seed: int, size: int, sharpness: float) -> Values:
    scores = sharpness * np.random.default_rng(seed).normal(size=size)
    probs = np.exp(scores - scores.max())
    return probs / probs.sum()


def noise_of(seed: int, size: int) -> Values:
    return -np.log(Noise(seed).uniform(0, np.arange(size, dtype=np.int32)))


SEEDS = st.integers(0, 2**32)


@examples(200)
@given(SEEDS, st.integers(2, 60), st.integers(1, 3), st.sampled_from([0.5, 2.0, 6.0]), st.booleans())
def test_the_dense_token_by_its_definition(seed: int, size: int, remotes: int, sharpness: float, sampled: bool) -> None:
    """arg-max of LSE(log pi + l) + g, where the best two are not within rounding of each other."""
    distributions = [distribution(seed + end, size, sharpness) for end in range(remotes + 1)]
    masses = np.random.default_rng(seed).normal(size=remotes + 1).tolist()
    noise = noise_of(seed, size) if sampled else None
    total = np.logaddexp.reduce(masses)
    scores = np.logaddexp.reduce([mass - total + np.log(probs) for mass, probs in zip(masses, distributions, strict=True)])
    if noise is not None:
        scores = scores - np.log(noise)
    second, first = np.sort(scores)[-2:]
    if first - second > 1e-9:
        assert dense_token(weights_of(masses), distributions, noise) == int(np.argmax(scores))


def test_the_lowest_of_equals_wins() -> None:
    assert dense_token([0.5, 0.5], [np.array([0.125, 0.25, 0.125, 0.5]), np.array([0.125, 0.5, 0.125, 0.25])]) == 1
    assert strongest([np.zeros(3)]) == 0


@pytest.mark.medium
def test_a_sampled_dense_token_has_the_distribution_of_the_mixture() -> None:
    from scipy.stats import chisquare

    distributions, weights = [distribution(1, 6, 1.0), distribution(2, 6, 1.0)], weights_of([0.0, -0.4])
    noise, ids = Noise(5), np.arange(6, dtype=np.int32)
    races = 20_000
    drawn = [dense_token(weights, distributions, -np.log(noise.uniform(position, ids))) for position in range(races)]
    expected = mixed(weights, distributions) * races
    assert chisquare(np.bincount(drawn, minlength=6), expected).pvalue > 1e-3


@pytest.mark.parametrize("masses", [[0.0], [0.0, 0.0], [-1e4, -1e4 + 1], [3.0, -math.inf], [1.0, 2.0, -math.inf, 0.5]])
def test_weights(masses: list[float]) -> None:
    largest = max(masses)
    shares = [math.exp(mass - largest) for mass in masses]
    assert weights_of(masses) == pytest.approx([share / sum(shares) for share in shares])


def test_an_end_that_is_missing_leaves_its_weight_to_the_rest() -> None:
    device, first, second = weights_of([0.3, 1.0, -0.5])
    assert weights_of([0.3, -0.5]) == pytest.approx([device / (1 - first), second / (1 - first)])


def test_weights_without_any_documents_are_equal() -> None:
    assert weights_of([-math.inf, -math.inf]) == [0.5, 0.5]


def test_a_tiny_weight_is_none() -> None:
    assert weights_of([0.0, -231.0]) == [1.0, 0.0]
    assert weights_of([0.0, -229.0])[1] > 1e-100


@pytest.mark.parametrize("mass", [math.nan, math.inf])
def test_weights_of_what_is_no_mass(mass: float) -> None:
    with pytest.raises(ValueError, match="must be a number"):
        weights_of([0.0, mass])


def test_the_mixed_distribution() -> None:
    assert mixed([0.25, 0.75], [np.array([1.0, 0.0]), np.array([0.2, 0.6])]) == pytest.approx([0.4 / 0.85, 0.45 / 0.85])


# What the device can know alone.


@examples(300)
@given(SEEDS, st.integers(1, 30), st.integers(1, 3), st.floats(-12, 3), st.booleans())
def test_a_token_that_is_certain_alone_wins_over_every_remote_distribution(
    seed: int, size: int, remotes: int, mass: float, sampled: bool
) -> None:
    """Point masses are the worst; also random distributions. And if it is not certain, some point mass beats it or draws."""
    weights = weights_of([0.0, *[mass] * remotes])
    local, noise = distribution(seed, size, 4.0), noise_of(seed, size) if sampled else None
    token = certain_alone(strengths_of(weights[0], local, noise), weights[1:], noise=noise)
    own = int(np.argmax(local if noise is None else local / noise))
    points = list(np.eye(size))
    decided = {dense_token(weights, [local, *[point] * remotes], noise) for point in points}
    if token is not None:
        assert decided == {token} == {own}
        codes = SCORES.codes(distribution(seed + 1, size, 2.0))
        assert dense_token(weights, [local, *[SCORES.values(codes)] * remotes], noise) == token
    else:
        others = [other for other in range(size) if other != own]
        assert any(_beats(weights, local, noise, other, own) for other in others)


def _beats(weights: list[float], local: Values, noise: Values | None, other: int, own: int) -> bool:
    point = np.eye(len(local))[other]
    parts = [
        strengths_of(weight, probs, noise)
        for weight, probs in zip(weights, [local] + [point] * (len(weights) - 1), strict=True)
    ]
    total = np.add.reduce(parts)
    return bool(total[other] >= total[own] * (1 - 1e-12))


def test_greedy_it_is_the_gap_against_the_remote_weight() -> None:
    local = np.array([0.1, 0.7, 0.2])
    for weight in (0.66, 0.67):  # 2/3 (0.7 - 0.2) = 1/3
        certain = certain_alone(strengths_of(weight, local), [1 - weight])
        assert certain == (1 if weight * 0.5 > 1 - weight else None)
    assert certain_alone(strengths_of(0.6, local), [0.4]) is None
    assert certain_alone(strengths_of(0.6, local), [0.4], kappa=0.5) == 1
    assert certain_alone(strengths_of(0.5, np.array([0.75, 0.25])), [0.25]) is None, "equal is not enough"


@pytest.mark.core(1)
@pytest.mark.parametrize("mass", [-3.0, -1.0])
def test_how_often_a_sampled_token_is_certain_alone(mass: float) -> None:
    weights = weights_of([0.0, mass])
    local, noise, ids, races = distribution(3, 5, 1.0), Noise(8), np.arange(5, dtype=np.int32), 8000
    passed = 0
    for position in range(races):
        times = -np.log(noise.uniform(position, ids))
        passed += certain_alone(strengths_of(weights[0], local, times), weights[1:], noise=times) is not None
    expected = weights[0] / (weights[0] + 4 * weights[1])
    assert passed / races == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / races))
