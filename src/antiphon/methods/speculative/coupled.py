"""`coupled`: coupled drafting (METHODS 3). No probabilities on the wire.

Both ends know the same noise for every position and token of the cloud. The device drafts the winner of the race over its
distribution; the cloud's next token is the winner over the target, always; a draft stands if they are the same token. So the
answer depends on the cloud's model, the prompt, the sampling parameters and the seed alone: it is the one that `cloud` writes
with that seed, whatever model drafts. Up: ids. Down: a count and one token.

So the device need not wait. Its drafts form a *line*: it sends the first ones, drafts on while the verdict is on its way, and
the cloud takes up what has come whenever it is free. A line goes on as long as the verdicts' tokens are its own. Then the
device begins another one, whose first draft follows all the verdicts that it knows; `Draft.round` is how many those are, the
line's *epoch*. The cloud knows where each epoch began, and compares what comes late with what it has committed since.
"""

from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from antiphon.core.chance import Chance, Place, Race, Role
from antiphon.core.distributions import Ids, Probs
from antiphon.core.draft_length import Round
from antiphon.core.rounding import exactly
from antiphon.errors import ProtocolError
from antiphon.methods import closed_forms as accounting
from antiphon.methods.base import CloudSide, DeviceSide, Method
from antiphon.methods.drafter import Drafted
from antiphon.methods.effects import Emit, Emitted, Exchanged, Half, Kind, Now, Receive, Send, ServingHalf, expect
from antiphon.methods.outcome import Outcome
from antiphon.methods.speculative.chain import ChainDevice
from antiphon.methods.speculative.options import WithDraftLength, draft_length_option
from antiphon.methods.verifier import Targets
from antiphon.models.needs import Need
from antiphon.options import option, require
from antiphon.vocabulary import CommonVocabulary
from antiphon.wire.messages import Draft, Message, Verdict
from antiphon.wire.packing import Reader, Writer

MAX_AHEAD = 32
"""Drafts that may be on their way unasked, at most."""


@dataclass(frozen=True, slots=True)
class CoupledOptions(WithDraftLength):
    """Options of `coupled`. ahead: how many more are drafted while the cloud's word is on its way. Raises UsageError."""

    draft_length: int = draft_length_option(0)
    ahead: int = option(3, f"Drafts made while the cloud's word is on its way, 0 (wait) to {MAX_AHEAD}.")

    def __post_init__(self) -> None:
        self.require_draft_length()
        require(0 <= self.ahead <= MAX_AHEAD, f"ahead must be 0 (wait) to {MAX_AHEAD} drafts, not {self.ahead}")


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


class CoupledDevice(ChainDevice):
    """Drafts the winners of the races, and on while it waits."""

    def __init__(self, side: DeviceSide, options: CoupledOptions) -> None:
        super().__init__(side, options)
        self.draft_chance = Racing(side.chance, side.common)
        self._most, self._ahead = options.max_drafts, options.ahead
        self._line: list[Drafted] = []  # drafts that no verdict has settled yet
        self._sent = 0  # how many of them are on their way
        self._asked = False  # a token was asked for without a draft
        self._epoch = self._verdicts = 0
        self._block = 0  # drafts of the line when it was sent first
        self._drafted = 0  # drafts sent since the last verdict
        self._falls: list[bool] = []  # whether a draft fell, by verdict of the round
        self._answered = 0.0  # when the first of them came

    def run(self) -> Half:
        """Draft, and commit what the verdicts say."""
        if self.drafter.exhausted:
            self.drafter.tell()
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
        while self._may_extend() and self.lengths.more(self._line) and (yield from self._extend()):
            pass
        self._block, self._asked = len(self._line), not self._line
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
        room = len(self._line) < min(self._block, self._most) + self._ahead
        return self._sent > 0 and room and self._may_extend()

    def _may_extend(self) -> bool:
        transcript, line = self.side.transcript, self._line
        ended = bool(line) and transcript.is_end(line[-1].number)
        return len(line) < transcript.remaining - 1 and not ended and not self.drafter.exhausted

    def _extend(self) -> Generator[Any, Any, bool]:
        draft = yield from self.draft(self._line)
        self._line += [] if draft is None else [draft]
        return draft is not None

    def _send_rest(self) -> Send:
        writer, rest = Writer(), self._line[self._sent :]
        for draft in rest:
            writer.number(draft.number, self.side.common.common_bits)
        self._sent = len(self._line)
        self._drafted += len(rest)
        return Send(Draft(self._epoch, len(rest), writer.finish()))

    def _settle(self, message: Message) -> Emit:
        """Commit a verdict's tokens, and keep what stands of the line."""
        verdict = expect(message, Verdict, self._verdicts)
        token = self._token(verdict)
        stood, rest = self._line[: verdict.accepted], self._line[verdict.accepted :]
        numbers = [*(draft.number for draft in stood), *([] if token is None else [token])]
        known = self._sent > verdict.accepted  # a draft is with the cloud, or on its way, where the token is
        # The cloud's token may be the very draft behind those that it tested, which came too late for its pass: the line goes
        # on.
        follows = bool(rest) and rest[0].number == token
        self.lengths.tested(stood, rest[0] if known and token is not None else None, follows)
        self._falls.append(known and not follows)
        self._verdicts += 1
        self._line, self._sent = rest[1:] if follows else [], max(0, self._sent - len(numbers)) if follows else 0
        # With nothing on its way a line can be sent under a new epoch at no cost, and the cloud forgets the old one.
        self._epoch = self._epoch if self._sent else self._verdicts
        kind = Kind.CORRECTION if known and not follows else Kind.BONUS
        self.exchanged = Exchanged(drafted=self._drafted, trips=1)
        self._asked, self._drafted = False, 0
        tested = Outcome.in_chain(len(stood) + (known and follows), fell=known and token is not None and not follows)
        return self.commit(
            [Emitted(number, Kind.ACCEPTED) for number in numbers[: len(stood)]]
            + [Emitted(number, kind) for number in numbers[len(stood) :]],
            tested,
        )

    def _token(self, verdict: Verdict) -> int | None:
        """The token after the drafts that stood; None if the last of them ends the answer."""
        accepted, reader, common = verdict.accepted, Reader(verdict.payload), self.side.common
        if accepted > self._sent:
            raise ProtocolError(f"{accepted} drafts were accepted, but only {self._sent} were sent", "out-of-range")
        ended = accepted > 0 and self.side.transcript.is_end(self._line[accepted - 1].number)
        token = None if ended else reader.number(common.target_bits, common.target_size, "the token after the accepted ones")
        reader.finish()
        return token


class CoupledCloud:
    """Runs the races over the targets, on whatever drafts have come."""

    def __init__(self, side: CloudSide, options: CoupledOptions) -> None:
        self.side = side
        self._most, self._ahead = options.max_drafts, options.ahead
        self._begins = [side.transcript.position]  # where a line begins that knows so many verdicts
        self._epoch = 0
        self._next = side.transcript.position  # of the line's next draft
        self._stands = True  # whether the line is still one with what was committed
        self._queue: deque[int] = deque()  # drafts from the transcript's end on
        self._asked = False

    def run(self) -> ServingHalf:
        """Test what has come, answer, and wait where there is nothing to test."""
        yield from self.side.verifier.prefill()
        while (finish := self.side.transcript.finish) is None:
            # Everything that has come, before the pass: one more draft makes the same pass bring more.
            while (message := (yield Receive(0.0 if self._queue or self._asked else None))) is not None:
                self._take(expect(message, Draft))
            yield from self._answer()
        return finish

    def _take(self, message: Draft) -> None:
        """Add drafts to the line, or begin another one."""
        if not self._epoch <= message.round < len(self._begins):
            raise ProtocolError(f"drafts of epoch {message.round} came in epoch {self._epoch}", "out-of-turn")
        # The newest epoch knows the most verdicts; of an older line nothing is worth testing any more.
        if message.round > self._epoch:
            self._epoch, self._next, self._stands = message.round, self._begins[message.round], True
            self._queue.clear()
        # Else it asked before the last verdict came, which has the token that was wanted.
        self._asked = message.count == 0 and message.round == len(self._begins) - 1
        for number in self._numbers(message):
            self._add(number)

    def _numbers(self, message: Draft) -> list[int]:
        reader, common, transcript = Reader(message.payload), self.side.common, self.side.transcript
        room = min(self._most + self._ahead - len(self._queue), transcript.position + transcript.remaining - 1 - self._next)
        if message.count > room:
            raise ProtocolError(f"at most {room} drafts fit here, but {message.count} came", "out-of-range")
        numbers = [
            reader.number(common.common_bits, common.size, f"the id of draft {index + 1}") for index in range(message.count)
        ]
        reader.finish()
        return numbers

    def _add(self, number: int) -> None:
        numbers = self.side.transcript.numbers
        if self._stands and self._next < len(numbers):
            # Too late to be tested, and not to be compared: if it is what was committed, what comes behind it may still be of
            # use.
            self._stands = numbers[self._next] == number
        elif self._stands:
            self._queue.append(number)
        self._next += 1

    def _answer(self) -> Generator[Any, Any, None]:
        """One pass: commit the winners as far as the drafts agree, and the first that is not drafted."""
        transcript, verifier, writer = self.side.transcript, self.side.verifier, Writer()
        drafts = list(self._queue)[: min(self._most, transcript.remaining - 1)]
        winners = self._winners((yield from verifier.score(drafts, exactly)), drafts)
        # The last winner is the cloud's own token, unless the drafts agree with it too: then it ends the answer.
        accepted = len(winners) if len(winners) <= len(drafts) and winners[-1] == drafts[len(winners) - 1] else len(winners) - 1
        for number in winners:
            transcript.commit(number)
            self._stands = self._stands and (not self._queue or self._queue.popleft() == number)
        if not self._stands:
            self._queue.clear()
        verifier.commit(winners)
        self._asked = False
        # A line that knows this verdict begins here.
        self._begins.append(transcript.position)
        for number in winners[accepted:]:
            writer.number(number, self.side.common.target_bits)
        yield Send(Verdict(len(self._begins) - 2, accepted, writer.finish()))

    def _winners(self, targets: Targets, drafts: Sequence[int]) -> list[int]:
        winners: list[int] = []
        for index in range(len(drafts) + 1):
            race = self.side.chance.race(self.side.transcript.position + index, self.side.common.cloud_ids)
            winners.append(targets.at(index).winner(race))
            # Rows behind a draft that is not the winner are scores of another text.
            if self.side.transcript.is_end(winners[-1]) or winners[: index + 1] != [*drafts[: index + 1]]:
                break
        return winners


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
)
