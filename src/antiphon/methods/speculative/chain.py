"""The round that all chain methods share; a method fills in what crosses the link and where a token is resampled.

A round: the device drafts N tokens (`methods.speculative.draft_length`) and sends them; the cloud scores them in one pass,
tests them in order, and answers how many stand. A `Draft` carries the tokens that the device owes the cloud, such as the one
that it resampled in the last round; then the ids; then what the method adds. A `Verdict` carries the accepted count, then the
next token or what the device needs to draw it.

A round that a lost link cut is done again, in a new session: the device sends the drafts that it has, and the cloud, whose
draws go by their places, tests and draws as before (METHODS 3, resuming).
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from antiphon.core.acceptance import accepts
from antiphon.core.chance import Chance, Place, Role
from antiphon.core.draft_length import Round
from antiphon.core.rounding import Quantise, exactly
from antiphon.errors import ProtocolError
from antiphon.methods.base import CloudSide, DeviceSide
from antiphon.methods.drafter import Drafted, Drafter, Guess
from antiphon.methods.effects import Emit, Emitted, Exchanged, Half, Kind, Now, Receive, Send, ServingHalf, expect
from antiphon.methods.outcome import Outcome
from antiphon.methods.speculative.draft_length import lengths
from antiphon.methods.speculative.options import RoundOptions
from antiphon.methods.verifier import Target, Targets
from antiphon.models.needs import Need
from antiphon.wire.messages import Draft, Verdict
from antiphon.wire.packing import Reader, Writer

Proposal = TypeVar("Proposal", bound="Proposed")


CHAIN_NEEDS = frozenset({Need.CHOSEN_PROBS, Need.DISTRIBUTIONS})
"""Of a chain that tests its drafts: their probabilities, and a whole distribution for the token after them."""


class PrecisionOptions(RoundOptions, Protocol):
    """What the options have of a method that sends draft probabilities."""

    @property
    def draft_precision(self) -> int:
        """Bits of a draft probability on the wire."""
        ...


@dataclass(frozen=True, slots=True)
class Proposed:
    """A draft as the cloud knows it: its wire number and the probability with which it was drawn."""

    number: int
    prob: float


@dataclass(frozen=True, slots=True)
class Begun:
    """A round whose drafts are made. made, seconds: those of which it is known how long they took. told: their figures."""

    drafts: Sequence[Drafted]
    made: int = 0
    seconds: float = 0.0
    told: Exchanged = field(default_factory=Exchanged)


class ChainDevice:
    """The device's half. A method says how it packs its drafts and how it reads the token after the accepted ones."""

    def __init__(self, side: DeviceSide, options: RoundOptions) -> None:
        if side.drafter is None:
            raise ValueError("this method drafts, so it needs a model on the device")
        self.side = side
        self.drafter: Drafter = side.drafter
        self.quantise: Quantise = exactly
        self.draft_chance: Chance = side.chance
        self._resumes = side.memory.lengths is not None
        self.lengths = side.memory.lengths = side.memory.lengths or lengths(options.draft_length)
        self.round = 0
        self.owed: list[int] = []  # committed here, not yet known to the cloud
        self.exchanged = Exchanged()
        self.made, self.started = 0, 0.0  # drafts of which it is known how long they took: all since then
        self._drafts_yet = False

    def pack(self, writer: Writer, drafts: Sequence[Drafted]) -> None:
        """Write what the method sends with the ids of `drafts`."""
        raise NotImplementedError

    def tell(self, exchanged: Exchanged, drafts: Sequence[Drafted]) -> None:
        """Add what is to be known of new drafts to the figures of their round."""

    def corrected(self, reader: Reader, drafts: Sequence[Drafted], accepted: int) -> Generator[Any, Any, int]:
        """The token after a rejection: read from the verdict, or drawn here and then added to `owed`."""
        yield from ()
        return reader.number(self.side.common.target_bits, self.side.common.target_size, "the correction")

    def write_owed(self, writer: Writer) -> None:
        """Write what the device owes the cloud."""
        for number in self.owed:
            writer.number(number, self.side.common.target_bits)

    def run(self) -> Half:
        """Draft and commit, round after round."""
        transcript = self.side.transcript
        while transcript.finish is None:
            yield from self._round()
        # The cloud cannot end without the token that was drawn here last: it goes up alone.
        if self.owed:
            yield self._send([])
        return transcript.finish

    def _round(self) -> Generator[Any, Any, None]:
        begun: Begun = self.side.memory.round or (yield from self._begun())
        # Before anything is sent: if the link breaks from here on, the round is done again with these very drafts (METHODS 3,
        # resuming).
        self.side.memory.round = begun
        drafted = yield Now()
        tokens = yield from self.exchange(begun)
        waited, count = (yield Now()) - drafted, len(begun.drafts)
        self.learn(Round(begun.made, begun.seconds, count, tokens <= count, waited, waited, tokens))

    def _begun(self) -> Generator[Any, Any, Begun]:
        yield from self.begin()
        # One fewer than remain: a verdict brings a token of its own behind drafts that all stand.
        drafts = yield from self.drafts(self.side.transcript.remaining - 1)
        told = Exchanged(drafted=len(drafts))
        self.tell(told, drafts)
        return Begun(drafts, self.made, (yield Now()) - self.started, told)

    def learn(self, round: Round) -> None:
        """Learn from how a round went; of the first one after a lost link not how long: the cloud had all to read again."""
        self.lengths.learn(replace(round, usual=not self._resumes))
        self._resumes = False

    def begin(self) -> Generator[Any, Any, None]:
        """Begin to tell how long drafts take."""
        self.made, self.started = 0, (yield Now())

    def draft(self, drafts: Sequence[Drafted | Guess]) -> Generator[Any, Any, Drafted | None]:
        """The draft after these; None where there can be no more."""
        draft = yield from self.drafter.draft(drafts, self.side.transcript.position, self.draft_chance, self.quantise)
        if draft is None:
            self.drafter.tell()
        self.made += 1
        if not self._drafts_yet:  # the prompt had to be read for it
            self._drafts_yet = True
            yield from self.begin()
        return draft

    def drafts(self, most: int) -> Generator[Any, Any, list[Drafted]]:
        """Draft as many tokens as the round should have, but at most so many; none after an end of sequence."""
        drafts: list[Drafted] = []
        while len(drafts) < most and self.lengths.more(drafts):
            draft = yield from self.draft(drafts)
            if draft is None:
                break
            drafts.append(draft)
            if self.side.transcript.is_end(draft.number):
                break
        return drafts

    def exchange(self, begun: Begun) -> Generator[Any, Any, int]:
        """Send drafts and commit what comes of them: so many tokens."""
        drafts, self.exchanged = begun.drafts, replace(begun.told, trips=1)
        yield self._send(drafts)
        verdict = expect((yield Receive()), Verdict, self.round)
        committed = yield from self._committed(verdict, drafts)
        self.round += 1
        stood = drafts[: verdict.accepted]
        # Behind an end that stood there is no token, and the drafts behind it were not tested: none of them fell.
        fell = len(stood) < min(len(drafts), len(committed))
        self.lengths.tested(stood, drafts[len(stood)] if fell else None, follows=False)
        yield self.commit(committed, Outcome.in_chain(len(stood), fell=fell))
        return len(committed)

    def commit(self, tokens: Sequence[Emitted], tested: Outcome) -> Emit:
        """Commit tokens, with the drafts that were tested for them; what to yield then. The round is over."""
        # From here to the last commit nothing is yielded, so no lost link can leave a round half over.
        self.side.memory.round = None
        for token in tokens:
            self.side.transcript.commit(token.number)
        self.drafter.commit([token.number for token in tokens])
        return Emit(tuple(tokens), self.exchanged, tested=tested)

    def _send(self, drafts: Sequence[Drafted]) -> Send:
        writer, common = Writer(), self.side.common
        self.write_owed(writer)
        self.owed = []
        for draft in drafts:
            writer.number(draft.number, common.common_bits)
        self.pack(writer, drafts)
        return Send(Draft(self.round, len(drafts), writer.finish()))

    def _committed(self, verdict: Verdict, drafts: Sequence[Drafted]) -> Generator[Any, Any, list[Emitted]]:
        accepted, reader, common = verdict.accepted, Reader(verdict.payload), self.side.common
        if accepted > len(drafts):
            raise ProtocolError(f"{accepted} drafts were accepted, but only {len(drafts)} were sent", "out-of-range")
        committed = [Emitted(draft.number, Kind.ACCEPTED) for draft in drafts[:accepted]]
        ended = committed and self.side.transcript.is_end(committed[-1].number)
        if not ended and accepted == len(drafts):
            bonus = reader.number(common.target_bits, common.target_size, "the bonus token")
            committed.append(Emitted(bonus, Kind.BONUS))
        elif not ended:
            correction = yield from self.corrected(reader, drafts, accepted)
            committed.append(Emitted(correction, Kind.CORRECTION))
        reader.finish()
        return committed


class ChainCloud(Generic[Proposal]):
    """The cloud's half. A method says how it reads drafts and how it settles a rejection."""

    device_resamples: ClassVar[bool] = False
    """After a rejection the device draws the token and sends it with its next drafts."""

    def __init__(self, side: CloudSide, options: RoundOptions) -> None:
        self.side = side
        self.most = options.max_drafts
        self.quantise: Quantise = exactly
        self.round = 0
        self.owed = False  # the device drew the last token, which comes with its next drafts

    def unpack(self, reader: Reader, numbers: Sequence[int]) -> list[Proposal]:
        """Read what the method sends with the ids."""
        raise NotImplementedError

    def stands(self, target: Target, draft: Proposal, place: Place) -> bool:
        """Test a draft (METHODS 0)."""
        stream = self.side.chance.at(place, Role.ACCEPT)
        return accepts(stream, target.prob(draft.number), draft.prob)

    def bonus(self, target: Target, place: Place) -> int:
        """The token after drafts that all stand."""
        return self.side.chance.at(place, Role.TARGET).categorical(target.probs)

    def correct(self, writer: Writer, target: Target, draft: Proposal, place: Place) -> Generator[Any, Any, int | None]:
        """Settle a rejection: write the token, or what the device needs to draw it (then None)."""
        raise NotImplementedError

    def awaited(self) -> Generator[Any, Any, Draft]:
        """The drafts of the next round. A method that settles a rejection in several trips overrides this."""
        draft: Draft = expect((yield Receive()), Draft, self.round)
        return draft

    def read_owed(self, reader: Reader) -> list[int]:
        """Read what the device owes: the token that it drew after the last rejection."""
        common = self.side.common
        return [reader.number(common.target_bits, common.target_size, "the resampled token")] if self.owed else []

    def run(self) -> ServingHalf:
        """Test and answer, round after round."""
        yield from self.side.verifier.prefill()
        while (finish := self.side.transcript.finish) is None:
            message = yield from self.awaited()
            yield from self._answer(message)
        return finish

    def _answer(self, message: Draft) -> Generator[Any, Any, None]:
        drafts = self._drafts(message)
        if self.side.transcript.finish is not None:  # what the device owed was the last
            return
        targets = yield from self.side.verifier.score([draft.number for draft in drafts], self.quantise)
        accepted = self.test(drafts, targets)
        writer = Writer()
        token = yield from self._next(writer, targets, drafts, accepted)
        self.commit([draft.number for draft in drafts[:accepted]] + ([] if token is None else [token]))
        yield Send(Verdict(self.round, accepted, writer.finish()))
        self.round += 1

    def _drafts(self, message: Draft) -> list[Proposal]:
        reader, common, transcript = Reader(message.payload), self.side.common, self.side.transcript
        owed, self.owed = self.read_owed(reader), False
        self.commit(owed)
        # After what was owed, which may have ended the answer, and before any number is read.
        room = 0 if transcript.finish else min(self.most, transcript.remaining - 1)
        if message.count > room:
            raise ProtocolError(f"at most {room} drafts fit here, but {message.count} came", "out-of-range")
        numbers = [
            reader.number(common.common_bits, common.size, f"the id of draft {index + 1}") for index in range(message.count)
        ]
        drafts = self.unpack(reader, numbers)
        reader.finish()
        return drafts

    def test(self, drafts: Sequence[Proposal], targets: Targets) -> int:
        """How many of the drafts stand; none behind an end of sequence."""
        transcript = self.side.transcript
        for index, draft in enumerate(drafts):
            if not self.stands(targets.at(index), draft, transcript.place(index)):
                return index
            if transcript.is_end(draft.number):
                return index + 1
        return len(drafts)

    def _next(
        self, writer: Writer, targets: Targets, drafts: Sequence[Proposal], accepted: int
    ) -> Generator[Any, Any, int | None]:
        transcript = self.side.transcript
        if accepted and transcript.is_end(drafts[accepted - 1].number):
            return None
        # The row behind the drafts that stand: the same pass made it, whether or not the next draft fell.
        place, target = transcript.place(accepted), targets.at(accepted)
        if accepted < len(drafts):
            self.owed = self.device_resamples
            token = yield from self.correct(writer, target, drafts[accepted], place)
            return token
        bonus = self.bonus(target, place)
        writer.number(bonus, self.side.common.target_bits)
        return bonus

    def commit(self, numbers: Sequence[int]) -> None:
        """Commit tokens."""
        for number in numbers:
            self.side.transcript.commit(number)
        self.side.verifier.commit(numbers)
