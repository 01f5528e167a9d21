"""Small programs whose distributions are computed by hand."""

from collections.abc import Callable
from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.chance import Chance, Place, Role, Stream
from antiphon.testing.enumeration import output_distribution
from support.examples import examples

PLACES = count()


def coin(chance: Chance, probability: float) -> bool:
    """At a place of its own."""
    return chance.at(Place(next(PLACES)), Role.ACCEPT).bernoulli(probability)


def die(chance: Chance, *probs: float) -> int:
    """At a place of its own."""
    return chance.at(Place(next(PLACES)), Role.DRAFT).categorical(np.array(probs))


def test_no_draw_at_all() -> None:
    assert output_distribution(lambda chance: "always") == {"always": 1.0}


def test_two_coins() -> None:
    distribution = output_distribution(lambda chance: coin(chance, 0.25) + coin(chance, 0.5))
    assert distribution == {2: 0.125, 1: 0.5, 0: 0.375}


def test_a_die_after_a_coin() -> None:
    """Branches of different depth, and outcomes that several branches share."""

    def run(chance: Chance) -> int:
        return die(chance, 0.5, 0.25, 0.25) if coin(chance, 0.5) else 1

    assert output_distribution(run) == {0: 0.25, 1: 0.625, 2: 0.125}


def test_a_later_distribution_may_depend_on_an_earlier_draw() -> None:
    def run(chance: Chance) -> tuple[int, int]:
        first = die(chance, 0.5, 0.5)
        return first, die(chance, 0.125, 0.875) if first else die(chance, 1.0)

    assert output_distribution(run) == {(0, 0): 0.5, (1, 0): 0.0625, (1, 1): 0.4375}


def test_draws_until_the_first_success() -> None:
    def run(chance: Chance) -> int:
        return next((tosses for tosses in range(5) if coin(chance, 0.5)), 5)

    assert output_distribution(run) == {0: 0.5, 1: 0.25, 2: 0.125, 3: 0.0625, 4: 0.03125, 5: 0.03125}


def test_branches_of_probability_zero_are_not_visited() -> None:
    visits: list[tuple[int, bool, bool]] = []

    def run(chance: Chance) -> tuple[int, bool, bool]:
        outcome = die(chance, 0.0, 0.5, 0.0, 0.5), coin(chance, 0.0), coin(chance, 1.0)
        visits.append(outcome)
        return outcome

    assert output_distribution(run) == {(1, False, True): 0.5, (3, False, True): 0.5}
    assert visits == [(1, False, True), (3, False, True)]


@pytest.mark.parametrize(("probability", "distribution"), [(1.5, {True: 1.0}), (-0.5, {False: 1.0})])
def test_a_coin_beyond_its_range(probability: float, distribution: dict[bool, float]) -> None:
    assert output_distribution(lambda chance: coin(chance, probability)) == distribution


def test_every_branch_is_visited_once() -> None:
    visits: list[tuple[int, int, bool]] = []

    def run(chance: Chance) -> tuple[int, int, bool]:
        visits.append((die(chance, 0.2, 0.3, 0.5), die(chance, 0.5, 0.5), coin(chance, 0.1)))
        return visits[-1]

    output_distribution(run)
    assert len(visits) == len(set(visits)) == 12


def test_a_draw_that_is_made_again_is_the_same() -> None:
    """As in production, where the key gives the number: of a stream that is asked for again, in the order of its draws."""

    def run(chance: Chance) -> tuple[int, bool, int, bool]:
        place, distribution = Place(3, 1), np.array([0.25, 0.75])
        first, again = chance.at(place, Role.DRAFT), chance.at(place, Role.DRAFT)
        return first.categorical(distribution), first.bernoulli(0.5), again.categorical(distribution), again.bernoulli(0.5)

    assert output_distribution(run) == {(0, 1, 0, 1): 0.125, (0, 0, 0, 0): 0.125, (1, 1, 1, 1): 0.375, (1, 0, 1, 0): 0.375}


@pytest.mark.parametrize(
    "other",
    [lambda stream: stream.bernoulli(0.5), lambda stream: stream.categorical(np.array([0.3, 0.7]))],
    ids=["coin", "die"],
)
def test_two_draws_that_share_a_key_are_an_error(other: Callable[[Stream], int]) -> None:
    """Branches of their own would hide that in production one number decides both."""

    def run(chance: Chance) -> tuple[int, int]:
        streams = chance.at(Place(3), Role.DRAFT), chance.at(Place(3), Role.DRAFT)
        return streams[0].categorical(np.array([0.25, 0.75])), other(streams[1])

    with pytest.raises(RuntimeError, match=r"two draws share one key: draw 0 of DRAFT at Place\(first=3, index=0\)"):
        output_distribution(run)


def test_other_places_roles_and_draws_are_branches_of_their_own() -> None:
    def run(chance: Chance) -> tuple[bool, ...]:
        streams = [chance.at(Place(*place), role) for place in ((0, 0), (0, 1), (1, 0)) for role in (Role.DRAFT, Role.ACCEPT)]
        return tuple(stream.bernoulli(0.5) for stream in (*streams, streams[0]))

    assert len(output_distribution(run)) == 2**7


def test_a_chance_is_a_stream_of_draws_that_nobody_makes_again() -> None:
    assert output_distribution(lambda chance: (chance.bernoulli(0.5), chance.bernoulli(0.5)))[(True, False)] == 0.25


Tree = int | list[tuple[int, "Tree"]]
TREES = st.recursive(st.integers(0, 3), lambda node: st.lists(st.tuples(st.integers(1, 4), node), min_size=1, max_size=3))


@examples(100)
@given(TREES)
def test_the_distribution_of_a_random_tree(tree: Tree) -> None:
    """A tree of weighted choices: its distribution by plain recursion, and by running it."""
    distribution: dict[int, float] = {}

    def expect(node: Tree, probability: float) -> None:
        if isinstance(node, int):
            distribution[node] = distribution.get(node, 0.0) + probability
            return
        total = sum(weight for weight, _ in node)
        for weight, child in node:
            expect(child, probability * weight / total)

    def run(chance: Chance) -> int:
        node = tree
        while isinstance(node, list):
            total = sum(weight for weight, _ in node)
            node = node[die(chance, *(weight / total for weight, _ in node))][1]
        return node

    expect(tree, 1.0)
    assert output_distribution(run) == pytest.approx(distribution)
    assert sum(distribution.values()) == pytest.approx(1)
