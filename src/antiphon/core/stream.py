"""When a cloud should wait for drafts, and when a device should make and send them (METHODS 3, *Stream*).

The cloud's next token does not hang on drafts, so it may go on at any time: a pass without drafts brings one token, one with
those that have come more. Waiting costs time and saves passes. A device drafts all the time; a draft is of use if it stands and
comes before the cloud has gone past its place.

All of it is about speed: whatever is chosen, the text is the same.
"""

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from types import MappingProxyType

AUTO, LOCKSTEP = -1.0, math.inf
"""Patience that is chosen, and patience without end."""

RUN_AHEAD = 64
"""Tokens that a cloud goes past the last one that the device is known to have, at most (METHODS 3)."""

SAMPLES = 16
"""Of a round trip, or of the time between verdicts, so many of the newest count."""

SILENCE = 1.0
"""Seconds that a cloud may be silent at least before it counts as gone."""

LOOK_AGAIN = 32
"""Verdicts without a draft after which one is made to learn whether drafts are of use now."""

LONGEST_PAUSE = 1024
"""The same at most, where each look is in vain."""

LEFT_OUT = 2
"""Drafts in sequence that are left out, after which it is thought that all will be."""

GAIN = 1.05
"""How many times as fast waiting must promise to be: the promise hangs on a device that drafts at once."""

SLACK = 0.1
"""The share of a pass by which a draft is sent early: estimates are off."""


@dataclass(frozen=True, slots=True)
class Objective:
    """What is minimised: time plus what else has a price.

    pass_price: of a pass of the cloud, in the time of one. least_chance: with which the next draft must come to be of use, so
    the price of drafting it and of its bits over what a token is worth.
    """

    pass_price: float
    least_chance: float


OBJECTIVES: Mapping[str, Objective] = MappingProxyType(
    {
        "speed": Objective(0.0, 0.02),
        "cloud": Objective(4.0, 0.03),
        "data": Objective(0.0, 0.9),
        "battery": Objective(0.0, 0.5),
    }
)
"""`data`: a draft of 16 bits beside a token's 64, in a frame of its own 80. `battery`: of two drafts one is of use."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait at most so many seconds, or until so many drafts are there."""

    seconds: float = 0.0
    drafts: int = 0


@dataclass(frozen=True, slots=True)
class View:
    """What a choice of patience hangs on. Times in seconds.

    stands: the chance of a draft to stand. response: from the verdict that ends a line until the first draft of the next one is
    there. gap: between two drafts. seconds: of a pass by its width. most: drafts of a pass.
    """

    stands: float
    response: float
    gap: float
    seconds: Callable[[int], float]
    most: int

    def tokens(self, drafts: int) -> float:
        """That a pass over so many drafts brings."""
        return (1.0 - self.stands ** (drafts + 1)) / (1.0 - self.stands)

    def ready(self, seconds: float) -> int:
        """Drafts that are made in so many seconds."""
        return int(min(self.most, seconds / self.gap)) if self.gap > 0 else self.most


def worth(view: View, there: int, price: float) -> int:
    """How many of the drafts that are there a pass should take: those that give the most tokens for its time and price."""
    return max(range(min(there, view.most) + 1), key=lambda drafts: (_rate(view, drafts, price), drafts))


def _rate(view: View, drafts: int, price: float) -> float:
    cost = view.seconds(drafts + 1) + price
    return view.tokens(drafts) / cost if cost > 0 else view.tokens(drafts)


def choose(view: View, price: float, least: float = 0.0, most: float = math.inf) -> Wait:
    """How long to wait for the first drafts behind a line that has ended: as long as time plus price is least a token.

    price: of a pass, in seconds. least, most: seconds to wait.
    """
    waits = [Wait(view.response + drafts * view.gap, drafts + 1) for drafts in range(view.most)]
    able = [wait for wait in waits if wait.seconds <= most]
    best = min(able, key=lambda wait: _waiting(view, wait, price), default=Wait(most, 1))
    if least <= 0 and _streaming(view, price) <= GAIN * _waiting(view, best, price):
        return Wait()
    # A little longer than it should take: to have waited for nothing costs more.
    return Wait(min(most, max(least, 1.25 * best.seconds + 1e-3)), best.drafts)


def _waiting(view: View, wait: Wait, price: float) -> float:
    """Cost of a token where the cloud waits for the first drafts of each line; what is drafted meanwhile is there at once."""
    goes_on, ahead = view.stands ** (wait.drafts + 1), view.ready(view.seconds(1))
    tokens = view.tokens(wait.drafts) + goes_on * view.tokens(ahead)
    passes = view.seconds(wait.drafts + 1) + price + goes_on * (view.seconds(ahead + 1) + price)
    return (wait.seconds + passes) / tokens


def _streaming(view: View, price: float) -> float:
    """Cost of a token where the cloud never waits.

    A line must stand for as many tokens as the cloud makes until its first draft is there; each token that it does not begins
    another one. Then one pass takes what has come.
    """
    alone = view.seconds(1)
    if alone <= 0:
        return price
    late = max(1, math.ceil(view.response / alone))
    stands = view.stands**late
    if stands < 1e-6:
        return alone + price
    single = (1.0 - stands) / ((1.0 - view.stands) * stands)
    drafts = max(1, min(view.most, 1 + view.ready(late * alone - view.response)))
    time = single * (alone + price) + view.seconds(drafts + 1) + price
    return time / (single + view.tokens(drafts))


class Ratio:
    """How often something came about, the newest counting most."""

    def __init__(self, came: float, of: float, keep: float = 0.97) -> None:
        self._came, self._of, self._keep = came, of, keep

    def observe(self, came: float, of: float = 1.0) -> None:
        """Add what was seen."""
        self._came, self._of = self._keep * self._came + came, self._keep * self._of + of

    @property
    def share(self) -> float:
        """Of all."""
        return self._came / self._of


class Use:
    """Whether a cloud has any use for drafts: where its passes cost too much by the token it leaves out what stands.

    After a few of those drafting rests, and is tried again after a while, a longer one each time: while it goes on it costs a
    battery, and, where both ends are one machine, the cloud's time.
    """

    def __init__(self) -> None:
        self.rests = False
        """Whether what is drafted would be left out."""
        self._left = 0  # drafts that stood, were there in time, and were left out, since one was taken
        self._idle, self._pause = 0, LOOK_AGAIN  # verdicts since the last draft, and after which one is made anyway
        self._looked = False

    def came(self, taken: int, left: int) -> None:
        """Of drafts that stood and were there in time a pass took so many, and left so many out."""
        self._left = 0 if taken else self._left + left
        if taken:
            self.rests, self._pause = False, LOOK_AGAIN
        elif left and self._left >= LEFT_OUT:
            self.unwanted()

    def unwanted(self) -> None:
        """Drafts are left out: rest."""
        if self.rests and self._looked:
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
        self.rests, self._looked = True, False

    def verdict(self, *, tested: bool) -> None:
        """A verdict came; whether a draft was where its tokens are."""
        self._looked = self._looked or (self.looks and self.rests)
        self._idle = 0 if tested else self._idle + 1

    @property
    def looks(self) -> bool:
        """Whether it is time for a draft that is not thought to be of use."""
        return self._idle >= self._pause


class Mean:
    """A mean of which the newest values count most; None before the first."""

    def __init__(self, newest: float = 0.2) -> None:
        self.value: float | None = None
        self._newest = newest

    def observe(self, value: float) -> None:
        """Add one."""
        self.value = value if self.value is None else self.value + self._newest * (value - self.value)

    def known(self, otherwise: float = 0.0) -> float:
        """The mean, or what is to be taken for it."""
        return otherwise if self.value is None else self.value


class Newest:
    """The newest values of something that is measured."""

    def __init__(self, count: int = SAMPLES) -> None:
        self._values: deque[float] = deque(maxlen=count)

    def observe(self, value: float) -> None:
        """Add one."""
        self._values.append(value)

    @property
    def known(self) -> bool:
        """Whether there are any."""
        return bool(self._values)

    @property
    def least(self) -> float:
        """The least of them; 0 where there are none."""
        return min(self._values, default=0.0)

    @property
    def median(self) -> float:
        """The one in the middle; 0 where there are none."""
        return median(self._values) if self._values else 0.0


class Trip:
    """The round trip and the cloud's pace, as a device sees them: each verdict says how many of its messages were heard."""

    def __init__(self) -> None:
        self.sent = 0
        """Messages so far."""
        self.heard = 0
        """Of them, as the last verdict says."""
        self.timed: float | None = None
        """The round trip, where it was timed by itself."""
        self.newest = 0.0
        """When the last verdict came."""
        self._verdicts = 0
        self._leaving: deque[tuple[int, float]] = deque()
        self._trips: deque[float] = deque(maxlen=SAMPLES)
        self._gaps: deque[float] = deque(maxlen=SAMPLES)

    def leave(self, now: float) -> None:
        """A message is sent."""
        self.sent += 1
        self._leaving.append((self.sent, now))

    def arrive(self, heard: int, now: float) -> None:
        """A verdict comes, made when so many messages were heard."""
        if self._verdicts:
            self._gaps.append(now - self.newest)
        self._verdicts += 1
        self.newest = now
        left = None
        while self._leaving and self._leaving[0][0] <= heard:
            left = self._leaving.popleft()[1]
        self.heard = heard
        if left is not None:
            self._trips.append(max(0.0, now - left - self.pass_seconds))

    @property
    def pass_seconds(self) -> float:
        """Between two verdicts, usually; 0 if that is not known."""
        return median(self._gaps) if self._gaps else 0.0

    @property
    def round_trip(self) -> float:
        """Seconds: as it was timed, or the least that was seen of late, as messages also wait for a pass to end.

        0 if nothing is known.
        """
        seen = self._trips or [math.inf]
        known = min(*seen, math.inf if self.timed is None else self.timed)
        return known if known < math.inf else 0.0

    @property
    def patience(self) -> float:
        """Seconds without a verdict after which the cloud counts as gone; without end before the first one (METHODS 3)."""
        if not self._verdicts:
            return math.inf
        # As long as only one verdict came, what its message waited tells how long a pass may take.
        waited = self.pass_seconds or max(self._trips, default=0.0)
        return max(SILENCE, 3 * (self.round_trip + waited))

    def passes_until(self, now: float) -> float:
        """Passes that the cloud will have made, behind the last known verdict, when what is sent now gets there."""
        return (now - self.newest + self.round_trip) / self.pass_seconds if self._gaps and self.pass_seconds > 0 else 0.0

    def is_due(self, now: float, gap: float) -> bool:
        """Whether what is to be sent would miss a pass if it waited `gap` seconds for what comes behind it."""
        if not self.pass_seconds:
            return True
        gap += SLACK * self.pass_seconds
        return math.floor(self.passes_until(now + gap)) > math.floor(self.passes_until(now))
