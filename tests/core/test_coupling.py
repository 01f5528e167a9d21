"""Noise that both ends know: the same numbers everywhere and always, races with the right winners."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.core.chance import PhiloxChance, Role
from antiphon.core.coupling import ROLE, Noise
from antiphon.core.distributions import Probs, one_hot


def plain(seed: int, position: int, probs: Probs, count: int) -> list[int]:
    """A race by its definition, every time computed."""
    times = np.full(len(probs), np.inf)
    able = probs > 0
    times[able] = -np.log(Noise(seed).uniform(position, len(probs))[able]) / probs[able]
    return np.argsort(times, kind="stable")[: min(count, int(able.sum()))].tolist()


def law(seed: int, size: int, sharpness: float) -> Probs:
    probs = np.exp(sharpness * np.random.default_rng(seed).normal(size=size))
    return probs / probs.sum()


def test_known_answers() -> None:
    """Never to be changed: an old peer has this noise. Philox4x64-10, key (seed, 7), counter (block, 0, position, 0)."""
    for seed, position in ((0, 0), (1, 0), (1, 5), (2**64 - 1, 4095)):
        generator = np.random.Philox(key=np.array([seed, 7], dtype=np.uint64), counter=np.array([0, 0, position, 0], np.uint64))
        raw = [int(number) for number in generator.random_raw(9)]
        expected = [((number >> 12) + 0.5) / 2**52 for number in raw]
        assert Noise(seed).uniform(position, 9).tolist() == expected
    assert [round(float(u), 12) for u in Noise(1).uniform(0, 5)] == KNOWN


KNOWN = [0.92149173449, 0.031755249184, 0.017872108295, 0.279278843323, 0.096240086498]


def test_the_key_is_no_stream_of_chance() -> None:
    assert ROLE not in set(Role)


def test_numbers_lie_strictly_between_0_and_1() -> None:
    for raw in (0, 2**64 - 1):
        uniform = ((raw >> 12) + 0.5) * 2.0**-52
        assert 0 < uniform < 1
        assert 0 < -np.log(uniform) < 37


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**64 - 1), st.integers(0, 5000), st.integers(1, 40), st.sampled_from([0.0, 1.0, 6.0]), st.integers(1, 6))
def test_the_first_of_a_race(seed: int, position: int, size: int, sharpness: float, count: int) -> None:
    probs = law(seed % 1000, size, sharpness)
    probs[::3] = 0.0
    if not probs.any():
        probs = one_hot(0, size)
    race = PhiloxChance(seed).race(position)
    assert race.first(probs, count) == plain(seed, position, probs, count)
    assert race.winner(probs) == plain(seed, position, probs, 1)[0]


@pytest.mark.parametrize("sharpness", [0.5, 3.0, 12.0])
def test_a_vocabulary_as_large_as_a_real_one(sharpness: float) -> None:
    """Only what can win is computed; the winners are those of the whole race."""
    probs = law(3, 262_144, sharpness)
    for position in range(12):
        assert PhiloxChance(9).race(position).first(probs, 4) == plain(9, position, probs, 4)


def test_any_race_can_be_run_again_in_any_order() -> None:
    probs, chance = law(1, 50, 1.0), PhiloxChance(4)
    winners = [chance.race(position).winner(probs) for position in range(40)]
    chance.at(3, Role.DRAFT).categorical(probs)
    assert [chance.race(position).winner(probs) for position in reversed(range(40))] == winners[::-1]
    assert [PhiloxChance(4).race(position).winner(probs) for position in range(40)] == winners
    assert len(set(winners)) > 5


def test_a_token_wins_as_often_as_its_probability() -> None:
    from scipy.stats import chisquare

    probs = np.array([0.5, 0.25, 0.15, 0.07, 0.03])
    counts = np.bincount([PhiloxChance(seed).race(seed % 7).winner(probs) for seed in range(4000)], minlength=5)
    assert chisquare(counts, 4000 * probs).pvalue > 1e-3
    assert chisquare(counts, 4000 * np.array([0.47, 0.27, 0.16, 0.07, 0.03])).pvalue < 1e-3


def test_two_laws_share_their_winner_as_often_as_promised() -> None:
    """At least (1 - TV) / (1 + TV), METHODS 3."""
    first, second = law(1, 30, 1.0), law(2, 30, 1.0)
    variation = np.abs(first - second).sum() / 2
    chances = [PhiloxChance(seed).race(0) for seed in range(3000)]
    share = np.mean([race.winner(first) == race.winner(second) for race in chances])
    assert share > (1 - variation) / (1 + variation) - 0.03
