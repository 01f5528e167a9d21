"""How a token tree grows: which tokens the cloud's next one is likely to be, and which nodes are worth having (METHODS 3).

Both ends run the same race, so the device knows more than its own probabilities. A token's score in the race is log p - log E
on the device and log q - log E in the cloud: they differ by log q - log p alone, about one logit. So the device's first is the
cloud's the likelier the further it is ahead. In units of logits (score times temperature) the chance of the i-th is
softmax(score / spread), with something left for all tokens behind those that are looked at.

A tree is grown best first: it has the nodes with the most probable paths. So it is deep where the two models agree, and
branches where they may not.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from antiphon.core.tree import ROOT, TokenTree

Scores = NDArray[np.float64]
"""Of the first of a race, the winner first: minus the logarithm of the time E / p, times the temperature; float64."""

SIBLINGS = 16
"""Children of a node at most: behind the 16 first of the race the cloud's token is hardly ever (measured: 9 in 100)."""
SPREADS = (0.1, 0.2, 0.4, 0.6, 0.8, 1.1, 1.6, 3.0)
"""Differences of two models, in logits, that are weighed against each other."""
ELSEWHERE = (0.05, 0.15, 0.5, 1.6, 5.0)
"""Weights of all tokens behind the first ones, were the last of these as good as the winner, whose weight is 1."""
FALL = 0.55
"""By what the logarithm of that weight falls where the last is a logit behind the winner (docs/methods.md)."""
FITTED = 0.8, 1.6
"""Spread and weight of SmolLM2-135M drafting for Gemma 3 270M (docs/methods.md): what is believed before anything is seen."""
BELIEF = 8.0
"""How many tokens must speak against it before others are believed as much."""
MEMORY = 0.99
"""What is left of a token's evidence at the next one: about 100 count."""
LEAST = 0.01
"""A node that is right less often is not worth its bits."""
CHILD = 0.6
"""About the chance of a node's first child."""
AT_ONCE = 7
"""Nodes read in one pass at most: so wide a pass has the logits of token by token (docs/speculative.md#what-moves-logits)."""


class Likeness:
    """How alike the device's and the cloud's scores are: learned from the tokens that the cloud wrote."""

    def __init__(self) -> None:
        spreads, others = np.meshgrid(SPREADS, ELSEWHERE, indexing="ij")
        self._spreads, self._others = spreads.ravel(), others.ravel()
        distance = np.abs(np.log(self._spreads / FITTED[0])) + np.abs(np.log(self._others / FITTED[1]))
        self._prior = -BELIEF * distance / distance.max()
        self._evidence = np.zeros_like(self._prior)

    def chances(self, scores: Scores) -> NDArray[np.float64]:
        """How likely each of the first of a race is the cloud's token: float64, shape (scores,); the rest to 1 is others."""
        belief = self._prior + self._evidence
        weights = np.exp(belief - belief.max())
        found: NDArray[np.float64] = weights @ self._each(scores)[:, :-1] / weights.sum()
        return found

    def learn(self, scores: Scores, place: int | None) -> None:
        """The cloud's token was the one at this place of the race, or none of the first."""
        chances = self._each(scores)[:, -1 if place is None else place]
        self._evidence = MEMORY * self._evidence + np.log(np.maximum(chances, 1e-6))

    def _each(self, scores: Scores) -> NDArray[np.float64]:
        """By every spread: the chances of the first ones, then that of all others; shape (spreads, scores + 1)."""
        weights: NDArray[np.float64] = np.exp((scores - scores.max()) / self._spreads[:, None])
        others = self._others * np.exp(FALL * (scores.min() - scores.max()))
        weights = np.concatenate([weights, others[:, None]], axis=1)
        weights /= weights.sum(axis=1, keepdims=True)
        return weights


class Growth:
    """A tree that grows, and the chance of each of its nodes: that the whole path to it is what the cloud writes.

    most: nodes that count in the end. The tree has more: all children that were found of the nodes that were read. root: the
    newest token; nodes that do not hang below it are of no use any more.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.tree = TokenTree()
        self.root = ROOT
        self.alive: list[int] = []
        """The nodes below the root, a parent before its children."""
        self._chances: list[float] = []

    def add(self, parent: int, numbers: list[int], chances: Sequence[float]) -> None:
        """Give a node that was read its children, different ones, and the chance of each where the path so far is right."""
        path = 1.0 if parent == ROOT else self._chances[parent]
        self.alive += self.tree.expand(parent, numbers)
        self._chances += [path * chance for chance in chances]

    def child(self, number: int) -> int | None:
        """The child of the root that is this token."""
        return next((child for child in self.tree.children(self.root) if self.tree.numbers[child] == number), None)

    def go_to(self, child: int) -> None:
        """Let a child of the root be the root."""
        below = {child}
        for node in self.alive:
            if self.tree.parents[node] in below:
                below.add(node)
        self.alive = [node for node in self.alive if node in below and node != child]
        self.root = child

    def chance(self, node: int) -> float:
        """That what the cloud writes behind the root is the path to this node."""
        if node == self.root:
            return 1.0
        return self._chances[node] / (1.0 if self.root == ROOT else self._chances[self.root])

    def depth(self, node: int) -> int:
        """Steps from the root."""
        return self.tree.depth(node) - self.tree.depth(self.root)

    def best(self) -> list[int]:
        """The most probable nodes, as many as count, a parent before its children: the tree as far as it is known."""
        # No child is more probable than its parent, and of equals the one that was found first, the parent, comes first.
        order = sorted(self.alive, key=lambda node: (-self._chances[node], node))
        return [node for node in order[: self.most] if self.chance(node) >= LEAST]

    @property
    def limit(self) -> float:
        """What a further node must be more probable than to be among the best."""
        best = self.best()
        return self.chance(best[-1]) if len(best) == self.most else LEAST

    def next(self, bar: float, may_go_on: Callable[[int], bool]) -> list[int]:
        """Nodes to read next, in one pass: of the best those whose children may be among them too.

        bar: what a node is likely to need in the end. may_go_on: whether there can be something behind a node at all.
        """
        bar = max(bar, self.limit)
        unread = [node for node in self.best() if node not in self.tree.draws and may_go_on(node)]
        return [node for node in unread if self.chance(node) * CHILD > bar][:AT_ONCE]

    def afresh(self) -> tuple["Growth", dict[int, int]]:
        """The same below the root alone, which is no node then; and the new number of each node."""
        growth, moved = Growth(self.most), {self.root: ROOT}
        for node in self.alive:
            moved[node] = growth.tree.add(moved[self.tree.parents[node]], self.tree.numbers[node])
            growth.alive.append(moved[node])
            growth._chances.append(self.chance(node))
        return growth, moved


class GrowthRule:
    """What is learned of growing trees in the course of an answer.

    nodes: of a tree that count. likeness: how alike the two models are. bar: the chance that the last of them mostly has.
    """

    def __init__(self, nodes: int) -> None:
        self.likeness = Likeness()
        self.bar = 0.6 / nodes

    def grown(self, growth: Growth) -> None:
        """A tree is as it is when it is tested."""
        self.bar += (growth.limit - self.bar) / 5
