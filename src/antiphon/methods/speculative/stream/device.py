"""The device's half of `coupled` in a stream: drafts all the time from the newest token that it knows (METHODS 3, *Stream*).

It looks for verdicts between any two of its passes, so what is shown waits for one draft at most. Drafts wait for one another
as long as that does not make them late. Where none is of use it stops, and reads what the cloud writes.
"""

import math
from bisect import bisect_right
from collections.abc import Generator
from typing import Any

from antiphon.core.rounding import exactly
from antiphon.core.stream import RUN_AHEAD
from antiphon.methods.base import DeviceSide
from antiphon.methods.drafter import Drafter, Guess, Portions
from antiphon.methods.effects import Came, Emit, Emitted, Exchanged, Half, Kind, Now, Provisional, Receive, Send
from antiphon.methods.outcome import Outcome
from antiphon.methods.speculative.options import CoupledOptions
from antiphon.methods.speculative.stream.pace import Pace
from antiphon.methods.speculative.stream.racing import Racing
from antiphon.methods.speculative.stream.verdicts import next_verdict, numbers_of
from antiphon.wire.messages import Draft, Message, Progress
from antiphon.wire.packing import Writer

TOLD_EVERY = RUN_AHEAD // 4
"""Tokens after which the cloud is told how far the answer is known."""

FEW_NEW = 2
"""Tokens that the answer may have grown by since the last draft, so that the time of this one tells how long they take."""


class StreamDevice:
    """Drafts the winners of the races, and commits what the verdicts say."""

    def __init__(self, side: DeviceSide, options: CoupledOptions) -> None:
        if side.drafter is None:
            raise ValueError("this method drafts, so it needs a model on the device")
        self.side = side
        self.drafter: Drafter = side.drafter
        self._chance = Racing(side.chance, side.common)
        self._line = side.memory.line  # drafts that no verdict has settled
        self._sent_in: list[int] = []  # the messages in which those were sent that are on their way, by number
        self._epoch = self._verdicts = 0
        self._most, self._longest = options.max_drafts, options.max_drafts + options.most_ahead
        self.pace: Pace = side.memory.learned or Pace(options, self._most)
        side.memory.learned = self.pace
        self.pace.resume()
        self.lookup = side.lookup(self.drafter, options.lookup)
        self._portions = Portions()
        self._told = side.transcript.position  # what the cloud knows that is known here
        self._drafted = 0  # drafts sent since the last verdict
        self._said_idle = False
        self._drafted_at = -1  # how long the answer was when the last draft was made

    def run(self) -> Half:
        """Draft, and commit what the verdicts say."""
        if self.drafter.exhausted:
            self.drafter.tell()
            self.lookup.read()  # which needs no model
        while (finish := self.side.transcript.finish) is None:
            now, self.pace.trip.timed = (yield Now()), self.side.round_trip
            silent = self._until_silence(now) == 0.0
            drafts = silent or self._pays(now)
            if not drafts:
                yield from self._rest()
            message = yield Receive(0.0 if drafts else self._until_silence(now))
            if isinstance(message, Progress):
                self.pace.use.unwanted()
            elif message is not None:
                yield self._settle(message, (yield Came()))
                yield from self._tell()
            elif drafts and (yield from self._extend()):
                yield from self._show_or_send(silent)
        return finish

    def _pays(self, now: float) -> bool:
        guess = self.lookup.guess(self._line)
        able = self._has_room(self._longest) and (guess is not None or not self.drafter.exhausted)
        return able and self.pace.pays(self._line, now, guess)

    def _show_or_send(self, silent: bool) -> Generator[Any, Any, None]:
        """Show what was drafted where the cloud is silent, else send it if it must leave now."""
        if silent:
            yield Provisional(tuple(guess.number for guess in self._line))
        elif self.pace.must_leave(len(self._line), (yield Now())):
            yield self._send((yield Now()))

    def _until_silence(self, now: float) -> float | None:
        """Seconds until the cloud counts as gone, 0 if it does; None where nobody would write on then."""
        left = self.pace.trip.newest + self.pace.trip.patience - now
        room = self._has_room(self.side.transcript.remaining) and not self.drafter.exhausted
        goes_on = self.side.goes_on and left < math.inf and room
        return max(0.0, left) if goes_on else None

    def _rest(self) -> Generator[Any, Any, None]:
        """Before it waits: send what is left, or say that nothing comes."""
        now = yield Now()
        if len(self._sent_in) < len(self._line):
            yield self._send(now)
        elif not self._line and not self._said_idle:
            self._said_idle = True
            yield self._send(now)

    def _tell(self) -> Generator[Any, Any, None]:
        """Tell how far the answer is known, where no new line has done so for long: one may stand for ever."""
        transcript = self.side.transcript
        if transcript.finish is None and transcript.position - self._told >= TOLD_EVERY:
            self._told = transcript.position
            self.pace.trip.leave((yield Now()))
            yield Send(Progress(self._told))

    def _has_room(self, longest: int) -> bool:
        transcript, line = self.side.transcript, self._line
        ended = bool(line) and transcript.is_end(line[-1].number)
        return len(line) < min(longest, transcript.remaining - 1) and not ended

    def _extend(self) -> Generator[Any, Any, bool]:
        """Make one draft, or look up as many as pay; False where there can be no more, or much is to be read first."""
        started = yield Now()
        if self._look_up(started):
            return True
        if (yield from self._portions.read(self.drafter)):
            return False
        draft = yield from self.drafter.draft(self._line, self.side.transcript.position, self._chance, exactly)
        self.lookup.read()
        if draft is None:
            self.drafter.tell()
            return False
        self._line.append(Guess(draft.number, draft.entropy))
        # With the first one the prompt is read, with others much that the cloud wrote: that tells little of the next one.
        position, before = self.side.transcript.position, self._drafted_at
        if before >= 0 and (position - before <= FEW_NEW or self.pace.drafting.value is None):
            self.pace.drafting.observe((yield Now()) - started)
        self._drafted_at = position
        return True

    def _look_up(self, now: float) -> bool:
        before = len(self._line)
        while (
            self._has_room(self._longest)
            and (guess := self.lookup.guess(self._line))
            and self.pace.pays(self._line, now, guess)
        ):
            self._line.append(guess)
        return len(self._line) > before

    def _send(self, now: float) -> Send:
        writer, rest = Writer(), self._line[len(self._sent_in) :]
        if not self._sent_in:
            # With nothing on its way a line can be sent under a new epoch at no cost, and the cloud forgets the old one.
            self._epoch, self._told = self._verdicts, self.side.transcript.position
        for guess in rest:
            writer.number(guess.number, self.side.common.common_bits)
        self._drafted += len(rest)
        self._said_idle = not rest
        self.pace.trip.leave(now)
        self._sent_in += [self.pace.trip.sent] * len(rest)
        return Send(Draft(self._epoch, len(rest), writer.finish()))

    def _settle(self, message: Message, now: float) -> Emit:
        """Commit a verdict's tokens, and keep what stands of the line."""
        line, sent_in, trip = self._line, self._sent_in, self.pace.trip
        verdict = next_verdict(message, trip.heard, trip.sent)
        heard = bisect_right(sent_in, verdict.round)  # drafts of the line
        numbers = numbers_of(verdict, [guess.number for guess in line[:heard]], self.side)
        stood = next((at for at, number in enumerate(numbers) if at >= len(line) or line[at].number != number), len(numbers))
        fell, known = stood < min(len(numbers), len(line)), stood < len(sent_in)
        trip.arrive(verdict.round, now)
        self.pace.tested(line[:stood], line[stood] if fell else None)
        self.lookup.tested(line[:stood], line[stood] if fell else None)
        # One that stands, and was there before the pass, was left out of it.
        left = sent_in[verdict.accepted : min(stood, self._most)][:1]
        self.pace.use.came(verdict.accepted, sum(message <= verdict.round for message in left))
        self._verdicts += 1
        self._line[:] = [] if fell else line[len(numbers) :]
        self._sent_in = [] if fell else sent_in[len(numbers) :]
        # One that the cloud was not sent was tested by nobody.
        return self._committed(numbers, verdict.accepted, min(stood, len(sent_in)), fell=fell and known)

    def _committed(self, numbers: list[int], accepted: int, stood: int, *, fell: bool) -> Emit:
        """A draft that came too late for the pass, and stands, is the cloud's token none the less."""
        own = Kind.CORRECTION if fell else Kind.BONUS if accepted else Kind.STREAMED
        kinds = [Kind.ACCEPTED] * accepted + [own] * (len(numbers) - accepted)
        for number in numbers:
            self.side.transcript.commit(number)
        self.drafter.commit(numbers)
        self.lookup.commit(numbers)
        exchanged, self._drafted = Exchanged(drafted=self._drafted), 0
        tokens = tuple(Emitted(number, kind) for number, kind in zip(numbers, kinds, strict=True))
        return Emit(tokens, exchanged, tested=Outcome.in_chain(stood, fell=fell))
