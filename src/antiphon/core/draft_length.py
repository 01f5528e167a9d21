"""How far to draft (METHODS 5): whether the next draft is worth its time.

One more draft brings a token if all before it stand and it stands too. It costs the time to draft it, what it adds to the
cloud's pass and to the wire, and, should it be the one that falls, what settling that takes. The answer has a pace, in tokens a
second: while a draft brings more than the pace would bring in the same time, drafting on makes the answer faster, and stopping
does so as soon as it does not. (A pace that is measured while this rule is followed settles at the best that it can reach:
Dinkelbach's method for the largest ratio.)

How likely a draft stands is told by the entropy of the distribution that it was drawn from, learned as the answer goes.
"""

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from antiphon.core.distributions import Logits

EDGES = (0.25, 1.0, 2.0, 3.0, 4.5)
"""Entropies, in nats, between which drafts are taken to be alike."""

FORGET = 0.97
"""What a round still counts one round later: links and texts change."""

FIRST = 2
"""Drafts of the first round. In it the prompt is read, for the first draft too, so a second one is needed to tell how long a
draft takes; more would be dear where no draft pays."""

SECOND = 3
"""Drafts of the second round at most, and one fewer in each one after it until none fell in one: before, nothing tells what a
fall costs. And where the most drafts always pay a shorter round is needed, once, to tell what a draft costs cloud and link."""

DOUBT = 0.1
"""Weight of the belief that drafts, and falls, cost no time in the cloud and on the link, in squared drafts (falls): a fifth of
what two rounds tell that differ by one. With more, a fall that is dear, as where a whole distribution is sent down after it, is
paid for too often before that is believed."""

IDLE = 8
"""Rounds without a draft, at least, before one is drafted to learn whether it pays now."""

LOOKING = 0.02
"""The share of the time without drafts that looking so may take: well below the 5 % that METHODS 5 allows for everything."""

KEEP = 0.98
"""What a tested draft still counts after the next one like it."""


def entropy(logits: Logits) -> float:
    """The entropy of the softmax of `logits`, shape (tokens,), in nats."""
    shifted = logits - logits.max()
    weights = np.exp(shifted)
    total = float(weights.sum())
    np.maximum(shifted, -1e4, out=shifted)  # a token that is ruled out weighs 0, and 0 times infinity is no number
    return float(np.log(total) - (weights @ shifted) / total)


@dataclass(frozen=True, slots=True)
class Known:
    """What stands for the entropy of a draft that comes from no distribution: how likely it stands is known otherwise."""

    chance: float


class Acceptance:
    """How likely drafts stand, by entropy; without data like all drafts, which start at 2 of 3."""

    def __init__(self) -> None:
        self._stood = [0.0] * (len(EDGES) + 1)
        self._tested = [0.0] * (len(EDGES) + 1)

    @property
    def overall(self) -> float:
        """The chance of a draft of which nothing is known."""
        return (sum(self._stood) + 2.0) / (sum(self._tested) + 3.0)

    def of(self, entropy: float | Known) -> float:
        """The chance of a draft whose distribution has this entropy."""
        if isinstance(entropy, Known):
            return entropy.chance
        place = bisect(EDGES, entropy)
        # Four tests' worth of the belief that drafts of this entropy are like any other.
        return (self._stood[place] + 4.0 * self.overall) / (self._tested[place] + 4.0)

    def survival(self, entropies: Sequence[float | Known]) -> float:
        """The chance that drafts with these entropies all stand."""
        return float(np.prod([self.of(entropy) for entropy in entropies]))

    def observe(self, entropy: float | Known, stood: bool) -> None:
        """Learn from a tested draft; from one whose chance is known otherwise there is nothing to learn here."""
        if isinstance(entropy, Known):
            return
        place = bisect(EDGES, entropy)
        self._tested[place] = KEEP * self._tested[place] + 1.0
        self._stood[place] = KEEP * self._stood[place] + stood


class Costs:
    """What the time of a round is made of: something always, and so much for each draft and for a draft that falls.

    By least squares, the newest rounds counting most. The latter two start at 0 and are never below. Each is its estimate less
    its standard error: the link's noise must not keep from drafting, and as it is cut off at 0 it would be a cost on average.
    """

    def __init__(self) -> None:
        self._sums = np.zeros((4, 4))
        self.always = self.of_draft = self.of_fall = 0.0

    def observe(self, drafts: int, fell: bool, seconds: float) -> None:
        """Add a round."""
        row = np.array([1.0, drafts, fell, seconds])
        self._sums = FORGET * self._sums + np.outer(row, row)
        means = self._sums[0] / self._sums[0, 0]
        about_means = self._sums - np.outer(means, self._sums[0])
        # Slopes are drawn towards 0 (DOUBT); the noise is measured about the plain fit, or that pull would count as noise.
        inverse, both = np.linalg.inv(about_means[1:3, 1:3] + DOUBT * np.eye(2)), about_means[1:3, 3]
        fitted = np.linalg.lstsq(about_means[1:3, 1:3], both, rcond=1e-9)[0]
        noise = max(0.0, about_means[3, 3] - both @ fitted) / max(self._sums[0, 0] - 3.0, 1.0)
        slopes = inverse @ both - np.sqrt(np.diag(inverse) * noise)
        self.of_draft, self.of_fall = np.maximum(0.0, slopes).tolist()
        self.always = float(means[3] - self.of_draft * means[1] - self.of_fall * means[2])


@dataclass(frozen=True, slots=True)
class Round:
    """How a round went. Times in seconds.

    made: drafts that `drafting` tells the time of; not the answer's first, for which the prompt had to be read. sent: drafts
    that were sent, some of which may be older. fell: whether one of them did. settled: from then until the verdict on them was
    dealt with. waiting: until the round was over; longer where it had several verdicts. tokens: what it brought. usual: whether
    cloud and link took the time that they take: not where the link was lost, and the cloud had everything to read again.
    """

    made: int
    drafting: float
    sent: int
    fell: bool
    settled: float
    waiting: float
    tokens: int
    usual: bool = True


def _rate(count: float, seconds: float) -> float:
    """0 where no time is known to have passed: a clock may stand still, and what costs least may be estimated below nothing."""
    return float(count / seconds) if seconds > 0 else 0.0


class Pace:
    """What one answer has taught: the time of a draft, of a round, and the tokens that came of it."""

    def __init__(self) -> None:
        self.acceptance = Acceptance()
        self._costs = Costs()
        self._drafting = np.zeros(2)  # drafts, their seconds
        self._overall = np.zeros(2)  # tokens, their seconds
        self._rounds = 0
        self._most: float = FIRST  # drafts of the next round
        self._idle = np.zeros(2)  # rounds since the last draft, their seconds

    def pays(self, entropies: Sequence[float | Known], next: Known | None = None) -> bool:
        """Whether to draft on after drafts with these entropies in a round; with `next`, if that takes no time to make."""
        if len(entropies) >= self._most:
            return False
        if self._rounds == 0:
            return True
        if self._looks:
            return not entropies
        survival = self.acceptance.survival(entropies)
        chance = self.acceptance.overall if next is None else next.chance
        return survival * chance > self.tokens_per_second * self.draft_seconds(survival, next)

    @property
    def tokens_per_second(self) -> float:
        """The pace of late rounds, or that of rounds without drafts if it is known to be higher: they bring a token each."""
        return max(_rate(*self._overall), _rate(1.0, self._costs.always))

    def draft_seconds(self, survival: float, next: Known | None = None) -> float:
        """What one more draft takes: to draft it, unless it is `next`, and for the cloud and the link to deal with it.

        survival: the chance that all before it stand, without which it cannot be the one that falls.
        """
        drafts, seconds = self._drafting
        making = float(seconds / drafts) if drafts and next is None else 0.0
        chance = self.acceptance.overall if next is None else next.chance
        return making + self._costs.of_draft + survival * (1.0 - chance) * self._costs.of_fall

    @property
    def _looks(self) -> bool:
        """Whether it is time for a draft that is not thought to pay."""
        rounds, seconds = self._idle
        return bool(rounds >= IDLE and LOOKING * seconds >= self.draft_seconds(1.0))

    def observe(self, round: Round) -> None:
        """Learn from a round."""
        if self._rounds == 1:  # in the first round the cloud read the prompt: that was better than nothing until now
            self._overall[:], self._costs = 0.0, Costs()
        usual = self._as_usual(round)
        if self._rounds != 1 or round.usual:
            self._costs.observe(usual.sent, usual.fell, usual.settled)
            self._overall = FORGET * self._overall + np.array([usual.tokens, usual.drafting + usual.waiting])
        self._drafting = FORGET * self._drafting + np.array([round.made, round.drafting])
        self._idle = np.zeros(2) if round.sent else self._idle + np.array([1.0, usual.drafting + usual.waiting])
        # Until a round has passed without a fall there is no telling what one costs, so rounds get shorter until then.
        self._most = (self._most - 1 if round.fell else np.inf) if self._rounds else SECOND
        self._rounds += 1

    def _as_usual(self, round: Round) -> Round:
        """The round; where its times are not the usual ones, with those that others lead to expect (of a second none do)."""
        if round.usual or not self._rounds:
            return round
        seconds = self._costs.always + self._costs.of_draft * round.sent + self._costs.of_fall * round.fell
        return replace(round, settled=seconds, waiting=seconds)
