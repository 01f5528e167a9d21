"""Chance of coupled drafts: every draw at a position is that position's race, the same on both ends (METHODS 3)."""

from antiphon.core.chance import Chance, Place, Race, Role
from antiphon.core.distributions import Ids, Probs
from antiphon.vocabulary import CommonVocabulary


class Racing:
    """Chance whose every draw at a position is that position's race."""

    def __init__(self, chance: Chance, common: CommonVocabulary) -> None:
        self._chance, self._ids = chance, common.cloud_ids[: common.size]

    def at(self, place: Place, role: Role) -> "RacingStream":
        """The race of the common tokens at the position of `place`, as a stream."""
        return RacingStream(self._chance.race(place.position, self._ids))

    def race(self, position: int, ids: Ids) -> Race:
        """A race itself."""
        return self._chance.race(position, ids)


class RacingStream:
    """A race where a stream is expected."""

    def __init__(self, race: Race) -> None:
        self._race = race

    def bernoulli(self, probability: float) -> bool:
        """No such draw: noise that both ends know must not decide what hangs on a ratio (METHODS 3)."""
        raise RuntimeError("shared noise decides nothing but races")

    def categorical(self, probs: Probs) -> int:
        """The winner."""
        return self._race.winner(probs)

    def first(self, probs: Probs, count: int) -> list[int]:
        """The first of the race."""
        return self._race.first(probs, count)
