"""Token trees: expansion, ancestors, paths (METHODS 2, token tree; TSLT 4).

Nodes are numbered from 0 in the order in which they were added, a parent before its children; ROOT is the last committed token,
which is no node. Children that were drawn twice (with replacement) share a node, but keep their multiplicity in `draws`.
"""

from dataclasses import dataclass, field

from antiphon.core.chance import Stream
from antiphon.core.distributions import Probs

ROOT = -1


@dataclass(slots=True)
class TokenTree:
    """A tree of drafted tokens.

    numbers, parents: by node. draws: for each node that was expanded, and ROOT, its children in the order of drawing.
    distributions: for each of them the distribution that the first child was drawn from.
    """

    numbers: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    draws: dict[int, list[int]] = field(default_factory=dict)
    distributions: dict[int, Probs] = field(default_factory=dict)

    def expand(self, node: int, drawn: list[int]) -> list[int]:
        """Give `node` the children that were drawn, by number; returns the nodes that are new."""
        first = len(self.numbers)
        self.draws[node] = []
        for number in drawn:
            self.draws[node].append(self._child(node, number, first))
        return list(range(first, len(self.numbers)))

    def add(self, parent: int, number: int) -> int:
        """Give a node one child more; returns it."""
        self.numbers.append(number)
        self.parents.append(parent)
        self.draws.setdefault(parent, []).append(len(self.numbers) - 1)
        return len(self.numbers) - 1

    def _child(self, parent: int, number: int, first: int) -> int:
        # Only among the children of this expansion: the same token below another node is another node.
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


def without(distribution: Probs, number: int) -> Probs | None:
    """The distribution given that it is not `number`, normalised; None if nothing is left."""
    rest = distribution.copy()
    rest[number] = 0.0
    mass = rest.sum()
    return rest / mass if mass > 0 else None


def draw_children(stream: Stream, distribution: Probs, count: int, *, replacement: bool) -> list[int]:
    """Draw `count` tokens, with or without replacement; fewer if the distribution has no more."""
    drawn: list[int] = []
    rest: Probs | None = distribution
    while rest is not None and len(drawn) < count:
        drawn.append(stream.categorical(rest))
        rest = distribution if replacement else without(rest, drawn[-1])
    return drawn
