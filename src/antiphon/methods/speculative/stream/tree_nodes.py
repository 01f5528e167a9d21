"""The nodes of a growing tree that still matter to the cloud (METHODS 3, *a growing tree*).

Nodes are numbered in the order in which they are sent, from 0 in each epoch; a parent is such a number, or ROOT, the last token
that the device knew when the epoch began. Alive is what hangs below the cloud's newest token. What cannot matter any more is
dropped in silence, for the device cannot know it yet: nodes beside the committed tokens, nodes below a dropped one, and those
that are too many. So what is kept is bounded, whatever comes.
"""

from dataclasses import dataclass

from antiphon.core.tree import ROOT, TokenTree
from antiphon.errors import ProtocolError


@dataclass(frozen=True, slots=True)
class LiveNode:
    """A node below the newest token. place: among all children of its parent that were sent."""

    parent: int
    number: int
    place: int


class LiveNodes:
    """The nodes of one epoch. most: that may be alive at once."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.begin()

    def begin(self) -> None:
        """Another epoch begins: nothing of the one before is of use."""
        self.sent = 0
        """Nodes of this epoch so far."""
        self.alive: dict[int, LiveNode] = {}
        self._committed: list[int] = []  # since the epoch began
        self._path = [ROOT]  # the nodes that the first of these are; ROOT for the token before them
        self._depths = {ROOT: 0}  # by node of the path
        self._children = {ROOT: 0}  # of each node that is alive or on the path, as many as were sent

    def add(self, parent: int, number: int) -> None:
        """A node came. Raises ProtocolError if it is alive already."""
        node, self.sent = self.sent, self.sent + 1
        if (place := self._children.get(parent)) is None:
            return  # an orphan
        self._children[parent] += 1
        depth = self._depths.get(parent)
        if depth is None or depth == len(self._committed):
            self._add_alive(node, LiveNode(parent, number, place))
        # Too late to be tested: if it is what was committed, what comes below it may still be of use.
        elif depth + 1 == len(self._path) and self._committed[depth] == number:
            self._go_to(node)

    def _add_alive(self, node: int, added: LiveNode) -> None:
        if any(other.parent == added.parent and other.number == added.number for other in self.alive.values()):
            raise ProtocolError("a node has the same child twice", "out-of-range")
        if len(self.alive) < self._most:
            self.alive[node] = added
            self._children[node] = 0

    @property
    def levels(self) -> int:
        """How deep the nodes alive go."""
        depths: dict[int, int] = {}
        for node, child in self.alive.items():
            depths[node] = 1 + depths.get(child.parent, 0)
        return max(depths.values(), default=0)

    def commit(self, number: int) -> None:
        """Go past a committed token: only what hangs below it stays alive."""
        newest = self._path[-1] if len(self._path) == len(self._committed) + 1 else None
        self._committed.append(number)
        below = {node: child for node, child in self.alive.items() if child.parent == newest and child.number == number}
        kept, lost = set(below), dict(self.alive)
        for node, child in self.alive.items():  # in the order of arrival, so a parent comes first
            if node in kept or child.parent in kept:
                kept.add(node)
                del lost[node]
        self.alive = {node: child for node, child in self.alive.items() if node in kept and node not in below}
        for node in lost:
            del self._children[node]
        for node in below:
            self._go_to(node)

    def _go_to(self, node: int) -> None:
        self._depths[node] = len(self._path)
        self._path.append(node)
        self._children.setdefault(node, 0)

    def tree(self, most: int, deepest: int) -> tuple[TokenTree, list[int]]:
        """The first `most` that came of those alive, at most so deep, as a tree; and the place of each among its siblings."""
        tree, at = TokenTree(), {self._path[-1]: ROOT}
        places: list[int] = []
        for node, child in self.alive.items():
            parent = at.get(child.parent)
            if len(places) < most and parent is not None and tree.depth(parent) < deepest:
                at[node] = tree.add(parent, child.number)
                places.append(child.place)
        return tree, places
