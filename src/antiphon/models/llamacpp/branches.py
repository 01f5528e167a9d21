"""Which sequence holds which node of a token tree: bookkeeping, without a model.

A cache keeps, for each cell, the sequences that hold it, and a token sees the cells that its own sequence holds. So every
leaf has a sequence, which holds the context's tokens and the nodes on the path to the leaf; a node further up is held by the
sequences of all leaves below it. Where a later call continues a leaf, that leaf's sequence goes on; any other new leaf gets
a free sequence, which first takes over what another one holds down to the node that it branches off.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

Take = Callable[[int], list[int]]
"""Gives so many free sequences, or raises CapacityError and gives none."""


class Pool:
    """The sequences that nobody uses."""

    def __init__(self, size: int) -> None:
        self._free = list(range(size - 1, -1, -1))

    @property
    def free(self) -> int:
        """How many there are."""
        return len(self._free)

    def take(self, count: int) -> list[int]:
        """Some of them. Ask for `free` first."""
        return [self._free.pop() for _ in range(count)]

    def give(self, sequence: int) -> None:
        """Put one back."""
        self._free.append(sequence)


@dataclass(frozen=True)
class Branch:
    """A leaf that a call of `grow` adds.

    leaf: its node. depth: of the earlier node that it hangs from, 0 for the context itself. sequence: the leaf's own.
    source: a sequence that holds everything down to `depth`; `sequence` itself where that goes on.
    """

    leaf: int
    depth: int
    sequence: int
    source: int

    @property
    def is_new(self) -> bool:
        """Whether the sequence was free before."""
        return self.sequence != self.source


@dataclass(frozen=True)
class Tree:
    """The pending nodes, by number; a child of the context's last token has depth 1 and parent -1.

    holders: of each node, a sequence that holds it and all above it. tips: the sequence that ends at a leaf.
    """

    parents: Sequence[int] = ()
    depths: Sequence[int] = ()
    holders: Sequence[int] = ()
    tips: Mapping[int, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.parents)

    def grown(self, parents: Sequence[int], own: int, take: Take) -> "Growth":
        """What becomes of it with nodes behind `parents`; `own` is the context's sequence."""
        whole = [*self.parents, *parents]
        depths = [*self.depths]
        for parent in parents:
            depths.append(1 + _at(depths, parent, 0))
        branches, tips = self._branches(whole, own, take)
        below = self._below(whole, branches)
        holders = [*self.holders, *(sequences[0] for sequences in below)]
        return Growth(Tree(whole, depths, holders, tips), depths[len(self) :], below, branches)

    def _branches(self, parents: Sequence[int], own: int, take: Take) -> tuple[list[Branch], dict[int, int]]:
        """A branch for each new leaf, and the sequence that ends at each leaf then."""
        inner, tips = set(parents), dict(self.tips)
        leaves = [node for node in range(len(self), len(parents)) if node not in inner]
        anchors = [self._anchor(parents, leaf) for leaf in leaves]
        # The first new leaf below an old one inherits its sequence, which holds the whole path already; the others need one
        # each.
        going_on = [tips.pop(anchor, None) for anchor in anchors]
        # All at once or none: a tree that does not fit must leave the pool as it was.
        free = take(going_on.count(None))
        branches = []
        for leaf, anchor, sequence in zip(leaves, anchors, going_on, strict=True):
            tips[leaf] = free.pop() if sequence is None else sequence
            source = _at(self.holders, anchor, own) if sequence is None else sequence
            branches.append(Branch(leaf, _at(self.depths, anchor, 0), tips[leaf], source))
        return branches, tips

    def _anchor(self, parents: Sequence[int], node: int) -> int:
        """The node of this tree that a new one hangs from, or -1."""
        while node >= len(self):
            node = parents[node]
        return node

    def _below(self, parents: Sequence[int], branches: Sequence[Branch]) -> list[list[int]]:
        """The sequences of the leaves below each new node."""
        below: list[list[int]] = [[] for _ in range(len(self), len(parents))]
        for branch in branches:
            node = branch.leaf
            while node >= len(self):
                below[node - len(self)].append(branch.sequence)
                node = parents[node]
        return below


@dataclass(frozen=True)
class Growth:
    """What a call of `grow` makes of a tree.

    tree: with the new nodes. depths: of the new nodes. below: the sequences of the leaves below each new node.
    """

    tree: Tree
    depths: Sequence[int]
    below: Sequence[Sequence[int]]
    branches: Sequence[Branch]


def _at(values: Sequence[int], node: int, otherwise: int) -> int:
    """The node's value, or what holds for the context itself."""
    return values[node] if node >= 0 else otherwise
