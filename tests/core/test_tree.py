"""Token trees: their shape, the children of a node, and that testing them leaves exactly the target (METHODS 2, token tree)."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from antiphon.core.acceptance import accept_child, acceptance_rate, residual
from antiphon.core.chance import Chance, PhiloxChance, Place, Role
from antiphon.core.distributions import Probs, one_hot, total_variation
from antiphon.core.tree import ROOT, TokenTree, draw_children, without
from antiphon.testing.enumeration import output_distribution
from support.examples import examples
from support.random_distributions import distributions

BOTH = pytest.mark.parametrize("replacement", [False, True], ids=["without", "with"])


def grown() -> TokenTree:
    """ROOT with 5, 3, 5; below 5 again 5 and 7; below that 7 a 3. Nodes: 5 is 0, 3 is 1, 5-5 is 2, 5-7 is 3, 5-7-3 is 4."""
    tree = TokenTree()
    assert tree.expand(ROOT, [5, 3, 5]) == [0, 1]
    assert tree.expand(0, [5, 7, 7]) == [2, 3]
    assert tree.expand(3, [3]) == [4]
    return tree


# The shape of a tree.


def test_repeats_share_a_node_but_keep_their_multiplicity() -> None:
    tree = grown()
    assert tree.numbers == [5, 3, 5, 7, 3]
    assert tree.draws == {ROOT: [0, 1, 0], 0: [2, 3, 3], 3: [4]}


def test_the_same_token_below_another_node_is_another_node() -> None:
    """Only siblings share: the 5 below the first 5, and the 3 below 5-7, stand for other contexts."""
    tree = grown()
    assert tree.parents == [ROOT, ROOT, 0, 0, 3]


def test_children_are_in_the_order_of_their_first_drawing() -> None:
    tree = TokenTree()
    tree.expand(ROOT, [9, 2, 9, 4, 2, 1])
    assert [tree.numbers[child] for child in tree.children(ROOT)] == [9, 2, 4, 1]
    assert [tree.numbers[child] for child in tree.draws[ROOT]] == [9, 2, 9, 4, 2, 1]
    assert tree.children(0) == []


def test_paths_and_depths() -> None:
    tree = grown()
    assert [tree.path(node) for node in (ROOT, 0, 1, 2, 3, 4)] == [[], [0], [1], [0, 2], [0, 3], [0, 3, 4]]
    assert tree.path_numbers(4) == [5, 7, 3]
    assert tree.path_numbers(ROOT) == []
    assert [tree.depth(node) for node in (ROOT, 0, 1, 2, 3, 4)] == [0, 1, 1, 2, 2, 3]


def test_layers_count_the_expansions() -> None:
    """What a draft says of itself: how many layers of children its payload lists."""
    tree = TokenTree()
    assert tree.layers == 0
    tree.expand(ROOT, [1, 2])
    assert tree.layers == 1
    tree.expand(1, [1])
    assert tree.layers == 2
    assert grown().layers == 3


@examples(100)
@given(st.lists(st.tuples(st.integers(0, 30), st.lists(st.integers(0, 4), min_size=1, max_size=4)), max_size=6))
def test_any_tree_holds_together(expansions: list[tuple[int, list[int]]]) -> None:
    """Parents before children, one node a token among siblings, and every draw is a child of its node."""
    tree, open_nodes = TokenTree(), [ROOT]
    for choice, drawn in expansions:
        node = open_nodes.pop(choice % len(open_nodes))
        new = tree.expand(node, drawn)
        assert new == list(range(len(tree.numbers) - len(set(drawn)), len(tree.numbers)))
        assert [tree.numbers[child] for child in tree.draws[node]] == drawn
        assert tree.children(node) == new
        open_nodes += new
    for node, parent in enumerate(tree.parents):
        assert parent < node
        assert tree.path(node) == [*tree.path(parent), node]
        assert tree.path_numbers(node) == [*tree.path_numbers(parent), tree.numbers[node]]
    siblings = Counter(zip(tree.parents, tree.numbers, strict=True))
    assert set(siblings.values()) <= {1}
    assert tree.layers == max((tree.depth(node) + 1 for node in tree.draws), default=0)


# Children of a node.


@examples(100)
@given(distributions(), st.integers(0, 39))
def test_without_is_the_distribution_given_that_it_is_another(distribution: Probs, number: int) -> None:
    number %= len(distribution)
    before, rest = distribution.copy(), without(distribution, number)
    np.testing.assert_array_equal(distribution, before)
    others = np.delete(distribution, number)
    if others.sum() == 0:
        assert rest is None
        return
    assert rest is not None
    assert rest[number] == 0
    assert rest.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(np.delete(rest, number), others / others.sum(), rtol=1e-9)


def test_without_its_only_token_nothing_is_left() -> None:
    assert without(one_hot(2, 4), 2) is None
    assert without(np.array([1.0]), 0) is None
    np.testing.assert_array_equal(without(one_hot(2, 4), 1), one_hot(2, 4))


@examples(100)
@given(distribution=distributions(most=8), count=st.integers(1, 10), seed=st.integers(0, 1000))
def test_children_without_replacement_never_repeat(distribution: Probs, count: int, seed: int) -> None:
    """As many as were asked for, or all that have a probability."""
    drawn = draw_children(PhiloxChance(seed).at(Place(0), Role.DRAFT), distribution, count, replacement=False)
    assert len(set(drawn)) == len(drawn) == min(count, np.count_nonzero(distribution))
    assert (distribution[drawn] > 0).all()


@examples(50)
@given(distribution=distributions(most=8), count=st.integers(1, 10), seed=st.integers(0, 1000))
def test_children_with_replacement_are_as_many_as_asked_for(distribution: Probs, count: int, seed: int) -> None:
    drawn = draw_children(PhiloxChance(seed).at(Place(0), Role.DRAFT), distribution, count, replacement=True)
    assert len(drawn) == count
    assert (distribution[drawn] > 0).all()


def sequences(distribution: Probs, count: int, replacement: bool) -> dict[tuple[int, ...], float]:
    """The probability of every sequence of children, by definition: of those not yet drawn, each by its share."""
    found: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(count):
        longer: dict[tuple[int, ...], float] = {}
        for drawn, probability in found.items():
            left = [n for n in np.flatnonzero(distribution).tolist() if replacement or n not in drawn]
            mass = sum(float(distribution[n]) for n in left)
            longer |= {(*drawn, n): probability * float(distribution[n]) / mass for n in left} or {drawn: probability}
        found = longer
    return found


@BOTH
@examples(40)
@given(distribution=distributions(most=5), count=st.integers(1, 3))
def test_the_distribution_of_the_children(distribution: Probs, count: int, replacement: bool) -> None:
    found = output_distribution(lambda chance: tuple(draw_children(chance, distribution, count, replacement=replacement)))
    wanted = sequences(distribution, count, replacement)
    assert max(abs(found.get(key, 0.0) - wanted.get(key, 0.0)) for key in found.keys() | wanted.keys()) < 1e-12


@BOTH
def test_children_come_as_often_as_they_should_from_the_production_streams(replacement: bool) -> None:
    """Enumeration gives each draw a branch of its own; here successive draws of one stream must not hang together."""
    distribution, draws = np.array([0.4, 0.0, 0.3, 0.2, 0.1]), 4000
    chance = PhiloxChance(7)
    counts = Counter(
        tuple(draw_children(chance.at(Place(position), Role.DRAFT), distribution, 2, replacement=replacement))
        for position in range(draws)
    )
    wanted = sequences(distribution, 2, replacement)
    assert counts.keys() <= wanted.keys()
    result = stats.power_divergence(
        [counts[key] for key in wanted], [draws * p for p in wanted.values()], lambda_="log-likelihood"
    )
    assert result.pvalue > 1e-3


# Testing them.


@st.composite
def nodes(draw: st.DrawFn, most: int = 5) -> tuple[Probs, Probs]:
    """A target, and a draft distribution over its first tokens: the common vocabulary comes first."""
    target = draw(distributions(most=most))
    return target, draw(distributions(most=len(target)))


def padded(distribution: Probs, size: int) -> Probs:
    return np.pad(distribution, (0, size - len(distribution)))


def distribution_of_one_node(target: Probs, distribution: Probs, count: int, replacement: bool) -> tuple[Probs, float]:
    """Draw children, test them, draw from the rest if none stands: the distribution of the token, and how often one stood."""

    def run(chance: Chance) -> tuple[int, bool]:
        drawn = draw_children(chance.at(Place(0), Role.DRAFT), distribution, count, replacement=replacement)
        place, rest = accept_child(chance.at(Place(0), Role.ACCEPT), target, distribution, drawn, replacement=replacement)
        if place is not None:
            return drawn[place], True
        return chance.at(Place(0), Role.RESAMPLE).categorical(rest), False

    found = output_distribution(run)
    tokens = np.array([found.get((token, True), 0.0) + found.get((token, False), 0.0) for token in range(len(target))])
    return tokens, sum(p for (_, stood), p in found.items() if stood)


UNEVEN = np.array([0.125, 0.5, 0.0, 0.375])


@BOTH
@examples(60)
@given(pair=nodes(), count=st.integers(1, 3))
@example(pair=(UNEVEN, np.array([0.25, 0.0, 0.75])), count=3)
@example(pair=(UNEVEN, UNEVEN), count=2)
@example(pair=(UNEVEN, one_hot(2, 3)), count=3)
@example(pair=(one_hot(3, 4), np.array([0.5, 0.5])), count=2)
@example(pair=(one_hot(1, 4), one_hot(1, 2)), count=3)
def test_the_token_of_one_node_has_exactly_the_target_distribution(
    pair: tuple[Probs, Probs], count: int, replacement: bool
) -> None:
    """And one of the children stands as often as the closed form says."""
    target, distribution = pair
    tokens, stood = distribution_of_one_node(target, distribution, count, replacement)
    np.testing.assert_allclose(tokens, target, rtol=0, atol=1e-12)
    assert stood == pytest.approx(acceptance_rate(target, distribution, count, replacement=replacement), abs=1e-12)


@BOTH
@examples(25)
@given(pair=nodes(most=4))
def test_four_children_too(pair: tuple[Probs, Probs], replacement: bool) -> None:
    """More children than the distribution has tokens, mostly."""
    target, distribution = pair
    tokens, stood = distribution_of_one_node(target, distribution, 4, replacement)
    np.testing.assert_allclose(tokens, target, rtol=0, atol=1e-12)
    assert stood == pytest.approx(acceptance_rate(target, distribution, 4, replacement=replacement), abs=1e-12)


@examples(100)
@given(distributions(), distributions(), st.booleans())
def test_one_candidate_stands_by_one_minus_the_total_variation(target: Probs, distribution: Probs, replacement: bool) -> None:
    """Whichever of the two is longer."""
    rate = acceptance_rate(target, distribution, 1, replacement=replacement)
    assert rate == pytest.approx(1 - total_variation(target, distribution), abs=1e-12)


@examples(300)
@given(pair=nodes(most=6), count=st.integers(2, 4))
def test_without_replacement_is_never_worse(pair: tuple[Probs, Probs], count: int) -> None:
    """METHODS 2 says so, and it is why it is the default."""
    target, distribution = pair
    alone, with_repeats = (
        acceptance_rate(target, distribution, count, replacement=replacement) for replacement in (False, True)
    )
    assert alone >= with_repeats - 1e-12


@BOTH
@examples(100)
@given(pair=nodes(most=6), count=st.integers(1, 3))
def test_another_child_never_hurts(pair: tuple[Probs, Probs], count: int, replacement: bool) -> None:
    target, distribution = pair
    rates = [acceptance_rate(target, distribution, n, replacement=replacement) for n in (count, count + 1)]
    assert -1e-12 <= rates[0] <= rates[1] + 1e-12 <= 1 + 2e-12


def test_a_case_by_hand() -> None:
    """Target .5 .5, draft .75 .25. One child stands by .75.

    A second with replacement: .25 is left, all on the second token, which comes by .25. Without: the first was rejected, so the
    second token comes for sure.
    """
    target, distribution = np.array([0.5, 0.5]), np.array([0.75, 0.25])
    assert acceptance_rate(target, distribution, 1, replacement=False) == pytest.approx(0.75)
    assert acceptance_rate(target, distribution, 2, replacement=True) == pytest.approx(0.75 + 0.25 * 0.25)
    assert acceptance_rate(target, distribution, 2, replacement=False) == pytest.approx(1.0)


@BOTH
@examples(100)
@given(pair=nodes(), count=st.integers(1, 4), seed=st.integers(0, 100))
def test_what_is_tested_stays_as_it_was(pair: tuple[Probs, Probs], count: int, seed: int, replacement: bool) -> None:
    """A target may be asked for again, and a distribution is a part of the tree."""
    target, distribution = (probs.copy() for probs in pair)
    target.setflags(write=False)
    distribution.setflags(write=False)
    drawn = draw_children(PhiloxChance(seed).at(Place(0), Role.DRAFT), distribution, count, replacement=replacement)
    place, rest = accept_child(
        PhiloxChance(seed).at(Place(0), Role.ACCEPT), target, distribution, drawn, replacement=replacement
    )
    assert place is None or place < len(drawn)
    assert rest.sum() == pytest.approx(1)
    assert rest.shape == target.shape


class Never:
    """A stream in which no child that could fall does stand."""

    def bernoulli(self, probability: float) -> bool:
        return probability >= 1.0

    def categorical(self, probs: Probs) -> int:
        raise NotImplementedError


def test_the_rest_is_what_the_children_left() -> None:
    """Step by step, by hand: 0 then 1, without replacement, of (.5 .25 .25) against (.1 .2 .7)."""
    target, distribution = np.array([0.1, 0.2, 0.7]), np.array([0.5, 0.25, 0.25])
    place, rest = accept_child(Never(), target, distribution, [0, 1], replacement=False)
    first = residual(target, distribution)  # 0, 0, .45
    second = residual(first, np.array([0.0, 0.5, 0.5]))
    assert place is None
    np.testing.assert_allclose(rest, second)
    np.testing.assert_allclose(rest, [0, 0, 1])


def test_no_children_leave_the_target() -> None:
    target = np.array([0.25, 0.75])
    place, rest = accept_child(Never(), target, target, [], replacement=False)
    assert place is None
    np.testing.assert_array_equal(rest, target)
