"""Small programs whose laws are computed by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.core.chance import Chance, Role
from antiphon.core.enumeration import EnumeratingChance, output_law


def coin(chance: Chance, probability: float) -> bool:
    return chance.at(0, Role.ACCEPT).bernoulli(probability)


def die(chance: Chance, *probs: float) -> int:
    return chance.at(0, Role.DRAFT).categorical(np.array(probs))


def test_no_draw_at_all() -> None:
    assert output_law(lambda chance: "always") == {"always": 1.0}


def test_two_coins() -> None:
    law = output_law(lambda chance: coin(chance, 0.25) + coin(chance, 0.5))
    assert law == {2: 0.125, 1: 0.5, 0: 0.375}


def test_a_die_after_a_coin() -> None:
    """Branches of different depth, and outcomes that several branches share."""

    def run(chance: Chance) -> int:
        return die(chance, 0.5, 0.25, 0.25) if coin(chance, 0.5) else 1

    assert output_law(run) == {0: 0.25, 1: 0.625, 2: 0.125}


def test_a_later_law_may_depend_on_an_earlier_draw() -> None:
    def run(chance: Chance) -> tuple[int, int]:
        first = die(chance, 0.5, 0.5)
        return first, die(chance, 0.125, 0.875) if first else die(chance, 1.0)

    assert output_law(run) == {(0, 0): 0.5, (1, 0): 0.0625, (1, 1): 0.4375}


def test_draws_until_the_first_success() -> None:
    def run(chance: Chance) -> int:
        return next((count for count in range(5) if coin(chance, 0.5)), 5)

    assert output_law(run) == {0: 0.5, 1: 0.25, 2: 0.125, 3: 0.0625, 4: 0.03125, 5: 0.03125}


def test_branches_of_probability_zero_are_not_visited() -> None:
    visits: list[tuple[int, bool, bool]] = []

    def run(chance: Chance) -> tuple[int, bool, bool]:
        outcome = die(chance, 0.0, 0.5, 0.0, 0.5), coin(chance, 0.0), coin(chance, 1.0)
        visits.append(outcome)
        return outcome

    assert output_law(run) == {(1, False, True): 0.5, (3, False, True): 0.5}
    assert visits == [(1, False, True), (3, False, True)]


@pytest.mark.parametrize(("probability", "law"), [(1.5, {True: 1.0}), (-0.5, {False: 1.0})])
def test_a_coin_beyond_its_range(probability: float, law: dict[bool, float]) -> None:
    assert output_law(lambda chance: coin(chance, probability)) == law


def test_every_branch_is_visited_once() -> None:
    visits: list[tuple[int, int, bool]] = []

    def run(chance: Chance) -> tuple[int, int, bool]:
        visits.append((die(chance, 0.2, 0.3, 0.5), die(chance, 0.5, 0.5), coin(chance, 0.1)))
        return visits[-1]

    output_law(run)
    assert len(visits) == len(set(visits)) == 12


def test_a_stream_is_the_chance_itself() -> None:
    chance = EnumeratingChance()
    assert chance.at(3, Role.TARGET) is chance


Tree = int | list[tuple[int, "Tree"]]
TREES = st.recursive(st.integers(0, 3), lambda node: st.lists(st.tuples(st.integers(1, 4), node), min_size=1, max_size=3))


@settings(max_examples=100, deadline=None)
@given(TREES)
def test_the_law_of_a_random_tree(tree: Tree) -> None:
    """A tree of weighted choices: its law by plain recursion, and by running it."""
    law: dict[int, float] = {}

    def expect(node: Tree, probability: float) -> None:
        if isinstance(node, int):
            law[node] = law.get(node, 0.0) + probability
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
    assert output_law(run) == pytest.approx(law)
    assert sum(law.values()) == pytest.approx(1)
