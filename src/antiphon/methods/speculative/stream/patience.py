"""When the cloud half of a coupled method goes on without drafts, and how many it takes (METHODS 3, *Stream*)."""

from collections import deque
from dataclasses import replace
from typing import Protocol

from antiphon.core.pass_costs import PassCosts
from antiphon.core.stream import AUTO, OBJECTIVES, Newest, Ratio, View, Wait, choose, worth

SOME = 16
"""Passes that tell how many drafts are there for one."""

ENOUGH, HOPED = 8, 0.8
"""Drafts that must be tested before it is known how often they stand, and how often that may be until then."""


class Pacing(Protocol):
    """Says when to go on."""

    def heard(self, count: int, now: float, answers: float | None, *, current: bool) -> None:
        """So many drafts came; none says that none will come.

        answers: when the verdict was sent behind which they begin a line. current: no verdict was on its way meanwhile.
        """
        ...

    def tested(self, stood: int, fell: bool) -> None:
        """Of the drafts of a pass so many stood, and the next one fell or there was none."""
        ...

    def within(self, there: int, since: float, now: float) -> float | None:
        """Seconds to wait for more than the drafts that are there; None: without end. since: when the last verdict was sent."""
        ...

    def take(self, there: int) -> int:
        """Of the drafts that are there, how many the next pass should read."""
        ...

    def unwanted(self) -> bool:
        """Whether to tell the device now that drafts are of no use."""
        ...


class Lockstep:
    """Waits for drafts, or to be asked to go on without, and takes them all."""

    def __init__(self) -> None:
        self._asked = False

    def heard(self, count: int, now: float, answers: float | None, *, current: bool) -> None:
        """Asked for a token where none came; if it was before the last verdict came, that one has it."""
        self._asked = count == 0 and current

    def tested(self, stood: int, fell: bool) -> None:
        """What was asked for is done."""
        self._asked = False

    def within(self, there: int, since: float, now: float) -> float | None:
        """Everything that has come, before the pass: one more draft makes the same pass bring more."""
        return 0.0 if there or self._asked else None

    def take(self, there: int) -> int:
        """All."""
        return there

    def unwanted(self) -> bool:
        """Never."""
        return False


class Streaming:
    """Waits as long as that pays, or is asked for, and takes what pays.

    patience: seconds, or AUTO. least: that the cloud itself asks for.
    """

    def __init__(self, patience: float, least: float, objective: str, costs: PassCosts, most: int) -> None:
        self._fixed = patience if patience == AUTO else max(patience, least)
        self._least, self._objective, self._costs, self._most = least, OBJECTIVES[objective], costs, most
        self._stands, self._response, self._gap = Ratio(2.0, 3.0), Newest(), Newest()
        self._newest: float | None = None  # when drafts of the newest line came last
        self._idle = self._told = False
        self._tested = 0  # drafts
        self._there: deque[int] = deque(maxlen=SOME)  # drafts for each of the last passes
        self._wait = Wait()

    def heard(self, count: int, now: float, answers: float | None, *, current: bool) -> None:
        """Learn how fast drafts come."""
        self._idle = count == 0
        self._told = self._told and (count == 0 or answers is None)
        if count and answers is not None:
            # What came with the first one was made behind it; and of a line that went on it was made before.
            self._response.observe(max(self._gap.least, now - answers - (count - 1) * self._gap.least))
        elif count and self._newest is not None:
            self._gap.observe((now - self._newest) / count)
        self._newest = now if count else None

    def tested(self, stood: int, fell: bool) -> None:
        """Learn how often drafts stand, and choose how long to wait for the next line."""
        for _ in range(stood):
            self._stands.observe(1.0)
        if fell:
            self._stands.observe(0.0)
        self._tested += stood + fell
        self._wait = self._chosen()

    def within(self, there: int, since: float, now: float) -> float | None:
        """As long as was chosen when the last pass was over; not at all where the device drafts nothing."""
        if self._idle or there >= max(1, self._wait.drafts):
            return 0.0
        return max(0.0, since + self._wait.seconds - now)

    def take(self, there: int) -> int:
        """As many as pay in the measured cost of passes."""
        self._there.append(there)
        return worth(self._view, there, self._price)

    def unwanted(self) -> bool:
        """Where no pass over any number of drafts pays: once for a line, however much of it comes."""
        told, self._told = self._told, self._told or (self._fixed <= 0 and self._pays_never())
        return self._told and not told

    def _pays_never(self) -> bool:
        if not self._costs.measured(1):
            return False
        view = self._view
        if self._tested < ENOUGH:  # they may yet stand more often than they are taken to
            view = replace(view, stands=max(view.stands, HOPED))
        # Of wider passes than drafts come for nothing is known, and they need not pay.
        return worth(view, max((1, *self._there)), self._price) == 0

    def _chosen(self) -> Wait:
        if self._fixed == 0.0:
            return Wait()
        if not self._response.known:  # nothing has come yet: what to wait for is not known
            return Wait(max(0.0, self._fixed, self._least), 1)
        if self._fixed == AUTO:
            return choose(self._view, self._price, self._least)
        return choose(self._view, self._price, min(self._fixed, 1e-9), self._fixed)

    @property
    def _price(self) -> float:
        # Who waits for so long by order has a price for a pass, if none was named.
        passes = self._objective.pass_price or (OBJECTIVES["cloud"].pass_price if self._fixed > 0 else 0.0)
        return passes * self._costs.seconds(1)

    @property
    def _view(self) -> View:
        stands = min(0.999, self._stands.share)
        return View(stands, self._response.median, self._gap.least, self._costs.seconds, self._most)
