"""Tokens of an answer as they arrived."""

from dataclasses import dataclass, replace

from antiphon.methods.effects import Consulted, Kind
from antiphon.methods.outcome import UNTESTED, Outcome


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
