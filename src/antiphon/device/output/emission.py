"""Tokens of an answer as they arrived, and what that tells."""

from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise

from antiphon.methods.effects import Consulted, Kind
from antiphon.methods.outcome import UNTESTED, Outcome, by_level, sets_of_siblings


@dataclass(frozen=True, slots=True)
class Emission:
    """Tokens that were committed together: when, where each came from, and the drafts that were sent and tested for them."""

    time: float
    kinds: tuple[Kind, ...]
    drafted: int
    tested: Outcome = UNTESTED
    consulted: Consulted | None = None

    def first(self, count: int) -> "Emission":
        """What is left of it where only so many of its tokens count."""
        return replace(self, kinds=self.kinds[:count], tested=self.tested.first(count))


class Emissions:
    """The emissions of an answer that began at `started`: where its tokens came from, and when."""

    def __init__(self, started: float) -> None:
        self.started = started
        self.emissions: list[Emission] = []

    @property
    def kinds(self) -> Counter[Kind]:
        """Where they came from."""
        return Counter(kind for emission in self.emissions for kind in emission.kinds)

    @property
    def consulted(self) -> list[Consulted]:
        """What steps of a mixture took, those of a stop string included."""
        return [emission.consulted for emission in self.emissions if emission.consulted is not None]

    @property
    def decided(self) -> int:
        """Tokens of a mixture that evidence decided."""
        return sum(
            emission.consulted is not None and emission.consulted.effort is not None
            for emission in self.emissions
            if emission.kinds
        )

    @property
    def first_token_s(self) -> float:
        """Seconds from the request to the first token. Raises IndexError if there is none."""
        return self._times()[0] - self.started

    @property
    def seconds(self) -> float:
        """Seconds from the request to the last token. Raises IndexError if there is none."""
        return self._times()[-1] - self.started

    def acceptance_by_depth(self) -> list[tuple[int, int]]:
        """At the first, second, ... level of a round: how many drafts stood, and how many were tested."""
        return by_level([emission.tested for emission in self.emissions])

    def sets_of_siblings(self) -> tuple[int, int]:
        """Of how many sets of siblings one stood, and how many were tested."""
        return sets_of_siblings([emission.tested for emission in self.emissions])

    def intervals(self) -> list[float]:
        """Seconds between tokens that follow each other; those of one round arrive together, 0 apart."""
        times = self._times()
        return [after - before for before, after in pairwise(times)]

    def _times(self) -> list[float]:
        return [emission.time for emission in self.emissions for _ in emission.kinds]
