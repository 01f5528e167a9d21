"""Races over the tokens: the winners are those of the distribution, whichever tokens are asked about."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.chance import PhiloxChance, Place, Role
from antiphon.core.distributions import Ids, Probs, one_hot
from antiphon.core.noise import Noise
from core.noise_samples import KEYS, MASK, POSITIONS, numbers
from support.examples import examples


def plain(key: int, position: int, probs: Probs, ids: Ids, count: int) -> list[int]:
    """A race by its definition, every time computed."""
    able = np.flatnonzero(probs)
    with np.errstate(over="ignore"):
        times = -np.log(Noise(key).uniform(position, ids)[able]) / probs[able]
    return able[np.argsort(times, kind="stable")[:count]].tolist()


def distribution(seed: int, size: int, sharpness: float) -> Probs:
    scores = sharpness * np.random.default_rng(seed).normal(size=size)
    probs = np.exp(scores - scores.max())
    return probs / probs.sum()


@examples(60)
@given(KEYS, POSITIONS, st.integers(1, 40), st.sampled_from([0.0, 1.0, 6.0, 200.0]), st.integers(1, 6), st.integers(0, 2**20))
def test_the_first_of_a_race(key: int, position: int, size: int, sharpness: float, count: int, first: int) -> None:
    probs, ids = distribution(key % 1000, size, sharpness), numbers(size, first)
    probs[::3] = 0.0
    if not probs.any():
        probs = one_hot(0, size)
    race = PhiloxChance(key).race(position, ids)
    assert race.first(probs, count) == plain(key, position, probs, ids, count)
    assert race.winner(probs) == plain(key, position, probs, ids, 1)[0]


@pytest.mark.medium
@pytest.mark.parametrize("sharpness", [0.0, 0.5, 3.0, 12.0, 40.0])
def test_a_vocabulary_as_large_as_a_real_one(sharpness: float) -> None:
    """Only what can win is computed; the winners are those of the whole race."""
    probs, ids = distribution(3, 262_144, sharpness), numbers(262_144)
    for position in range(12):
        for count in (1, 4):
            assert PhiloxChance(9).race(position, ids).first(probs, count) == plain(9, position, probs, ids, count)


@pytest.mark.parametrize("able", [0, 1, 3, 63, 64, 65, 200])
def test_a_few_of_many(able: int) -> None:
    """Where hardly any token is possible there is no bound to find; one of 4096, at temperature 0, to more than are few."""
    probs, ids = np.zeros(4096), numbers(4096)
    probs[np.random.default_rng(able).permutation(4096)[: max(1, able)]] = 1 / max(1, able)
    for position in range(20):
        race = PhiloxChance(5).race(position, ids)
        for count in (1, 4):
            assert race.first(probs, count) == plain(5, position, probs, ids, count)


@pytest.mark.parametrize("likely", [0.1, 0.3, 0.6])
def test_the_unlikely_are_not_left_out(likely: float) -> None:
    """One likely token and a hundred of which each is not, but of which one often wins, and often by a hair."""
    probs, ids = np.full(101, (1 - likely) / 100), numbers(101)
    probs[40] = likely
    for position in range(300):
        race = PhiloxChance(6).race(position, ids)
        for count in (1, 2, 5):
            assert race.first(probs, count) == plain(6, position, probs, ids, count)


def test_the_fastest_of_all_has_to_be_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each u is as large as can be: no bound leaves anyone out, and who has a probability of 0 cannot win all the same."""
    monkeypatch.setattr("antiphon.core.noise._mixed", lambda ids, first, second: np.full(len(ids), MASK, dtype=np.uint32))
    probs = np.array([0.0, 0.25, 0.0, 0.75])
    assert PhiloxChance(1).race(0, numbers(4)).first(probs, 3) == [3, 1]
    assert PhiloxChance(1).race(0, numbers(4)).winner(probs) == 3


@examples(60)
@given(KEYS, POSITIONS, st.integers(2, 60), st.randoms())
def test_the_order_of_the_tokens_is_nothing(key: int, position: int, size: int, source: object) -> None:
    """Two devices number the cloud's tokens in other ways, and one lacks some: whoever wins is the same token."""
    probs, ids = distribution(key % 1000, size, 2.0), numbers(size)
    order = np.array(source.sample(range(size), size))  # type: ignore[attr-defined]
    one = ids[PhiloxChance(key).race(position, ids).first(probs, 5)].tolist()
    assert ids[order][PhiloxChance(key).race(position, ids[order]).first(probs[order], 5)].tolist() == one
    fewer = order[order != one[0]]
    assert ids[fewer][PhiloxChance(key).race(position, ids[fewer]).first(probs[fewer], 4)].tolist() == one[1:]


def test_of_equals_the_lower_id_is_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon.core.noise._mixed", lambda ids, first, second: np.full(len(ids), 77, dtype=np.uint32))
    probs, ids = np.full(6, 1 / 6), np.array([5, 3, 9, 0, 4, 8], dtype=np.int32)
    assert ids[PhiloxChance(1).race(0, ids).first(probs, 4)].tolist() == [0, 3, 4, 5]


def test_probabilities_beyond_all_bounds() -> None:
    """So small that a time is infinite: such a token comes last, and loses to no one who cannot win."""
    probs = np.array([0.0, 5e-324, 1.0, 0.0, 1e-320])
    race = PhiloxChance(3).race(0, numbers(5))
    assert race.first(probs, 4)[0] == 2
    assert sorted(race.first(probs, 4)) == [1, 2, 4]
    assert sorted(race.first(np.array([5e-324, 0.0, 5e-324]), 2)) == [0, 2]


def test_any_race_can_be_run_again_in_any_order() -> None:
    probs, chance, ids = distribution(1, 50, 1.0), PhiloxChance(4), numbers(50)
    winners = [chance.race(position, ids).winner(probs) for position in range(40)]
    chance.at(Place(3), Role.DRAFT).categorical(probs)
    assert [chance.race(position, ids).winner(probs) for position in reversed(range(40))] == winners[::-1]
    assert [PhiloxChance(4).race(position, ids).winner(probs) for position in range(40)] == winners
    assert len(set(winners)) > 5


@pytest.mark.medium
def test_a_token_wins_as_often_as_its_probability() -> None:
    from scipy.stats import chisquare

    probs, ids = np.array([0.5, 0.25, 0.15, 0.07, 0.03]), numbers(5)
    counts = np.bincount([PhiloxChance(key).race(key % 7, ids).winner(probs) for key in range(4000)], minlength=5)
    assert chisquare(counts, 4000 * probs).pvalue > 1e-3
    assert chisquare(counts, 4000 * np.array([0.47, 0.27, 0.16, 0.07, 0.03])).pvalue < 1e-3


@pytest.mark.medium
def test_two_distributions_share_their_winner_as_often_as_promised() -> None:
    """At least (1 - TV) / (1 + TV), METHODS 3."""
    first, second = distribution(1, 30, 1.0), distribution(2, 30, 1.0)
    variation = np.abs(first - second).sum() / 2
    chances = [PhiloxChance(key).race(0, numbers(30)) for key in range(3000)]
    share = np.mean([race.winner(first) == race.winner(second) for race in chances])
    assert share > (1 - variation) / (1 + variation) - 0.03
