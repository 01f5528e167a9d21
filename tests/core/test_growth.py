"""How trees grow: the chances of children, what is learned of them, and that the best nodes are the most probable ones."""

import heapq
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.growth import AT_ONCE, FALL, LEAST, SIBLINGS, Growth, GrowthRule, Likeness, Scores
from antiphon.core.tree import ROOT
from support.examples import examples

SCORES = st.lists(st.floats(-50, 50), min_size=1, max_size=SIBLINGS).map(lambda found: np.sort(np.array(found))[::-1])


@examples(100)
@given(SCORES, st.lists(st.tuples(SCORES, st.integers(0, SIBLINGS))))
def test_chances_fall_with_the_place_and_leave_something_for_others(scores: Scores, seen: list[tuple[Scores, int]]) -> None:
    likeness = Likeness()
    for before, place in seen:
        likeness.learn(before, place if place < len(before) else None)
    chances = likeness.chances(scores)
    assert (np.diff(chances) <= 1e-12).all()
    assert 0 < chances.sum() < 1 + 1e-12
    assert (chances >= 0).all()


def race(source: np.random.Generator, spread: float, others: float) -> tuple[Scores, int | None]:
    """The scores of a race, and the cloud's token by chances of this spread."""
    scores = np.sort(source.normal(size=SIBLINGS) * 2)[::-1]
    weights = np.append(np.exp((scores - scores[0]) / spread), others * np.exp(FALL * (scores[-1] - scores[0])))
    place = int(source.choice(SIBLINGS + 1, p=weights / weights.sum()))
    return scores, place if place < SIBLINGS else None


@pytest.mark.parametrize(("spread", "others"), [(0.1, 0.05), (0.8, 0.5), (3.0, 5.0)])
def test_it_learns_how_alike_two_models_are(spread: float, others: float) -> None:
    """Measured by the logarithm of the chance that it gave to what came: near that of who knows the spread."""
    source, likeness, lost = np.random.default_rng(3), Likeness(), []
    for turn in range(400):
        scores, place = race(source, spread, others)
        given_to = np.append(likeness.chances(scores), 0.0)
        given_to[-1] = 1 - given_to.sum()
        weights = np.append(np.exp((scores - scores[0]) / spread), others * np.exp(FALL * (scores[-1] - scores[0])))
        at = SIBLINGS if place is None else place
        lost += [np.log(weights[at] / weights.sum()) - np.log(given_to[at])] if turn >= 100 else []
        likeness.learn(scores, place)
    assert np.mean(lost) < 0.03


def test_what_was_said_comes_true_as_often_as_said() -> None:
    """Before anything is learned it is right about two models of the fitted spread."""
    source, likeness = np.random.default_rng(4), Likeness()
    said, was = np.zeros(SIBLINGS), np.zeros(SIBLINGS)
    for _ in range(4000):
        scores, place = race(source, 0.8, 1.6)
        said += likeness.chances(scores)
        if place is not None:
            was[place] += 1
    assert np.abs(said - was).max() < 0.03 * 4000


def children(source: random.Random) -> list[float]:
    """The chances of a node's children."""
    weights = sorted((source.random() ** 3 for _ in range(source.randint(1, 5))), reverse=True)
    return [weight / (sum(weights) + 0.1) for weight in weights]


def all_read(growth: Growth, source: random.Random, bar: float, deepest: int) -> int:
    """Grow until nothing is to be read; returns the passes."""
    passes, nodes = 0, [ROOT]
    while nodes:
        passes += 1
        assert len(nodes) <= AT_ONCE
        for node in nodes:
            found = children(source)
            growth.add(node, list(range(len(found))), found)
        nodes = growth.next(bar, lambda node: growth.tree.depth(node) < deepest)
    return passes


@examples(60)
@given(st.integers(0, 10_000), st.integers(1, 20), st.sampled_from([0.0, 0.05, 0.3]), st.integers(1, 6))
def test_the_best_nodes_are_a_tree_and_the_most_probable(seed: int, most: int, bar: float, deepest: int) -> None:
    growth, source = Growth(most), random.Random(seed)
    all_read(growth, source, bar, deepest)
    best, tree = growth.best(), growth.tree
    assert len(best) <= most
    assert all(tree.parents[node] in {ROOT, *best[:place]} for place, node in enumerate(best))
    worth = [growth.chance(node) for node in growth.alive if growth.chance(node) >= LEAST]
    assert [growth.chance(node) for node in best] == heapq.nlargest(most, worth)
    for node in growth.alive:
        parent = tree.parents[node]
        assert growth.chance(node) <= (1.0 if parent == ROOT else growth.chance(parent))


@examples(40)
@given(st.integers(0, 10_000), st.integers(2, 20))
def test_below_a_new_root_nothing_is_lost_and_nothing_else_is_left(seed: int, most: int) -> None:
    growth, source = Growth(most), random.Random(seed)
    all_read(growth, source, 0.0, 4)
    for _ in range(3):
        children = growth.tree.children(growth.root)
        if not children:
            return
        child = source.choice(children)
        assert growth.child(growth.tree.numbers[child]) == child
        share, paths = growth.chance(child), {node: growth.tree.path(node) for node in growth.alive}
        before = {node: growth.chance(node) for node in growth.alive}
        growth.go_to(child)
        assert growth.alive == [node for node, path in paths.items() if child in path and node != child]
        for node in growth.alive:
            assert growth.chance(node) == pytest.approx(before[node] / share)
            assert growth.depth(node) == len(paths[node]) - len(paths[child])
        other, moved = growth.afresh()
        assert [moved[node] for node in growth.best()] == other.best()
        assert {moved[node] for node in growth.alive if node in growth.tree.draws} == set(other.tree.draws) - {ROOT}
        for node in growth.alive:
            assert other.chance(moved[node]) == pytest.approx(growth.chance(node))
            assert other.tree.path_numbers(moved[node]) == growth.tree.path_numbers(node)[growth.tree.depth(growth.root) :]


def test_it_is_deep_where_the_models_agree_and_wide_where_they_may_not() -> None:
    sure, unsure = Growth(4), Growth(4)
    for node in (ROOT, 0, 2, 4):
        sure.add(node, [1, 2], [0.9, 0.05])
    for node in (ROOT, 0):
        unsure.add(node, [1, 2, 3, 4], [0.3, 0.25, 0.2, 0.15])
    assert max(map(sure.tree.depth, sure.best())) == 4
    assert max(map(unsure.tree.depth, unsure.best())) == 1


def test_a_node_behind_which_nothing_can_be_is_not_read() -> None:
    growth = Growth(3)
    growth.add(ROOT, [1, 2], [0.6, 0.3])
    assert growth.next(0.0, lambda node: True) == [0, 1]
    assert growth.next(0.0, lambda node: node != 0) == [1]


def test_a_node_whose_children_cannot_be_among_the_best_is_not_read() -> None:
    growth = Growth(2)
    growth.add(ROOT, [1, 2], [0.6, 0.3])
    assert growth.next(0.0, lambda node: True) == [0]  # whose child may be better than the second
    assert growth.next(0.5, lambda node: True) == []


def test_the_bar_follows_what_trees_need() -> None:
    rule = GrowthRule(2)
    for _ in range(50):
        growth = Growth(2)
        growth.add(ROOT, [1, 2, 3], [0.5, 0.4, 0.05])
        rule.grown(growth)
    assert rule.bar == pytest.approx(0.4, abs=1e-3)
