"""Streams of chance: the same numbers everywhere, none shared, nothing impossible drawn."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from antiphon.core.chance import PhiloxChance, PhiloxStream, Place, Role
from antiphon.core.distributions import Probs, one_hot
from support.examples import examples

CHI_SQUARE = {1: 10.83, 3: 16.27, 15: 37.70}
"""By degrees of freedom: what chance alone exceeds once in a thousand times."""
MASK = 2**64 - 1
LAST = 1 - 2.0**-53
"""The largest uniform number that there is."""


def philox4x64(counter: list[int], key: list[int]) -> list[int]:
    """Philox4x64-10 as published (Salmon and others, SC 2011)."""
    (c0, c1, c2, c3), (k0, k1) = counter, key
    for _ in range(10):
        first, second = 0xD2E7470EE14C6C93 * c0, 0xCA5A826395121157 * c2
        c0, c1, c2, c3 = (second >> 64) ^ c1 ^ k0, second & MASK, (first >> 64) ^ c3 ^ k1, first & MASK
        k0, k1 = (k0 + 0x9E3779B97F4A7C15) & MASK, (k1 + 0xBB67AE8584CAA73B) & MASK
    return [c0, c1, c2, c3]


def uniform(seed: int, place: Place, role: Role, number: int) -> float:
    """A draw by the definition; numpy counts up before it generates."""
    return (philox4x64([number + 1, place.index, place.first, 0], [seed, role])[0] >> 11) / 2**53


def draws(chance: PhiloxChance, place: Place, role: Role, count: int) -> list[float]:
    stream = chance.at(place, role)
    return [stream._uniform() for _ in range(count)]


def test_the_reference_gives_the_published_numbers() -> None:
    expected = [0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B]
    assert philox4x64([0, 0, 0, 0], [0, 0]) == expected


KNOWN = {
    # (seed, place, role): the first three numbers, times 2^53
    (0, Place(0), Role.DRAFT): [7326042091893818, 6351833851034554, 5094433518639501],
    (0, Place(0), Role.ACCEPT): [7335765513338753, 7383195957055027, 7583306135451282],
    (1, Place(5), Role.RESAMPLE): [4964592230462704, 4328089322975812, 2577905340468917],
    (42, Place(1000), Role.TARGET): [5150164703477677, 8216433545623331, 5385737565888249],
    (2**63 + 1, Place(3), Role.DRAFT): [3195545683675976, 3562580480525889, 8766238654437336],
    (2**64 - 1, Place(2**31), Role.ACCEPT): [2233131416772978, 3582885324758662, 911461811198317],
    (5, Place(0, 1), Role.DRAFT): [4537881269097212, 148020300038868, 7351705455888550],
    (7, Place(12, 3), Role.ACCEPT): [5536485791675641, 3500466317745784, 7364283227250844],
    (2**64 - 1, Place(2**31, 6), Role.RESAMPLE): [329119916390605, 5174589308980551, 4057460190423844],
}


@pytest.mark.parametrize(("key", "numbers"), KNOWN.items(), ids=str)
def test_known_answers(key: tuple[int, Place, Role], numbers: list[int]) -> None:
    """A change of these changes the answer of every seed, and the two ends of an old and a new version."""
    seed, place, role = key
    assert [int(value * 2**53) for value in draws(PhiloxChance(seed), place, role, 3)] == numbers


@examples(100)
@given(
    seed=st.integers(0, 2**64 - 1),
    place=st.builds(Place, st.integers(0, 2**31), st.integers(0, 2**31)),
    role=st.sampled_from(Role),
)
@example(seed=2**64 - 1, place=Place(0), role=Role.DRAFT)
@example(seed=2**63 + 1, place=Place(0, 2), role=Role.TARGET)
def test_every_seed_gives_what_the_definition_says(seed: int, place: Place, role: Role) -> None:
    expected = [uniform(seed, place, role, number) for number in range(3)]
    assert draws(PhiloxChance(seed), place, role, 3) == expected


def test_no_two_streams_share_a_number() -> None:
    seeds = (0, 1, 2, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1)
    found = [
        value
        for seed, role, first, index in product(seeds, Role, range(8), range(4))
        for value in draws(PhiloxChance(seed), Place(first, index), role, 3)
    ]
    assert len(set(found)) == len(found)


def test_the_position_of_a_place() -> None:
    """Of two places with one position the draws are their own: one is of a round that began later."""
    assert Place(3, 2).position == Place(5).position == 5
    chance = PhiloxChance(7)
    assert draws(chance, Place(3, 2), Role.DRAFT, 3) != draws(chance, Place(5), Role.DRAFT, 3)


def test_roles_and_places_are_uncorrelated() -> None:
    """Those of one position too, which rounds that began at different tokens draw for."""
    chances = [(role, index) for role in Role for index in (0, 1)]
    table = np.array(
        [
            [draws(PhiloxChance(7), Place(first - index, index), role, 1)[0] for first in range(1, 2001)]
            for role, index in chances
        ]
    )
    correlations = np.corrcoef(table)[np.triu_indices(len(chances), 1)]
    assert np.abs(correlations).max() < 0.08
    neighbours = [np.corrcoef(row[:-1], row[1:])[0, 1] for row in table]
    assert np.abs(neighbours).max() < 0.08


def test_a_stream_can_be_drawn_again_in_any_order() -> None:
    chance = PhiloxChance(5)
    first = draws(chance, Place(3), Role.DRAFT, 4)
    one, other = chance.at(Place(3), Role.DRAFT), chance.at(Place(9), Role.DRAFT)
    interleaved = [(one._uniform(), other._uniform(), *draws(chance, Place(3), Role.ACCEPT, 2))[0] for _ in range(4)]
    assert interleaved == first == draws(PhiloxChance(5), Place(3), Role.DRAFT, 4)


class Given:
    """A source of one given number."""

    def __init__(self, value: float) -> None:
        self._value = value

    def uniform(self, place: Place, number: int) -> float:
        return self._value


def drawn(value: float, probs: Probs) -> int:
    return PhiloxStream(Given(value), Place(0)).categorical(probs)


def distributions(draw: st.DrawFn) -> Probs:
    size = draw(st.integers(1, 12))
    values = st.one_of(st.just(0.0), st.floats(1e-300, 1.0), st.sampled_from([1e-17, 0.1, 1 / 3]))
    found = draw(hnp.arrays(np.float64, size, elements=values))
    found[draw(st.integers(0, size - 1))] += draw(st.sampled_from([1.0, 0.1]))
    return found / found.sum()


UNIFORMS = st.one_of(st.sampled_from([0.0, 2.0**-53, 0.5, LAST]), st.integers(0, 2**53 - 1).map(lambda n: n / 2**53))


@examples(150)
@given(probs=st.composite(distributions)(), value=UNIFORMS)
@example(probs=np.array([0.1] * 3 + [0.7, 0.0, 0.0]), value=LAST)
@example(probs=np.array([0.0, 0.0, 1.0, 0.0]), value=0.0)
@example(probs=np.array([1.0, 1e-17, 0.0]), value=LAST)
def test_a_token_of_probability_zero_is_never_drawn(probs: Probs, value: float) -> None:
    index = drawn(value, probs)
    assert probs[index] > 0
    below = float(np.cumsum(probs)[index - 1]) if index else 0.0
    assert below <= value * float(np.cumsum(probs)[-1]) + 1e-15
    assert value <= below + probs[index] + 1e-15


@pytest.mark.parametrize("total", [1.0, 1 - 2**-53, 1 + 2**-52, 0.9999999, 1.0000001, 1e-9, 1.5])
@pytest.mark.parametrize("zeros", [0, 1, 5])
def test_the_ends_of_the_range(total: float, zeros: int) -> None:
    """The sum may miss 1 by rounding; zeros may lead and trail."""
    probs = total * np.array([0.0] * zeros + [0.2, 0.0, 0.3, 0.5] + [0.0] * zeros)
    assert drawn(0.0, probs) == zeros
    assert drawn(LAST, probs) == zeros + 3


def test_a_point_mass_is_always_drawn() -> None:
    for index, value in product(range(5), (0.0, 0.25, 0.5, LAST)):
        assert drawn(value, one_hot(index, 5)) == index


def test_the_borders_between_tokens() -> None:
    probs = np.array([0.25, 0.25, 0.5])
    assert [drawn(value, probs) for value in (0.25 - 2**-53, 0.25, 0.5 - 2**-53, 0.5)] == [0, 1, 1, 2]


def test_bernoulli_of_zero_and_one() -> None:
    for value in (0.0, 2.0**-53, 0.5, LAST):
        assert not PhiloxStream(Given(value), Place(0)).bernoulli(0.0)
        assert PhiloxStream(Given(value), Place(0)).bernoulli(1.0)
    chance = PhiloxChance(1)
    assert not any(chance.at(Place(position), Role.ACCEPT).bernoulli(0.0) for position in range(500))
    assert all(chance.at(Place(position), Role.ACCEPT).bernoulli(1.0) for position in range(500))


def test_bernoulli_is_strictly_below() -> None:
    assert not PhiloxStream(Given(0.5), Place(0)).bernoulli(0.5)
    assert PhiloxStream(Given(0.5 - 2**-53), Place(0)).bernoulli(0.5)


def check_frequencies(found: list[int], probs: Probs) -> None:
    expected = sum(found) * probs
    assert float(((found - expected) ** 2 / expected).sum()) < CHI_SQUARE[len(probs) - 1]


@pytest.mark.parametrize("role", Role)
def test_frequencies_over_positions(role: Role) -> None:
    probs, count = np.array([0.05, 0.0, 0.45, 0.2, 0.3]), 4000
    chance = PhiloxChance(2024)
    found = Counter(chance.at(Place(position), role).categorical(probs) for position in range(count))
    possible = np.flatnonzero(probs)
    assert set(found) <= set(possible.tolist())
    check_frequencies([found[index] for index in possible], probs[possible])


def test_frequencies_within_a_stream() -> None:
    stream, count = PhiloxChance(3).at(Place(0), Role.DRAFT), 4000
    found = Counter(int(16 * stream._uniform()) for _ in range(count))
    check_frequencies([found[cell] for cell in range(16)], np.full(16, 1 / 16))
    heads = sum(stream.bernoulli(0.3) for _ in range(count))
    check_frequencies([heads, count - heads], np.array([0.3, 0.7]))
