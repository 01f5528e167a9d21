"""A coupled answer that goes on while the link is lost: a long draft, or the rest of the answer (METHODS 3, offline)."""

from collections.abc import Generator
from typing import Any

from antiphon.core.rounding import exactly
from antiphon.methods.base import DeviceSide
from antiphon.methods.drafter import Drafted, Guess
from antiphon.methods.effects import Emit, Emitted, Finish, Half, Kind, Provisional
from antiphon.methods.speculative.stream.racing import Racing


class AloneDevice:
    """Draws the winners of the races, as drafts are drawn: the line is the one that a cloud would have got of this device."""

    def __init__(self, side: DeviceSide) -> None:
        if side.drafter is None:
            raise ValueError("this method drafts, so it needs a model on the device")
        self._side, self._drafter = side, side.drafter
        self._line = side.memory.line
        self._chance = Racing(side.chance, side.common)

    def provisional(self) -> Half:
        """Go on with the line until it is as long as the answer may be: all of it stays a draft, and is shown as one."""
        if self._line:
            yield self._shown()
        while len(self._line) < self._side.transcript.remaining - 1 and not self._ended():
            if (draft := (yield from self._drafted())) is None:
                break
            self._line.append(Guess(draft.number, draft.entropy))
            yield self._shown()
        return Finish.END if self._ended() else Finish.LENGTH

    def kept(self) -> Half:
        """Commit what was drafted before, and then every token as it is drawn."""
        drafted, self._line[:] = [guess.number for guess in self._line], []
        transcript = self._side.transcript
        while transcript.finish is None:
            if drafted:
                yield self._committed(drafted.pop(0))
            elif (draft := (yield from self._drafted())) is not None:
                yield self._committed(draft.number)
            else:
                break
        return transcript.finish or Finish.LENGTH

    def _drafted(self) -> Generator[Any, Any, Drafted | None]:
        draft = yield from self._drafter.draft(self._line, self._side.transcript.position, self._chance, exactly)
        if draft is None:
            self._drafter.tell()
        return draft

    def _ended(self) -> bool:
        return bool(self._line) and self._side.transcript.is_end(self._line[-1].number)

    def _shown(self) -> Provisional:
        return Provisional(tuple(guess.number for guess in self._line))

    def _committed(self, number: int) -> Emit:
        self._side.transcript.commit(number)
        self._drafter.commit([number])
        if (lookup := self._side.memory.lookup) is not None:
            lookup.commit([number])
        return Emit((Emitted(number, Kind.LOCAL),), exact=False)


def write_alone(side: DeviceSide, options: object, *, keep: bool) -> Half:
    """Go on without the cloud."""
    alone = AloneDevice(side)
    return alone.kept() if keep else alone.provisional()
