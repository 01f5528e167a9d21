"""What a device has learned of a stream, and how far it should draft (METHODS 3, *Stream*)."""

import math
from collections.abc import Sequence

from antiphon.core.draft_length import Acceptance
from antiphon.core.stream import OBJECTIVES, Mean, Trip, Use, View, choose
from antiphon.methods.drafter import Guess
from antiphon.methods.speculative.options import InStream

NEAR, FIRST = 0.4, 3
"""The share of a pass within which a first draft must get to the cloud for it to wait; and how many leave at once then."""


class Pace:
    """Says whether the next draft is of use, and when drafts must leave.

    A draft is of use if it stands, and comes before the cloud has gone past its place, and is taken by a pass.
    """

    def __init__(self, options: InStream, most: int) -> None:
        self.trip = Trip()
        self.acceptance = Acceptance()
        self.drafting = Mean()
        """Seconds of a draft."""
        self._objective, self._most = OBJECTIVES[options.objective], most
        self._patience = options.seconds
        self.use = Use()

    def resume(self) -> None:
        """A new session: nothing is known of its link."""
        self.trip = Trip()

    def tested(self, stood: Sequence[Guess], next: Guess | None) -> None:
        """Learn from a verdict's tokens: these drafts are among them, and `next`, which was to be the one behind, is not."""
        for guess in stood:
            self.acceptance.observe(guess.entropy, stood=True)
        if next is not None:
            self.acceptance.observe(next.entropy, stood=False)
        self.use.verdict(tested=bool(stood) or next is not None)

    def pays(self, line: Sequence[Guess], now: float, next: Guess | None) -> bool:
        """Whether to draft on behind this line; with `next`, if that was looked up."""
        # What is looked up costs nothing: it may still be of use where a pass of the device is not.
        if self.use.looks or (self.use.rests and next is None):
            return self.use.looks and (not line or not self.use.rests)
        stands = self.acceptance.survival([guess.entropy for guess in line])
        alone = self.acceptance.overall if next is None else self.acceptance.of(next.entropy)
        gap = self.drafting.known() if next is None else 0.0
        chance: float = stands * alone ** self._until_in_time(len(line), now, gap)
        return chance >= self._objective.least_chance

    def _until_in_time(self, drafts: int, now: float, gap: float) -> float:
        """Further drafts behind a line of so many until one is there in time, that one too; infinite if none ever is.

        gap: seconds to make one. The first places of a line are past before it is there: it must stand for those too. While the
        device makes them the cloud goes on.
        """
        alone = self.trip.pass_seconds
        late = self.trip.passes_until(now + gap) - drafts
        if late < 1.0:
            return 1.0
        gains = 1.0 - gap / alone if alone > 0 else 1.0
        return math.floor(late / gains) + 1.0 if gains > 0 else math.inf

    def must_leave(self, drafts: int, now: float) -> bool:
        """Whether drafts must leave now, the last of so many in their line; else they wait for the next one."""
        return drafts <= self._awaited or self.trip.is_due(now, self.drafting.known())

    @property
    def _awaited(self) -> int:
        """Drafts of a line that the cloud waits for."""
        if self._patience == 0.0:
            return 0
        gap, alone = self.drafting.known(), self.trip.pass_seconds
        view = View(min(0.999, self.acceptance.overall), self.trip.round_trip + gap, gap, lambda width: alone, self._most)
        if self._patience > 0:
            return choose(view, 0.0, 1e-9, self._patience).drafts
        # The cloud's own choice hangs on what it has seen, which is not the same: where it may wait the first drafts leave at
        # once.
        price, near = self._objective.pass_price * alone, view.response < NEAR * alone
        return max(FIRST if near else 0, choose(view, price).drafts)
