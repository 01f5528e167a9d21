"""What a device has learned of a stream of trees: which nodes are worth reading, and when they must leave (METHODS 3)."""

from collections.abc import Sequence

import numpy as np

from antiphon.core.pass_costs import PassCosts
from antiphon.core.stream import OBJECTIVES, Mean, Ratio, Trip, Use, View
from antiphon.core.tree_stream import LEVELS, choose_wait
from antiphon.methods.speculative.options import InStream


class TreePace:
    """As `Pace` for a line: a node is of use if it stands, and comes before the cloud has gone past it, and is taken."""

    def __init__(self, options: InStream) -> None:
        self.trip = Trip()
        self.drafting = Mean()
        """Seconds of a pass of the device."""
        self.costs = PassCosts()
        """The same, by its width."""
        self._objective, self._patience = OBJECTIVES[options.objective], options.seconds
        self._stands = Ratio(2.0, 3.0)  # of the levels of a tree
        self.use = Use()

    @property
    def least(self) -> float:
        """The chance that a node must have to be sent, for its own sake; half of it is for its children's."""
        return self._objective.least_chance / 2

    def resume(self) -> None:
        """A new session: nothing is known of its link."""
        self.trip = Trip()

    def tested(self, stood: int, *, fell: bool) -> None:
        """Learn from a verdict's tokens: at so many levels a node is among them; at the next one nodes were, and none is."""
        for _ in range(stood):
            self._stands.observe(1.0)
        if fell:
            self._stands.observe(0.0)
        self.use.verdict(tested=bool(stood) or fell)

    def pays(self, chance: float, depth: int, now: float) -> bool:
        """Whether to read a node of this chance and depth: for its children, which come in a pass from now."""
        if self.use.looks or self.use.rests:
            return self.use.looks and (not depth or not self.use.rests)
        # The first levels are past before they are there: nodes must stand there too.
        behind = max(0.0, self.trip.passes_until(now + self.drafting.known()) - depth)
        stands = self._stands.share ** (int(behind) + 1)
        return bool(chance * stands >= self._objective.least_chance)

    def width(self, chances: Sequence[float]) -> int:
        """How many of these nodes to read in one pass, the likeliest first: those that bring the most chance for its time."""
        if self.costs.seconds(1) <= 0:
            return len(chances)
        rates = np.cumsum(chances) / [self.costs.seconds(width) for width in range(1, len(chances) + 1)]
        return len(chances) - int(rates[::-1].argmax())

    def read(self, width: int, seconds: float) -> None:
        """A pass of this width took so long."""
        self.drafting.observe(seconds)
        self.costs.observe(width, seconds)

    def must_leave(self, levels: int, now: float) -> bool:
        """Whether nodes must leave now, of a tree of so many levels; else they wait for the next ones."""
        return levels <= self._awaited or self.trip.is_due(now, self.drafting.known())

    @property
    def _awaited(self) -> int:
        """Levels of a tree that the cloud waits for."""
        if self._patience == 0.0:
            return 0
        gap, alone = self.drafting.known(), self.trip.pass_seconds
        view = View(min(0.999, self._stands.share), self.trip.round_trip + gap, gap, lambda width: alone, LEVELS)
        if self._patience > 0:
            return LEVELS if self._patience > view.response else 0
        wait = choose_wait(view, self._objective.pass_price * alone)
        return wait.drafts if wait.seconds > view.response else 0
