"""The nodes that matter to a cloud: those below its newest token, whenever they come, and never too many."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.tree import ROOT
from antiphon.errors import ProtocolError
from antiphon.methods.speculative.stream.tree_nodes import LiveNodes
from support.examples import examples


class Remembering:
    """All nodes of an epoch, by the definition: alive is whoever's path begins with all that was committed, and is longer."""

    def __init__(self) -> None:
        self.parents: list[int] = []
        self.numbers: list[int] = []
        self.committed: list[int] = []

    def path(self, node: int) -> list[int]:
        return [] if node == ROOT else [*self.path(self.parents[node]), self.numbers[node]]

    @property
    def alive(self) -> list[int]:
        count = len(self.committed)
        paths = {node: self.path(node) for node in range(len(self.numbers))}
        return [node for node, path in paths.items() if len(path) > count and path[:count] == self.committed]

    def place(self, node: int) -> int:
        return sum(parent == self.parents[node] for parent in self.parents[:node])


@examples(200)
@given(st.integers(0, 100_000), st.integers(1, 60), st.sampled_from([0.1, 0.3, 0.6]))
def test_alive_is_what_hangs_below_the_newest_token(seed: int, events: int, commits: float) -> None:
    source, nodes, known = random.Random(seed), LiveNodes(1000), Remembering()
    for _ in range(events):
        if source.random() < commits:
            # Mostly a token that is a node or may become one, so that paths go on.
            number = source.choice([0, 0, 0, 1, 2])
            nodes.commit(number)
            known.committed.append(number)
        else:
            parent = source.randint(max(ROOT, len(known.numbers) - 6), len(known.numbers) - 1)
            siblings = {known.numbers[node] for node, other in enumerate(known.parents) if other == parent}
            number = source.choice(sorted({0, 1, 2, 3, 4, 5, 6, 7} - siblings))
            nodes.add(parent, number)
            known.parents.append(parent)
            known.numbers.append(number)
        assert list(nodes.alive) == known.alive
        assert nodes.sent == len(known.numbers)
        assert all(nodes.alive[node].place == known.place(node) for node in known.alive)
        tree, places = nodes.tree(1000, 1000)
        count = len(known.committed)
        assert [tree.path_numbers(at) for at in range(len(tree.numbers))] == [known.path(node)[count:] for node in known.alive]
        assert places == [known.place(node) for node in known.alive]


def test_a_tree_has_the_first_that_came_and_is_no_deeper_than_asked() -> None:
    nodes = LiveNodes(9)
    for parent, number in ((ROOT, 5), (0, 6), (1, 7), (ROOT, 8)):
        nodes.add(parent, number)
    assert nodes.tree(9, 9)[0].parents == [ROOT, 0, 1, ROOT]
    assert nodes.tree(2, 9)[0].numbers == [5, 6]
    assert nodes.tree(9, 2)[0].numbers == [5, 6, 8]
    assert nodes.tree(9, 0)[0].numbers == []


def test_what_is_too_many_is_dropped_in_silence_and_keeps_its_number_and_place() -> None:
    nodes = LiveNodes(2)
    for number in (5, 6, 7):
        nodes.add(ROOT, number)
    nodes.add(2, 1)  # below the one that was dropped
    assert (list(nodes.alive), nodes.sent) == ([0, 1], 4)
    nodes.commit(5)
    nodes.add(0, 9)
    assert list(nodes.alive) == [4]


@pytest.mark.parametrize("parents", ["root", "last", "any"])
def test_what_is_kept_is_bounded_whatever_comes(parents: str) -> None:
    source, nodes = random.Random(1), LiveNodes(8)
    for turn in range(3000):
        parent = {"root": ROOT, "last": nodes.sent - 1, "any": source.randint(ROOT, nodes.sent - 1)}[parents]
        nodes.add(parent, turn)
        if turn % 100 == 99:
            nodes.commit(turn - 99 if nodes.alive else 0)
        assert len(nodes.alive) <= 8
        assert len(nodes._children) <= 8 + len(nodes._path)
    assert len(nodes._path) <= 31


def test_a_child_twice() -> None:
    nodes = LiveNodes(8)
    nodes.add(ROOT, 5)
    nodes.add(0, 5)
    with pytest.raises(ProtocolError, match="a node has the same child twice"):
        nodes.add(0, 5)


def test_an_epoch_begins_with_nothing() -> None:
    nodes = LiveNodes(8)
    nodes.add(ROOT, 5)
    nodes.commit(5)
    nodes.begin()
    assert (nodes.alive, nodes.sent) == ({}, 0)
    nodes.add(ROOT, 6)
    assert list(nodes.alive) == [0]
