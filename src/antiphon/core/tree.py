"""Token trees: expansion, ancestors, paths (METHODS 2, token tree; TSLT section 4).

Nodes are numbered from 0 in the order in which they were added, a parent before its children; ROOT is the last committed token,
which is no node. Children that were drawn twice (with replacement) share a node, but keep their multiplicity in `draws`.
"""

from dataclasses import dataclass, field

import numpy as np

from antiphon.core.chance import Stream
from antiphon.core.distributions import Probs

ROOT = -1


@dataclass(slots=True)
class TokenTree:
    """A tree of drafted tokens.

    numbers, parents: by node. draws: for each node that was expanded, and ROOT, its children in the order of drawing. laws: for
    each of them the law that the first child was drawn from.
    """

    numbers: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    draws: dict[int, list[int]] = field(default_factory=dict)
    laws: dict[int, Probs] = field(default_factory=dict)

    def expand(self, node: int, drawn: list[int]) -> list[int]:
        """Give `node` the children that were drawn, by number; returns the nodes that are new."""
        first = len(self.numbers)
        self.draws[node] = []
        for number in drawn:
            self.draws[node].append(self._child(node, number, first))
        return list(range(first, len(self.numbers)))

    def _child(self, parent: int, number: int, first: int) -> int:
        for child in range(first, len(self.numbers)):
            if self.numbers[child] == number:
                return child
        self.numbers.append(number)
        self.parents.append(parent)
        return len(self.numbers) - 1

    def children(self, node: int) -> list[int]:
        """The different children of a node, in the order of their first drawing."""
        return list(dict.fromkeys(self.draws.get(node, [])))

    def depth(self, node: int) -> int:
        """Steps from ROOT to `node`."""
        return len(self.path(node))

    @property
    def layers(self) -> int:
        """How deep the tree is."""
        return max((self.depth(node) + 1 for node in self.draws), default=0)

    def path(self, node: int) -> list[int]:
        """The nodes from the first below ROOT down to `node`; none for ROOT."""
        nodes: list[int] = []
        while node != ROOT:
            nodes.append(node)
            node = self.parents[node]
        return nodes[::-1]

    def path_numbers(self, node: int) -> list[int]:
        """The tokens on the path to `node`."""
        return [self.numbers[step] for step in self.path(node)]


def without(law: Probs, number: int) -> Probs | None:
    """The law given that it is not `number`, normalised; None if nothing is left."""
    rest = law.copy()
    rest[number] = 0.0
    mass = rest.sum()
    return rest / mass if mass > 0 else None


def draw_children(stream: Stream, law: Probs, count: int, *, replacement: bool) -> list[int]:
    """Draw `count` tokens, with or without replacement; fewer if the law has no more."""
    drawn: list[int] = []
    rest: Probs | None = law
    while rest is not None and len(drawn) < count:
        drawn.append(stream.categorical(rest))
        rest = law if replacement else without(rest, drawn[-1])
    return drawn


def acceptance_rate(target: Probs, law: Probs, count: int, *, replacement: bool) -> float:
    """The probability that one of `count` children is accepted, in closed form.

    Both laws may have different lengths; the shorter one counts as 0 beyond its end. With replacement it takes `count` steps
    (TSLT section 4.3); without, a sum over the children that can be drawn first, so it is for small counts.
    """
    size = max(len(target), len(law))
    padded = np.pad(target, (0, size - len(target))), np.pad(law, (0, size - len(law)))
    return _rate_with(*padded, count) if replacement else _rate_without(*padded, count)


def _rate_with(target: Probs, law: Probs, count: int) -> float:
    missed, rest = 1.0, target
    for _ in range(count):
        missed *= 1.0 - float(np.minimum(rest, law).sum())
        rest = _residual(rest, law)
    return 1.0 - missed


def _rate_without(target: Probs, law: Probs, count: int) -> float:
    accepted = float(np.minimum(target, law).sum())
    if count == 1:
        return accepted
    rest = _residual(target, law)
    for number in np.flatnonzero(law > target).tolist():
        if (left := without(law, number)) is not None:
            accepted += float(law[number] - target[number]) * _rate_without(rest, left, count - 1)
    return accepted


def _residual(target: Probs, law: Probs) -> Probs:
    rest: Probs = np.clip(target - law, 0.0, None)
    mass = rest.sum()
    return rest / mass if mass > 0 else target
