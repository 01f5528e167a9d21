"""`coupled`: coupled drafting (METHODS 3). No probabilities on the wire.

Both ends know the same noise for every position and token. The device drafts the winner of the race over its law; the cloud's
next token is the winner over the target, always; a draft stands if they are the same token. So the answer depends on the
cloud's model, the prompt, the sampling parameters and the seed alone: it is the one that `cloud` writes with that seed. Up:
ids. Down: a count and one token.
"""

from collections.abc import Generator, Sequence
from typing import Any

from antiphon.config import CoupledOptions
from antiphon.core.chance import Chance, Race, Role
from antiphon.core.distributions import Probs
from antiphon.core.rounding import exactly
from antiphon.methods import accounting
from antiphon.methods.base import DeviceSide, Method
from antiphon.methods.chain import ChainCloud, ChainDevice, Proposed
from antiphon.methods.drafter import Drafted
from antiphon.wire.packing import Reader, Writer


class Racing:
    """Chance whose every draw at a position is that position's race."""

    def __init__(self, chance: Chance) -> None:
        self._chance = chance

    def at(self, position: int, role: Role) -> "RacingStream":
        """The race at `position`, as a stream."""
        return RacingStream(self._chance.race(position))

    def race(self, position: int) -> Race:
        """The race itself."""
        return self._chance.race(position)


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


class CoupledDevice(ChainDevice):
    """Drafts the winners of the races."""

    def __init__(self, side: DeviceSide, options: CoupledOptions) -> None:
        super().__init__(side, options)
        self.quantise = exactly
        self.draft_chance = Racing(side.chance)

    def pack(self, writer: Writer, drafts: Sequence[Drafted]) -> None:
        """Nothing but the ids, which are written already."""


class CoupledCloud(ChainCloud[Proposed]):
    """Runs the races over the targets."""

    def unpack(self, reader: Reader, numbers: Sequence[int]) -> list[Proposed]:
        """Nothing but the ids, which are read already."""
        return [Proposed(number, 1.0) for number in numbers]

    def stands(self, target: Probs, draft: Proposed, position: int) -> bool:
        """Whether the draft is the winner."""
        return self.bonus(target, position) == draft.number

    def correct(self, writer: Writer, target: Probs, draft: Proposed, position: int) -> Generator[Any, Any, int]:
        """The winner instead."""
        yield from ()
        token = self.bonus(target, position)
        writer.number(token, self.side.common.target_bits)
        return token

    def bonus(self, target: Probs, position: int) -> int:
        """The winner."""
        return self.side.chance.race(position).winner(target)


_SUMMARY = "ids up, a count and one token down: both ends run the same races"
COUPLED = Method(
    "coupled", _SUMMARY, True, CoupledDevice, CoupledCloud, options=CoupledOptions, bits=accounting.ids_only, coupled=True
)
