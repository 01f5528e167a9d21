"""What is read: after any rounds the logits are those of the tokens that stand, and nothing is read twice without need."""

from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.distributions import Logits
from antiphon.core.tree import ROOT
from antiphon.methods.cached_context import CachedContext
from antiphon.models.base import Stop
from methods.remembering import CLOUD, SEEDS, Counting, Remembering, needed
from support.examples import examples


@dataclass
class Rounds:
    """Rounds on one context, whose tokens are known from outside."""

    random: np.random.Generator
    tokens: list[int]

    def __post_init__(self) -> None:
        self.model = Remembering(CLOUD, seed=3)
        self.context = Counting(self.model.open())
        self.reading = CachedContext(self.context)
        self.kept: list[int] = []
        """What the context holds as soon as the next pass begins."""

    def ids(self, count: int) -> list[int]:
        return self.random.integers(0, len(CLOUD), count).tolist()

    def extend(self, tokens: list[int], rows: int) -> None:
        must = needed(self.kept, tokens, rows)
        logits = self.reading.extend(list(tokens), rows).run()
        assert logits.shape[0] == rows
        for row, end in zip(logits, range(len(tokens) - rows + 1, len(tokens) + 1), strict=True):
            np.testing.assert_array_equal(row, self.model.logits(tokens[:end]))
        assert self.context.passes[-1] == must
        self.kept = list(tokens)

    def parents(self, count: int, first: int = 0) -> list[int]:
        return [int(self.random.integers(-1, node)) if node else ROOT for node in range(first, first + count)]

    def assert_tree(self, rows: Logits, nodes: list[int], parents: list[int], first: int = 0) -> None:
        for node, row in enumerate(rows, first):
            np.testing.assert_array_equal(row, self.model.logits([*self.tokens, *walked(nodes, parents, node)]))

    def tree(self) -> tuple[list[int], list[int]]:
        """One pass for the tokens and the tree behind them: what the cloud does."""
        nodes = self.ids(int(self.random.integers(0, 7)))
        parents = self.parents(len(nodes))
        must = needed(self.kept, self.tokens, 1)
        rows = self.reading.tree(list(self.tokens), nodes, parents).run()[-len(nodes) - 1 :]
        np.testing.assert_array_equal(rows[0], self.model.logits(self.tokens))
        self.assert_tree(rows[1:], nodes, parents)
        assert self.context.passes[-1] == must + len(nodes)
        self.kept = self.tokens[: len(self.tokens) - must]
        return nodes, parents

    def layers(self) -> tuple[list[int], list[int]]:
        """A pass for the tokens, and one for every layer: what the device does."""
        self.extend(self.tokens, 1)
        nodes: list[int] = []
        parents: list[int] = []
        for _ in range(self.random.integers(1, 4)):
            first, more = len(nodes), self.ids(int(self.random.integers(1, 4)))
            above = self.parents(len(more), first)
            nodes, parents = nodes + more, parents + above
            self.assert_tree(self.reading.grow(more, above).run(), nodes, parents, first)
            assert self.context.passes[-1] == len(more)
        return nodes, parents

    def keep(self, nodes: list[int], parents: list[int]) -> None:
        """Some node, ROOT, or nothing at all: a round that failed is not reported."""
        node = int(self.random.integers(-2, len(nodes)))
        if node >= ROOT:
            self.kept = [*self.tokens, *walked(nodes, parents, node)]
            self.reading.keep(list(self.kept), node)
        path = walked(nodes, parents, node) if self.random.random() < 0.8 else self.ids(2)
        self.commit([*path, *self.ids(1)])

    def commit(self, tokens: list[int]) -> None:
        self.reading.altered(len(self.tokens))
        self.tokens = self.tokens + tokens

    def chain(self) -> None:
        drafts = self.ids(int(self.random.integers(0, 4)))
        self.extend(self.tokens + drafts, int(self.random.integers(1, len(drafts) + 2)))
        accepted = int(self.random.integers(0, len(drafts) + 1))
        self.commit([*drafts[:accepted], *self.ids(int(self.random.integers(1, 3)))])

    def give_up(self) -> None:
        """A pass that is given up before it began, in the midst, or when it was over already."""
        tokens = self.tokens + self.ids(int(self.random.integers(1, 4)))
        held = len(tokens) - needed(self.kept, tokens, 1)
        step = self.reading.extend(list(tokens), 1)
        match int(self.random.integers(3)):
            case 0:
                stop = Stop()
                stop.set()
                assert step.run_unless(stop) is None
            case 1:
                self.context.settle(step.node)
                self.context.rewind(step.keep)
            case 2:
                step.run()
        self.reading.given_up()
        self.kept = tokens[:held]
        self.take_back()

    def take_back(self) -> None:
        """What a lossy method does when the device disagrees."""
        self.tokens = self.tokens[: int(self.random.integers(1, len(self.tokens) + 1))]
        self.reading.altered(len(self.tokens))

    def one(self) -> None:
        match int(self.random.integers(5)):
            case 0:
                self.chain()
            case 1:
                self.keep(*self.tree())
            case 2:
                self.keep(*self.layers())
            case 3:
                self.take_back()
            case 4:
                self.give_up()


def walked(nodes: list[int], parents: list[int], node: int) -> list[int]:
    """The tokens on the path to a node."""
    found: list[int] = []
    while node >= 0:
        found.append(nodes[node])
        node = parents[node]
    return found[::-1]


@examples(100)
@given(SEEDS, st.integers(1, 12), st.booleans())
def test_any_rounds_read_what_is_new_and_nothing_else(seed: int, count: int, prefilled: bool) -> None:
    random = np.random.default_rng(seed)
    rounds = Rounds(random, random.integers(0, len(CLOUD), int(random.integers(1, 6))).tolist())
    if prefilled:
        rounds.kept = rounds.tokens[:-1]
        rounds.reading.prefill(list(rounds.kept)).run()
    for _ in range(count):
        rounds.one()
    rounds.extend(rounds.tokens, 1)
    assert rounds.context.held == rounds.tokens


def test_keeping_nothing_of_a_plain_pass_that_came_after_a_tree() -> None:
    """There is no tree, so ROOT is the context's last token, whatever stood before the nodes of an earlier tree."""
    model = Remembering(CLOUD, seed=3)
    reading = CachedContext(model.open())
    reading.tree([0, 1], [2], [ROOT]).run()
    reading.keep([0, 1, 2], 0)
    reading.extend([0, 1, 2, 3], 1).run()
    reading.keep([0, 1, 2, 3], ROOT)
    logits = reading.extend([0, 1, 2, 3, 4], 1).run()
    np.testing.assert_array_equal(logits[0], model.logits([0, 1, 2, 3, 4]))
