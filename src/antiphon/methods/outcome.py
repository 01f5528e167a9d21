"""Which drafts were tested, and which of them stood: of one round, and of many."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """The drafts that a verdict was about: how many at each level of the round, and at how many levels one stood.

    A chain has one draft a level. In a tree siblings are tested in the order of drawing until one stands, then those below it.
    A draft counts also where it was on its way still, so that the device alone finds out whether it stands.
    """

    drafts: tuple[int, ...] = ()
    stood: int = 0

    @classmethod
    def in_chain(cls, stood: int, *, fell: bool) -> "Outcome":
        """So many drafts stood, and the next one fell or there was none."""
        return cls((1,) * (stood + fell), stood)

    def first(self, levels: int) -> "Outcome":
        """What is left of it where only so many levels count."""
        return Outcome(self.drafts[:levels], min(self.stood, levels))


UNTESTED = Outcome()
"""No draft was."""


def by_level(rounds: Sequence[Outcome]) -> list[tuple[int, int]]:
    """At the first, second, ... level of these rounds: how many drafts stood, and how many were tested."""
    deepest = max((len(outcome.drafts) for outcome in rounds), default=0)
    return [_at_level(rounds, level) for level in range(deepest)]


def sets_of_siblings(rounds: Sequence[Outcome]) -> tuple[int, int]:
    """Of how many sets of siblings one stood, and how many were tested; in a chain each draft is a set."""
    return sum(outcome.stood for outcome in rounds), sum(len(outcome.drafts) for outcome in rounds)


def _at_level(rounds: Sequence[Outcome], level: int) -> tuple[int, int]:
    stood = sum(outcome.stood > level for outcome in rounds)
    return stood, sum(outcome.drafts[level] for outcome in rounds if len(outcome.drafts) > level)
