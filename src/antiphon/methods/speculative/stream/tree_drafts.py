"""What the device's model says of a growing tree: children with their chances, node by node (METHODS 3, *a growing tree*)."""

from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from antiphon.core.growth import SIBLINGS, Growth, GrowthRule, Scores
from antiphon.core.tree import ROOT
from antiphon.methods.base import DeviceSide
from antiphon.methods.drafter import Drafter
from antiphon.methods.speculative.options import LookingUp
from antiphon.methods.speculative.stream.looking_up import SURE, join, lookup_of

COOLEST = 0.05
"""The lowest temperature to draft at: at 0 there is one token, but the runners-up are wanted too. Any probs will do here."""
LONGEST = 1e300
"""A time in a race at most, for its logarithm."""


class TreeDrafts:
    """One tree after the other, behind what is committed."""

    def __init__(self, side: DeviceSide, nodes: int, lookup: LookingUp) -> None:
        if side.drafter is None:
            raise ValueError("this method drafts, so it needs a model on the device")
        self._side = side
        self.drafter: Drafter = side.drafter
        self.drafter.warm(COOLEST)
        self._ids = side.common.cloud_ids[: side.common.size]
        self._nodes = nodes
        self.rule: GrowthRule = side.memory.learned or GrowthRule(nodes)
        side.memory.learned = self.rule
        self.lookup = lookup_of(side, self.drafter, lookup)
        self._unread: set[int] = set()  # nodes that have a child without being read
        self._scores: dict[int, Scores] = {}  # of the children of each node that was read
        self.growth = Growth(nodes)

    def grow(self) -> Generator[Any, Any, None]:
        """Another tree behind what is committed, until it has the nodes that are worth most."""
        self.growth, self._scores, self._unread = Growth(self._nodes), {}, set()
        nodes = [ROOT] if self._may_go_on(ROOT) else []
        while nodes:
            if unsure := [node for node in nodes if not self._look_up(node)]:
                yield from self._read(unsure)
            nodes = [] if self.drafter.exhausted else self.growth.next(self.rule.bar, self._may_go_on)
        if self.drafter.exhausted:
            self.drafter.tell()
        self.rule.grown(self.growth)

    def _may_go_on(self, node: int) -> bool:
        """Whether a token behind a node could be tested: one fewer than remain, as a verdict brings one of its own."""
        path, transcript = self.growth.tree.path_numbers(node), self._side.transcript
        return len(path) < transcript.remaining - 1 and not (path and transcript.is_end(path[-1]))

    def _look_up(self, node: int) -> bool:
        """Give a node a child without reading it, where one is as good as sure."""
        found = self.lookup.after(self.growth.tree.path_numbers(node))
        if not found or found[0].chance < SURE:
            return False
        self.growth.add(node, [found[0].number], [found[0].chance])
        self._unread.add(node)
        return True

    def _read(self, nodes: Sequence[int]) -> Generator[Any, Any, None]:
        growth, side = self.growth, self._side
        read = yield from self._read_above(nodes)
        probs_after = dict(zip(read, (yield from self.drafter.distributions_after(growth.tree, read)), strict=False))
        self.lookup.read()
        for node, probs in ((node, probs_after[node]) for node in nodes if node in probs_after):
            race = side.chance.race(side.transcript.position + growth.tree.depth(node), self._ids)
            numbers, times = race.first_with_times(probs, SIBLINGS)
            self._scores[node] = -self.drafter.temperature * np.log(np.minimum(times, LONGEST))
            chances: list[float] = self.rule.likeness.chances(self._scores[node]).tolist()
            for found in self.lookup.after(growth.tree.path_numbers(node)):
                join(numbers, chances, found)
            growth.add(node, numbers, chances)

    def _read_above(self, nodes: Sequence[int]) -> Generator[Any, Any, list[int]]:
        """What to read for these nodes: them, and before them those above them that were not read; ROOT is read by itself."""
        tree = self.growth.tree
        if ROOT in self._unread:
            yield from self.drafter.distributions_after(tree, [ROOT])
        above = [step for node in nodes for step in tree.path(node) if step in self._unread]
        self._unread -= {ROOT, *above}
        return [*dict.fromkeys(above), *nodes]

    def keep(self, node: int) -> None:
        """The path to a node was accepted: what was read of it stands."""
        if self.growth.tree.draws and ROOT not in self._unread:
            self.drafter.keep(self.growth.tree, node)

    def commit(self, numbers: Sequence[int]) -> None:
        """Go past committed tokens."""
        self.drafter.commit(numbers)
        self.lookup.commit(numbers)

    def learn(self, node: int, number: int) -> None:
        """The cloud's token after a node was this one."""
        if node in self._scores:
            # Behind those of the model's are those that were looked up.
            children = self.growth.tree.draws[node][: len(self._scores[node])]
            numbers = [self.growth.tree.numbers[child] for child in children]
            self.lookup.learn(stood=numbers[0] == number)
            self.rule.likeness.learn(self._scores[node], numbers.index(number) if number in numbers else None)
