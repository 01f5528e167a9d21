"""How far to draft (METHODS 5): whether the next draft is worth its time.

One more draft brings a token if all before it stand and it stands too. It costs the time to draft it, and what it adds to the
cloud's pass and to the wire. The answer has a pace, in tokens a second: while a draft brings more than the pace would bring in
the same time, drafting on makes the answer faster, and stopping does so as soon as it does not. (A pace that is measured while
this rule is followed settles at the best that it can reach: Dinkelbach's method for the largest ratio.)

How likely a draft stands is told by the entropy of the law that it was drawn from, learned as the answer goes.
"""

from bisect import bisect
from collections.abc import Sequence

import numpy as np

from antiphon.core.distributions import Logits

EDGES = (0.25, 1.0, 2.0, 3.0, 4.5)
"""Entropies, in nats, between which drafts are taken to be alike."""

FORGET = 0.97
"""What a round still counts one round later: links and texts change."""

FIRST = (3, 3, 1)
"""Drafts of the first rounds, which only learn; the times of the very first are not typical: both ends read the prompt."""

PATIENCE, LONGEST_PATIENCE = 12, 96
"""Rounds without a draft before one is drafted to learn whether it pays now: at first, and after it often did not."""

KEEP = 0.98
"""What a tested draft still counts after the next one like it."""


def entropy(logits: Logits) -> float:
    """The entropy of the softmax of `logits`, shape (tokens,), in nats."""
    shifted = logits - logits.max()
    weights = np.exp(shifted)
    total = float(weights.sum())
    np.maximum(shifted, -1e4, out=shifted)  # a token that is ruled out weighs 0, and 0 times infinity is no number
    return float(np.log(total) - (weights @ shifted) / total)


class Acceptance:
    """How likely drafts stand, by entropy; without data like all drafts, which start at 2 of 3."""

    def __init__(self) -> None:
        self._stood = [0.0] * (len(EDGES) + 1)
        self._tested = [0.0] * (len(EDGES) + 1)

    @property
    def overall(self) -> float:
        """The chance of a draft of which nothing is known."""
        return (sum(self._stood) + 2.0) / (sum(self._tested) + 3.0)

    def of(self, entropy: float) -> float:
        """The chance of a draft whose law has this entropy."""
        place = bisect(EDGES, entropy)
        return (self._stood[place] + 4.0 * self.overall) / (self._tested[place] + 4.0)

    def survival(self, entropies: Sequence[float]) -> float:
        """The chance that drafts with these entropies all stand."""
        return float(np.prod([self.of(entropy) for entropy in entropies]))

    def observe(self, entropy: float, stood: bool) -> None:
        """Learn from a tested draft."""
        place = bisect(EDGES, entropy)
        self._tested[place] = KEEP * self._tested[place] + 1.0
        self._stood[place] = KEEP * self._stood[place] + stood


class Line:
    """A straight line through points (x, y), the newest counting most; its slope starts at 0 and is never below."""

    def __init__(self) -> None:
        self._sums = np.zeros(5)

    def observe(self, x: float, y: float) -> None:
        """Add a point."""
        self._sums = FORGET * self._sums + (1.0, x, x * x, y, x * y)

    @property
    def slope(self) -> float:
        """Its slope, drawn towards 0 by the weight of half a squared unit of x."""
        count, x, xx, y, xy = self._sums
        if count == 0:
            return 0.0
        return max(0.0, float((xy - x * y / count) / (xx - x * x / count + 0.5)))


class Pace:
    """What one answer has taught: the time of a draft, of a round by its drafts, and the tokens that came of it."""

    def __init__(self) -> None:
        self.acceptance = Acceptance()
        self._wait = Line()
        self._drafting = np.zeros(2)  # drafts, their seconds
        self._overall = np.zeros(2)  # tokens, their seconds
        self._rounds = 0
        self._idle, self._patience = 0, PATIENCE

    def pays(self, entropies: Sequence[float]) -> bool:
        """Whether to draft on after drafts with these entropies in a round."""
        drafts = len(entropies)
        if self._rounds < len(FIRST):
            return drafts < FIRST[self._rounds]
        if self._idle >= self._patience:
            return drafts == 0
        return self.acceptance.survival(entropies) * self.acceptance.overall > self.tokens_per_second * self.draft_seconds

    @property
    def tokens_per_second(self) -> float:
        """The pace of late rounds."""
        tokens, seconds = self._overall
        return float(tokens / seconds) if seconds > 0 else 0.0

    @property
    def draft_seconds(self) -> float:
        """What one more draft takes: to draft it, and for the cloud and the link to deal with it."""
        drafts, seconds = self._drafting
        return (float(seconds / drafts) if drafts else 0.0) + self._wait.slope

    def observe(self, fresh: int, sent: int, tokens: int, drafting: float, waiting: float) -> None:
        """Learn from a round: `fresh` drafts took `drafting` seconds, and with `sent` of them the rest of it took `waiting`.

        tokens: what the round brought.
        """
        if self._rounds > 0:
            self._drafting = FORGET * self._drafting + (fresh, drafting)
            self._overall = FORGET * self._overall + (tokens, drafting + waiting)
            self._wait.observe(sent, waiting)
        self._rounds += 1
        if self._idle >= self._patience:  # that round was to look whether drafts pay now
            self._patience, self._idle = min(2 * self._patience, LONGEST_PATIENCE), 0
        elif sent:
            self._patience, self._idle = PATIENCE, 0
        else:
            self._idle += 1
