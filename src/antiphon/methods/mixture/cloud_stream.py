"""One cloud's stream of evidence, as the device follows it (METHODS 4).

The cloud's *line* is the answer as that cloud takes it to be. Evidence of a step is of use if the line is the device's own up
to there. It comes in the order of the steps, so a difference is found before anything behind it is used: then the line strays,
the device sends the right tokens, and a new epoch begins.
"""

import math
from dataclasses import dataclass

from antiphon.core.mixture.debt import WaitingDebt
from antiphon.core.mixture.scores import Codes, Report
from antiphon.errors import AntiphonError, LinkError, ProtocolError
from antiphon.methods.base import Transcript
from antiphon.methods.mixture.options import MixtureOptions
from antiphon.methods.mixture.response_time import ResponseTime
from antiphon.wire.messages import Ask, Evidence, Message, Progress, Realign, Retrieved, Supplement
from antiphon.wire.scores import ScoreCodec

UNANSWERED = 32
"""Epochs without evidence of theirs at most: a cloud that stalls has room for twice as many messages."""


@dataclass(frozen=True, slots=True)
class Proof:
    """The evidence of one step: the cloud's own draft, and its scores."""

    draft: int
    scores: Report | Codes


class CloudStream:
    """What the device knows of one cloud. dense: all scores cross. interval: tokens between two messages of progress."""

    def __init__(
        self, end: int, transcript: Transcript, codec: ScoreCodec, options: MixtureOptions, *, dense: bool, interval: int
    ) -> None:
        self.end = end
        self._mass_before: float | None = None  # what it said in a session that was lost
        self.log_mass: float | None = None
        """The logarithm of what its passages weigh; None before it was said."""
        self.lost: AntiphonError | None = None
        """Why the cloud takes no part any more."""
        self.end_token: int | None = None
        """With which its line came to an end of its own, if it did."""
        self.debt = WaitingDebt(options.debt())
        self.response_time = ResponseTime(options.timeout)
        self.supplement: Supplement | None = None
        """The answer to the last question."""
        self._asked: tuple[int, int] | None = None  # epoch and step of the last question
        self._open = False  # whether it may still be answered
        self.epoch = self._answered = 0  # the last of which evidence came
        self._transcript, self._codec, self._options = transcript, codec, options
        self._dense, self._interval = dense, interval
        self._expected = self._reported = transcript.position  # the step of the next evidence; what the cloud was told
        self._limit = transcript.position + transcript.remaining
        self._proofs: dict[int, Proof] = {}
        self._stray: int | None = None  # the step from which on the line is not the device's

    @property
    def takes_part(self) -> bool:
        """Whether it said what it found, and was not lost."""
        return self.lost is None and self.log_mass is not None

    @property
    def is_gone(self) -> bool:
        """Whether it takes no part for the rest of the answer: it was wrong, or refused. One that was lost may come back."""
        return self.lost is not None and not isinstance(self.lost, LinkError)

    @property
    def strays(self) -> bool:
        """Whether it is to be told the right tokens now. Not if it was told often and has said nothing since: it stalls."""
        return self._stray is not None and self.epoch - self._answered < UNANSWERED

    def lose(self, error: Exception) -> None:
        """Go on without it."""
        self.lost = error if isinstance(error, AntiphonError) else ProtocolError(str(error), "out-of-range")
        self._proofs.clear()

    def resume(self, before: "CloudStream") -> "CloudStream":
        """Begin as the stream of the same cloud after a loss: how fast it answers is known, and its debt is forgiven."""
        self.response_time = before.response_time
        self.response_time.interrupted()
        self._mass_before = before._mass_before if before.log_mass is None else before.log_mass
        return self

    def take(self, message: Message, now: float) -> None:
        """Take a message in. Raises ProtocolError for one that cannot be."""
        match message:
            case Retrieved(log_mass=log_mass) if self.log_mass is None and log_mass < math.inf:
                self._weigh(log_mass)
            case Supplement():
                self._take_supplement(message)
            case Evidence():
                self._take_evidence(message, now)
            case _:
                raise ProtocolError(f"{type(message).__name__} came in a stream of evidence", "out-of-turn")

    def ask(self, step: int, question: bytes) -> Ask:
        """What to send to ask for more scores of a step."""
        self.supplement, self._asked, self._open = None, (self.epoch, step), True
        return Ask(self.epoch, step, question)

    def proof(self, step: int) -> Proof | None:
        """The evidence of a step, if it is here."""
        return self._proofs.get(step)

    def timed_out(self) -> None:
        """The step went on without its evidence. Far behind, or where that is wanted always, the cloud is told the tokens."""
        self.debt, self._open = self.debt.wasted(), False
        behind = self._transcript.position - self._expected
        # A cloud so far behind works on steps that are over; told the tokens it catches up in one pass.
        if self._options.realign == "hard" or behind > self._options.ahead:
            self._stray = min(self._expected, self._transcript.position)  # evidence may be there, and an answer late

    def decided(self, token: int, step: int) -> None:
        """The step's token was decided with this cloud's evidence."""
        self.debt = self.debt.absorbed() if self._proofs[step].draft == token else self.debt.wasted()

    def committed(self, token: int, step: int) -> None:
        """The answer has this token at this step."""
        proof = self._proofs.pop(step, None)
        if proof is not None and proof.draft != token:
            self._stray = step

    def realign(self, now: float) -> Realign:
        """Begin a new epoch behind the tokens of the answer: what to send."""
        numbers, first = self._transcript.numbers, self._stray or 0
        # Everything that is on its way under the old number is now known to be of the old line.
        self.epoch += 1
        self._proofs.clear()
        self._stray, self.end_token = None, None
        self._expected = self._reported = len(numbers)
        self.response_time.asked(now)
        tokens = numbers[first:]
        return Realign(self.epoch, first, len(tokens), self._codec.tokens(tokens))

    def progress(self) -> Progress | None:
        """What to send so that the cloud works on, if it is time."""
        shared = min(self._transcript.position, self._expected)
        if shared - self._reported < self._interval:
            return None
        self._reported = shared
        return Progress(shared)

    def _weigh(self, log_mass: float) -> None:
        """What it found; the weights of an answer are those of its beginning. What was committed since, it is to be told."""
        if self._mass_before is not None and not math.isclose(log_mass, self._mass_before, rel_tol=1e-9, abs_tol=1e-9):
            raise ProtocolError("the cloud found other passages than before it was lost", "out-of-range")
        self.log_mass = log_mass if self._mass_before is None else self._mass_before
        if self._transcript.position > self._expected:
            self._stray = self._expected

    def _take_evidence(self, message: Evidence, now: float) -> None:
        if self._answered < message.epoch <= self.epoch:
            self._answered = message.epoch
        # Of a line that is not the device's: legal, for it crossed the word of that, and of no use.
        if message.epoch != self.epoch or self._stray is not None:
            return
        if message.step != self._expected:
            raise ProtocolError(f"evidence of step {message.step} came where {self._expected} was due", "out-of-turn")
        if message.step >= self._limit:
            raise ProtocolError(f"evidence of step {message.step} came for an answer of {self._limit} tokens", "out-of-range")
        self._expected += 1
        self.response_time.arrived(now)
        proof = self._read(message.payload)
        self.end_token = proof.draft if self._transcript.is_end(proof.draft) else None
        numbers = self._transcript.numbers
        if message.step >= len(numbers):
            self._proofs[message.step] = proof
        # Late, behind a step that went on without it: it still tells whether the cloud's line is the answer's.
        elif numbers[message.step] != proof.draft:
            self._stray = message.step

    def _take_supplement(self, message: Supplement) -> None:
        place = message.epoch, message.step
        if self._asked is None or place > self._asked:
            raise ProtocolError("scores of another step came", "out-of-turn")
        if place == self._asked and self._open:  # else the step went on without them
            self.supplement, self._open = message, False

    def _read(self, payload: bytes) -> Proof:
        if self._dense:
            codes, draft = self._codec.read_everything(payload, drafted=True)
            return Proof(0 if draft is None else draft, codes)
        report = self._codec.read_report(payload)
        if not report.scores:
            raise ProtocolError("evidence without a score came", "out-of-range")
        return Proof(next(iter(report.scores)), report)
