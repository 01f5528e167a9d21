"""`coupled`: coupled drafting (METHODS 3). No probabilities on the wire.

Both ends know the same noise for every position and token of the cloud. The device drafts the winner of the race over its
distribution; the cloud's next token is the winner over the target, always; a draft stands if they are the same token. So the
answer depends on the cloud's model, the prompt, the sampling parameters and the seed alone: it is the one that `cloud` writes
with that seed, whatever model drafts. Up: ids. Down: a count and one token.

So neither end need wait (METHODS 3, *Stream*): the cloud goes on and takes the drafts that are there, the device drafts on from
the newest token that it knows. How long a cloud waits for drafts is its patience: 0 is the stream. In lockstep it waits without
end: then a device sends the first drafts of a line, drafts on while the verdict is on its way, and the cloud takes up what has
come whenever it is free.
"""

from collections.abc import Generator
from typing import Any

from antiphon.core.draft_length import Round
from antiphon.methods import closed_forms as accounting
from antiphon.methods.base import DeviceSide, Method
from antiphon.methods.drafter import Guess
from antiphon.methods.effects import Emit, Emitted, Exchanged, Half, Kind, Now, Receive, Send
from antiphon.methods.outcome import Outcome
from antiphon.methods.speculative.chain import ChainDevice
from antiphon.methods.speculative.options import CoupledOptions
from antiphon.methods.speculative.stream.alone import write_alone
from antiphon.methods.speculative.stream.cloud import CoupledCloud
from antiphon.methods.speculative.stream.device import StreamDevice
from antiphon.methods.speculative.stream.racing import Racing
from antiphon.methods.speculative.stream.verdicts import next_verdict, numbers_of
from antiphon.models.needs import Need
from antiphon.wire.messages import Draft, Message
from antiphon.wire.packing import Writer


class LockstepDevice(ChainDevice):
    """Drafts the winners of the races, and on while it waits."""

    def __init__(self, side: DeviceSide, options: CoupledOptions) -> None:
        super().__init__(side, options)
        self.draft_chance = Racing(side.chance, side.common)
        self._most, self._ahead = options.max_drafts, options.most_ahead
        self._line = side.memory.line  # drafts that no verdict has settled yet
        self._lookup = side.lookup(self.drafter, options.lookup)
        self._sent = 0  # how many of them are on their way
        self._asked = False  # a token was asked for without a draft
        self._epoch = self._verdicts = 0
        self._messages = self._heard = 0  # sent so far, and of them those that the next verdict must have heard at least
        self._block = 0  # drafts of the line when it was sent first
        self._drafted = 0  # drafts sent since the last verdict
        self._falls: list[bool] = []  # whether a draft fell, by verdict of the round
        self._answered = 0.0  # when the first of them came

    def run(self) -> Half:
        """Draft, and commit what the verdicts say."""
        if self.drafter.exhausted:
            self.drafter.tell()
            self._lookup.read()  # which needs no model
        while (finish := self.side.transcript.finish) is None:
            yield from self._round()
        return finish

    def _round(self) -> Generator[Any, Any, None]:
        """From the first drafts of a line until none of it is on its way any more."""
        position, self._falls = self.side.transcript.position, []
        yield from self.begin()
        yield from self._begin_line()
        made, drafted = self.made, (yield Now())
        while self.side.transcript.finish is None and (self._sent or self._asked):
            yield from self._wait()
        waited, tokens = (yield Now()) - drafted, self.side.transcript.position - position
        settled = self._answered - drafted
        self.learn(Round(made, drafted - self.started, self._block, self._falls[0], settled, waited, tokens))

    def _begin_line(self) -> Generator[Any, Any, None]:
        """Send what still stands of the line and as many more drafts as pay."""
        while self._may_extend() and self.lengths.more(self._line, self._lookup.guess(self._line)):
            if not (yield from self._extend()):
                break
        self._block, self._asked = len(self._line), not self._line
        # With nothing of another line on its way no verdict is made before this message is heard.
        self._heard = self._messages + 1
        yield self._send_rest()

    def _wait(self) -> Generator[Any, Any, None]:
        """Draft on while the verdict is on its way, then commit it."""
        if self._goes_on() and not ((yield from self._extend()) and self._goes_on()) and self._sent < len(self._line):
            yield self._send_rest()
        # While more may be drafted only a look: drafts are made in the time that the verdict takes anyway.
        message = yield Receive(0.0 if self._goes_on() else None)
        if message is not None:
            if not self._falls:
                self._answered = yield Now()
            yield self._settle(message)

    def _goes_on(self) -> bool:
        # What was looked up is made in no time: as much as the pass after this one takes too.
        block = 2 * self._most if self._lookup.guess(self._line) else min(self._block, self._most)
        return self._sent > 0 and len(self._line) < block + self._ahead and self._may_extend()

    def _may_extend(self) -> bool:
        transcript, line = self.side.transcript, self._line
        ended = bool(line) and transcript.is_end(line[-1].number)
        able = not self.drafter.exhausted or self._lookup.guess(line) is not None
        return len(line) < transcript.remaining - 1 and not ended and able

    def _extend(self) -> Generator[Any, Any, bool]:
        draft = self._lookup.guess(self._line) or (yield from self.draft(self._line))
        self._lookup.read()
        self._line += [] if draft is None else [Guess(draft.number, draft.entropy)]
        return draft is not None

    def _send_rest(self) -> Send:
        writer, rest = Writer(), self._line[self._sent :]
        for draft in rest:
            writer.number(draft.number, self.side.common.common_bits)
        self._sent, self._messages = len(self._line), self._messages + 1
        self._drafted += len(rest)
        return Send(Draft(self._epoch, len(rest), writer.finish()))

    def _settle(self, message: Message) -> Emit:
        """Commit a verdict's tokens, and keep what stands of the line."""
        verdict = next_verdict(message, self._heard, self._messages)
        numbers = numbers_of(verdict, [draft.number for draft in self._line[: self._sent]], self.side)
        stood, rest = self._line[: verdict.accepted], self._line[verdict.accepted :]
        token = numbers[-1] if len(numbers) > len(stood) else None
        known = self._sent > verdict.accepted  # a draft is with the cloud, or on its way, where the token is
        # The cloud's token may be the very draft behind those that it tested, which came too late for its pass: the line goes
        # on.
        follows = bool(rest) and rest[0].number == token
        next = rest[0] if known and token is not None else None
        self.lengths.tested(stood, next, follows)
        self._lookup.tested([*stood, *rest[:follows]], None if follows else next)
        self._falls.append(known and not follows)
        self._verdicts, self._heard = self._verdicts + 1, verdict.round
        self._line[:], self._sent = rest[1:] if follows else [], max(0, self._sent - len(numbers)) if follows else 0
        # With nothing on its way a line can be sent under a new epoch at no cost, and the cloud forgets the old one.
        self._epoch = self._epoch if self._sent else self._verdicts
        kind = Kind.CORRECTION if known and not follows else Kind.BONUS
        self.exchanged = Exchanged(drafted=self._drafted, trips=1)
        self._asked, self._drafted = False, 0
        self._lookup.commit(numbers)
        tested = Outcome.in_chain(len(stood) + (known and follows), fell=known and token is not None and not follows)
        return self.commit(
            [Emitted(number, Kind.ACCEPTED) for number in numbers[: len(stood)]]
            + [Emitted(number, kind) for number in numbers[len(stood) :]],
            tested,
        )


class CoupledDevice:
    """The device's half, as its patience says."""

    def __init__(self, side: DeviceSide, options: CoupledOptions) -> None:
        self._half = LockstepDevice(side, options) if options.lockstep else StreamDevice(side, options)

    def run(self) -> Half:
        """Draft, and commit what the verdicts say."""
        return self._half.run()


_SUMMARY = "ids up, a count and one token down: both ends run the same races"
COUPLED = Method(
    "coupled",
    _SUMMARY,
    True,
    CoupledDevice,
    CoupledCloud,
    options=CoupledOptions,
    bits=accounting.ids_only,
    coupled=True,
    needs=frozenset({Need.WINNERS}),
    alone=write_alone,
)
