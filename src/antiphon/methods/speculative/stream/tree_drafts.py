"""What the device's model says of a growing tree: children with their chances, node by node (METHODS 3, *a growing tree*).

A tree stays in the model's context while tokens are committed that are its nodes, beside the nodes that are of no use any more:
to drop those means to read again what hangs below the newest token.
"""

from collections.abc import Generator, Mapping, Sequence
from typing import Any

import numpy as np

from antiphon.core.growth import SIBLINGS, Growth, GrowthRule, Scores
from antiphon.core.tree import ROOT
from antiphon.methods.base import DeviceSide
from antiphon.methods.drafter import Drafter
from antiphon.methods.lookup import SURE, join
from antiphon.methods.speculative.options import LookingUp

COOLEST = 0.05
"""The lowest temperature to draft at: at 0 there is one token, but the runners-up are wanted too. Any probs will do here."""
LONGEST = 1e300
"""A time in a race at most, for its logarithm."""
LEAVES = 32
"""Branches of a tree in the context at most: so many each of a few answers at once can have of one model."""
HELD = 48
"""Nodes in the context beyond which it is tidied up."""


class TreeDrafts:
    """A tree behind what is committed."""

    def __init__(self, side: DeviceSide, nodes: int, lookup: LookingUp) -> None:
        if side.drafter is None:
            raise ValueError("this method drafts, so it needs a model on the device")
        self._side = side
        self.drafter: Drafter = side.drafter
        self.drafter.warm(COOLEST)
        self.rule = GrowthRule(nodes)
        self._lookup = side.lookup(self.drafter, lookup)
        self.growth = Growth(nodes)
        self._ids = side.common.cloud_ids[: side.common.size]
        self._base = side.transcript.position  # of the token behind ROOT
        self._since: list[int] = []  # what was committed since: the path to the root of the growth
        self._scores: dict[int, Scores] = {}  # of the children of each node that was read
        self._held: list[int] = []  # nodes in the context

    def next(self) -> list[int]:
        """The nodes to read next, in one pass; none where nothing is worth it."""
        while nodes := self._unread():
            if unsure := [node for node in nodes if not self._look_up(node)]:
                return unsure
        return []

    def _unread(self) -> list[int]:
        growth = self.growth
        if self.drafter.exhausted or not self.may_go_on(growth.root):
            return []
        if growth.root not in growth.tree.draws:
            return [growth.root]
        return growth.next(self.rule.bar, self.may_go_on)[: max(0, LEAVES - self._leaves)]

    def _look_up(self, node: int) -> bool:
        """Give a node a child without reading it, where one is as good as sure."""
        found = self._lookup.after(self._behind(node))
        if not found or found[0].chance < SURE:
            return False
        self.growth.add(node, [found[0].number], [found[0].chance])
        return True

    def _behind(self, node: int) -> list[int]:
        """The tokens from the newest one to a node."""
        return self.growth.tree.path_numbers(node)[self.growth.tree.depth(self.growth.root) :]

    def may_go_on(self, node: int) -> bool:
        """Whether a token behind a node could be tested: one fewer than remain, as a verdict brings one of its own."""
        growth, transcript = self.growth, self._side.transcript
        ended = node != ROOT and transcript.is_end(growth.tree.numbers[node])
        return not ended and growth.depth(node) < transcript.remaining - 1

    def read(self, nodes: Sequence[int]) -> Generator[Any, Any, None]:
        """Read nodes, and give them children. A full context ends drafting for good."""
        path = {step for node in nodes for step in self.growth.tree.path(node)}
        if not self.drafter.holds(ROOT):
            yield from self._read([ROOT])
        if missing := sorted(step for step in path if not self.drafter.holds(step)):
            yield from self._read(missing)

    def _read(self, nodes: Sequence[int]) -> Generator[Any, Any, None]:
        growth, side = self.growth, self._side
        found = yield from self.drafter.distributions_after(growth.tree, nodes)
        if not found:
            self.drafter.tell()
            return
        self._lookup.read()
        self._held += [node for node in nodes if node != ROOT]
        for node, probs in zip(nodes, found, strict=True):
            if node in growth.tree.draws:  # it was only to be held again
                continue
            race = side.chance.race(self._base + growth.tree.depth(node), self._ids)
            numbers, times = race.first_with_times(probs, SIBLINGS)
            self._scores[node] = -self.drafter.temperature * np.log(np.minimum(times, LONGEST))
            chances: list[float] = self.rule.likeness.chances(self._scores[node]).tolist()
            for found_before in self._lookup.after(self._behind(node)):
                join(numbers, chances, found_before)
            growth.add(node, numbers, chances)

    def commit(self, numbers: Sequence[int]) -> Mapping[int, int]:
        """Go on behind committed tokens, in the transcript already. Where nodes that stay are now, by where they were."""
        growth, stands = self.growth, True
        for number in numbers:
            self._learn(number, stands=stands)
            child = growth.child(number) if stands else None
            stands = child is not None
            if child is not None:
                growth.go_to(child)
        self._since += numbers
        self._lookup.commit(numbers)
        if stands and growth.root in self._held and len(self._held) <= HELD and 2 * self._leaves <= LEAVES:
            return {node: node for node in (growth.root, *growth.alive)}
        return self._begin(stands=stands)

    def _begin(self, *, stands: bool) -> Mapping[int, int]:
        """Drop from the context what does not lie on the committed path."""
        growth, moved = self.growth.afresh() if stands else (Growth(self.growth.most), dict[int, int]())
        self.drafter.keep(self.growth.tree, self.growth.root)
        self.drafter.commit(self._since)
        self.growth, self._base, self._since, self._held = growth, self._side.transcript.position, [], []
        self._scores = {moved[node]: scores for node, scores in self._scores.items() if node in moved}
        return moved

    def _learn(self, number: int, *, stands: bool) -> None:
        """The cloud's token behind the root was this one."""
        tree, root = self.growth.tree, self.growth.root
        if stands and root in self._scores:
            # Behind those of the model's are those that were looked up.
            numbers = [tree.numbers[child] for child in tree.draws[root][: len(self._scores[root])]]
            self._lookup.learn(stood=numbers[0] == number)
            self.rule.likeness.learn(self._scores[root], numbers.index(number) if number in numbers else None)

    @property
    def _leaves(self) -> int:
        """Branches of the tree in the context."""
        inner = {self.growth.tree.parents[node] for node in self._held}
        return sum(node not in inner for node in self._held)
