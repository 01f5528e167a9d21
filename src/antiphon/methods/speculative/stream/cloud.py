"""The cloud's half of `coupled`: tests what has come, and goes on (METHODS 3, *Stream*).

Drafts come in lines. One goes on as long as the verdicts' tokens are its own; then the device begins another one, whose first
draft follows all the verdicts that it knows: `Draft.round` is how many those are, the line's *epoch*. The cloud knows where
each epoch began, and compares what comes late with what it has committed since. `Verdict.round` is how many messages it had
heard before the pass.
"""

from collections import deque
from collections.abc import Generator, Sequence
from typing import Any

from antiphon.core.rounding import exactly
from antiphon.errors import ProtocolError
from antiphon.methods.base import CloudSide, Transcript
from antiphon.methods.effects import Send
from antiphon.methods.speculative.options import CoupledOptions
from antiphon.methods.speculative.stream.patience import Lockstep, Pacing, Streaming
from antiphon.methods.speculative.stream.serving import StreamCloud
from antiphon.methods.verifier import Targets
from antiphon.wire.messages import Draft, Verdict
from antiphon.wire.packing import Reader, Writer


class Pending:
    """Drafts of the newest line that have come and are not settled."""

    def __init__(self, transcript: Transcript) -> None:
        self.epoch = 0
        self.queue: deque[int] = deque()
        """Those from the transcript's end on."""
        self.next = transcript.position
        """The position of the line's next draft."""
        self._transcript = transcript
        self._stands = True  # whether the line is still one with what was committed

    def begin(self, epoch: int, position: int) -> None:
        """Another line: the newest epoch knows the most verdicts, and of an older one nothing is worth testing any more."""
        self.epoch, self.next, self._stands = epoch, position, True
        self.queue.clear()

    def add(self, number: int) -> None:
        """A draft of the line."""
        numbers = self._transcript.numbers
        if self._stands and self.next < len(numbers):
            # Too late to be tested, and not to be compared: if it is what was committed, what comes behind it may still be of
            # use.
            self._stands = numbers[self.next] == number
        elif self._stands:
            self.queue.append(number)
        self.next += 1

    def commit(self, number: int) -> None:
        """Go past a committed token."""
        self._stands = self._stands and (not self.queue or self.queue.popleft() == number)
        if not self._stands:
            self.queue.clear()


class CoupledCloud(StreamCloud):
    """Runs the races over the targets, on whatever drafts have come."""

    def __init__(self, side: CloudSide, options: CoupledOptions) -> None:
        super().__init__(side, options, _pacing(side, options))
        self._most, self._longest = options.max_drafts, options.max_drafts + options.most_ahead
        self._settles = options.settle_width - 1
        self._settling = False  # the line was written while the link was lost
        self._pending = Pending(side.transcript)

    @property
    def there(self) -> int:
        """Drafts of the line."""
        return len(self._pending.queue)

    def take_drafts(self, message: Draft, now: float) -> None:
        """Add drafts to the line, or begin another one."""
        epoch, pending = message.round, self._pending
        if not pending.epoch <= epoch < len(self._begins):
            raise ProtocolError(f"drafts of epoch {epoch} came in epoch {pending.epoch}", "out-of-turn")
        begins = epoch > pending.epoch
        if begins:
            pending.begin(epoch, self._begins[epoch])
            self._settling = False
            self._known = max(self._known, self._begins[epoch])
        for number in self._numbers(message):
            pending.add(number)
        # More than one pass reads, and at the very beginning, or more than anybody drafts ahead: it was written offline.
        at_once = self._most if self._heard == 1 else self._longest
        self._settling = self._settling or message.count > at_once
        answers = self._sent_at[epoch - 1] if begins else None
        self._pacing.heard(message.count, now, answers, current=epoch == len(self._begins) - 1)

    def _numbers(self, message: Draft) -> list[int]:
        reader, common, transcript = Reader(message.payload), self.side.common, self.side.transcript
        room = transcript.position + transcript.remaining - 1 - self._pending.next
        if message.count > room:
            raise ProtocolError(f"at most {room} drafts fit here, but {message.count} came", "out-of-range")
        numbers = [
            reader.number(common.common_bits, common.size, f"the id of draft {index + 1}") for index in range(message.count)
        ]
        reader.finish()
        return numbers

    def answer(self) -> Generator[Any, Any, None]:
        """One pass: commit the winners as far as the drafts agree, and the first that is not drafted."""
        transcript, verifier, writer, queue = self.side.transcript, self.side.verifier, Writer(), self._pending.queue
        heard, drafts = self._heard, list(queue)[: self._taken()]
        winners = self._winners((yield from verifier.score(drafts, exactly)), drafts)
        # The last winner is the cloud's own token, unless the drafts agree with it too: then it ends the answer.
        accepted = len(winners) if len(winners) <= len(drafts) and winners[-1] == drafts[len(winners) - 1] else len(winners) - 1
        # Also of drafts that were not taken: whether they stand is told by the tokens.
        stood = next((at for at, pair in enumerate(zip(winners, queue, strict=False)) if pair[0] != pair[1]), None)
        both = min(len(winners), len(queue))
        self._pacing.tested(both if stood is None else stood, stood is not None)
        for number in winners:
            transcript.commit(number)
            self._pending.commit(number)
        verifier.commit(winners)
        self._settling = self._settling and len(queue) > 0
        # The device has drafts that stand: of them it lacks no token, only the word.
        self._known = min(transcript.position, self._known + accepted)
        # A line that knows this verdict begins here.
        self._begins.append(transcript.position)
        for number in winners[accepted:]:
            writer.number(number, self.side.common.target_bits)
        yield Send(Verdict(heard, accepted, writer.finish()))

    def _taken(self) -> int:
        """How many of the drafts that are there the next pass reads."""
        there = min(len(self._pending.queue), self.side.transcript.remaining - 1)
        return min(there, self._settles) if self._settling else self._pacing.take(min(there, self._most))

    def _winners(self, targets: Targets, drafts: Sequence[int]) -> list[int]:
        winners: list[int] = []
        for index in range(len(drafts) + 1):
            race = self.side.chance.race(self.side.transcript.position + index, self.side.common.cloud_ids)
            winners.append(targets.at(index).winner(race))
            # Rows behind a draft that is not the winner are scores of another text.
            if self.side.transcript.is_end(winners[-1]) or winners[: index + 1] != [*drafts[: index + 1]]:
                break
        return winners


def _pacing(side: CloudSide, options: CoupledOptions) -> Pacing:
    if options.lockstep:
        return Lockstep()
    return Streaming(options.seconds, side.least_patience, options.objective, side.costs, options.max_drafts)
