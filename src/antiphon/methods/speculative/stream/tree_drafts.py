"""What the device's model says of a growing tree: children with their chances, node by node (METHODS 3, *a growing tree*)."""

from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from antiphon.core.growth import SIBLINGS, Growth, GrowthRule, Scores
from antiphon.core.tree import ROOT
from antiphon.methods.base import DeviceSide
from antiphon.methods.drafter import Drafter

COOLEST = 0.05
"""The lowest temperature to draft at: at 0 there is one token, but the runners-up are wanted too. Any probs will do here."""
LONGEST = 1e300
"""A time in a race at most, for its logarithm."""


class TreeDrafts:
    """One tree after the other, behind what is committed."""

    def __init__(self, side: DeviceSide, nodes: int) -> None:
        if side.drafter is None:
            raise ValueError("this method drafts, so it needs a model on the device")
        self._side = side
        self.drafter: Drafter = side.drafter
        self.drafter.warm(COOLEST)
        self._ids = side.common.cloud_ids[: side.common.size]
        self._nodes = nodes
        self.rule: GrowthRule = side.memory.learned or GrowthRule(nodes)
        side.memory.learned = self.rule
        self._scores: dict[int, Scores] = {}  # of the children of each node that was read
        self.growth = Growth(nodes)

    def grow(self) -> Generator[Any, Any, None]:
        """Another tree behind what is committed, until it has the nodes that are worth most."""
        self.growth, self._scores = Growth(self._nodes), {}
        nodes = [ROOT] if self._may_go_on(ROOT) else []
        while nodes:
            yield from self._read(nodes)
            nodes = [] if self.drafter.exhausted else self.growth.next(self.rule.bar, self._may_go_on)
        if self.drafter.exhausted:
            self.drafter.tell()
        self.rule.grown(self.growth)

    def _may_go_on(self, node: int) -> bool:
        """Whether a token behind a node could be tested: one fewer than remain, as a verdict brings one of its own."""
        path, transcript = self.growth.tree.path_numbers(node), self._side.transcript
        return len(path) < transcript.remaining - 1 and not (path and transcript.is_end(path[-1]))

    def _read(self, nodes: Sequence[int]) -> Generator[Any, Any, None]:
        growth, side = self.growth, self._side
        for node, probs in zip(nodes, (yield from self.drafter.distributions_after(growth.tree, nodes)), strict=False):
            race = side.chance.race(side.transcript.position + growth.tree.depth(node), self._ids)
            numbers, times = race.first_with_times(probs, SIBLINGS)
            self._scores[node] = -self.drafter.temperature * np.log(np.minimum(times, LONGEST))
            growth.add(node, numbers, self.rule.likeness.chances(self._scores[node]).tolist())

    def learn(self, node: int, number: int) -> None:
        """The cloud's token after a node was this one."""
        if node in self._scores:
            numbers = [self.growth.tree.numbers[child] for child in self.growth.tree.draws[node]]
            self.rule.likeness.learn(self._scores[node], numbers.index(number) if number in numbers else None)
